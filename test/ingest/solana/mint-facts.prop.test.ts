// Accounts of mints, wallets and metadata as the programs' own libraries write them, and cut or changed at every place.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { largestHolders } from '../../../src/ingest/solana/enrichment/holders.ts'
import {
  readMetadata,
  readMintFacts,
  readTokenAccount,
} from '../../../src/ingest/solana/enrichment/mint-facts.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import {
  extendedMint,
  legacyMint,
  metaplexMetadata,
  type TestMint,
  tokenAccount,
} from '../../support/chain/token-accounts.ts'

const EPOCH_SLOTS = 432_000
const address = fc.nat(50).map((index) => mintOfSymbol(`address ${index}`))
const orNone = fc.option(address)
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const fee = fc.record({
  epoch: fc.bigInt({ min: 0n, max: 10n }),
  maximumFee: fc.constantFrom(0n, 1n, 2n ** 64n - 1n),
  transferFeeBasisPoints: fc.constantFrom(0, 1, 10_000),
})
const plain = { supply: u64, decimals: fc.nat(18), mintAuthority: orNone, freezeAuthority: orNone }
const metadata = fc.record({ mint: address, updateAuthority: orNone, uri: fc.string(), name: fc.string() })
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })
const extendedArbitrary: fc.Arbitrary<TestMint> = fc.record({
  ...plain,
  fees: optional(fc.record({ older: fee, newer: fee, authority: orNone })),
  pointer: optional(fc.record({ authority: orNone, address: orNone })),
  metadata: optional(metadata),
  hasOther: fc.boolean(),
})

describe('a mint', () => {
  it('of the first program is read', () => {
    fc.assert(
      fc.property(fc.record(plain), (mint) => {
        expect(readMintFacts(legacyMint(mint), null)).toEqual({
          ...{ supply: mint.supply, decimals: mint.decimals, hasTransferFee: false, metadata: null },
          ...{
            hasMintAuthority: mint.mintAuthority !== null,
            hasFreezeAuthority: mint.freezeAuthority !== null,
          },
          ...{ metadataAddress: null, hasPointerAuthority: false },
        })
      }),
    )
  })

  it('of Token-2022 is read with its extensions; a fee is that of the epoch, or one that is to come', () => {
    fc.assert(
      fc.property(extendedArbitrary, fc.option(fc.integer({ min: 0, max: 11 })), (mint, epoch) => {
        const facts = readMintFacts(extendedMint(mint), epoch === null ? null : epoch * EPOCH_SLOTS + 7)
        const { fees, pointer, metadata: texts } = mint
        const takes = (told: { maximumFee: bigint; transferFeeBasisPoints: number } | undefined) =>
          told !== undefined && told.maximumFee > 0n && told.transferFeeBasisPoints > 0
        const isOlderOver = fees !== undefined && epoch !== null && BigInt(epoch) >= fees.newer.epoch
        expect(facts).toEqual({
          ...{ supply: mint.supply, decimals: mint.decimals },
          ...{
            hasMintAuthority: mint.mintAuthority !== null,
            hasFreezeAuthority: mint.freezeAuthority !== null,
          },
          hasTransferFee: takes(fees?.newer) || (!isOlderOver && takes(fees?.older)),
          metadata: texts
            ? {
                isMutable: texts.updateAuthority !== null,
                uri: texts.uri.replaceAll('\0', '').trim() || null,
              }
            : null,
          metadataAddress: pointer?.address ?? null,
          hasPointerAuthority: pointer !== undefined && pointer.authority !== null,
        })
      }),
    )
  })

  it('cut, changed, or of another program is nothing or something else, and never an error', () => {
    fc.assert(
      fc.property(extendedArbitrary, fc.nat(), fc.nat(255), fc.boolean(), (mint, place, byte, isCut) => {
        const { owner, data } = extendedMint(mint)
        const at = place % data.length
        const changed = isCut ? data.subarray(0, at) : Buffer.from(data)
        if (!isCut) changed[at] = byte
        readMintFacts({ owner, data: changed }, 1)
        expect(readMintFacts({ owner: mintOfSymbol('another program'), data }, 1)).toBeNull()
        expect(
          readMintFacts({ owner: mint.supply > 0n ? owner : owner, data: changed.subarray(0, 81) }, 1),
        ).toBeNull()
      }),
    )
  })

  it('is no account of a wallet, of either program', () => {
    const fields = { mint: mintOfSymbol('m'), owner: mintOfSymbol('o'), amount: 5n }
    for (const isExtended of [false, true]) {
      const account = tokenAccount(fields, isExtended)
      expect(readMintFacts(account, null)).toBeNull()
      expect(readTokenAccount(account)).toEqual(fields)
    }
    const mint: TestMint = {
      supply: 1n,
      decimals: 6,
      mintAuthority: null,
      freezeAuthority: null,
      hasOther: true,
    }
    expect(readTokenAccount(legacyMint(mint))).toBeNull()
    expect(readTokenAccount(extendedMint(mint))).toBeNull()
  })
})

describe('metadata of Metaplex', () => {
  it('says whether it may change, behind any creators, and counts for its own mint alone', () => {
    fc.assert(
      fc.property(fc.webUrl(), fc.boolean(), fc.nat(5), (uri, isMutable, creators) => {
        const mint = mintOfSymbol('legacy')
        const account = metaplexMetadata({ mint, uri, isMutable, creators })
        expect(readMetadata(account, mint)).toEqual({ isMutable, uri })
        expect(readMetadata(account, mintOfSymbol('another'))).toBeNull()
        expect(readMetadata({ ...account, owner: mintOfSymbol('another program') }, mint)).toBeNull()
        for (let at = 0; at < account.data.length; at += 17)
          readMetadata({ ...account, data: account.data.subarray(0, at) }, mint)
      }),
      { numRuns: 10 },
    )
  })
})

it('holders are owners, without the curve and pools; shares are of the supply; ten count', () => {
  const account = fc.record({ owner: fc.nat(14), amount: fc.bigInt({ min: 0n, max: 10n ** 15n }) })
  fc.assert(
    fc.property(fc.array(account, { maxLength: 20 }), fc.nat(14), (accounts, market) => {
      const held = accounts.map(({ owner, amount }) => ({ mint: 'm', owner: `w${owner}`, amount }))
      const supply = held.reduce((sum, { amount }) => sum + amount, 0n) + 10n ** 6n
      const found = largestHolders(held, { supply, decimals: 6 }, (owner) => owner === `w${market}`)
      const sums = Array.from({ length: 15 }, (_, owner) =>
        held
          .filter((each) => each.owner === `w${owner}` && owner !== market)
          .reduce((sum, { amount }) => sum + Number(amount), 0),
      ).filter((sum) => sum > 0)
      const largest = sums.toSorted((a, b) => b - a)
      expect(found?.holders.map(({ amount }) => amount)).toEqual(largest.map((sum) => sum / 1e6))
      const top = largest.slice(0, 10).reduce((sum, each) => sum + each, 0)
      expect(found?.top10Pct).toBeCloseTo((100 * top) / Number(supply), 4)
    }),
  )
  expect(largestHolders([], { supply: 0n, decimals: 6 }, () => false)).toBeNull()
})
