// Accounts of the token programs and of Metaplex, written by the programs' own libraries.
import { getMetadataAccountDataSerializer } from '@metaplex-foundation/mpl-token-metadata'
import { publicKey, none as umiNone, some as umiSome } from '@metaplex-foundation/umi'
import { type Address, address, none, some } from '@solana/kit'
import * as legacy from '@solana-program/token'
import * as extended from '@solana-program/token-2022'
import { METADATA_PROGRAM } from '../../../src/ingest/solana/enrichment/mint-facts.ts'

export interface TestAccount {
  owner: string
  data: Buffer
}

const orNone = (value: string | null) => (value === null ? none<Address>() : some(address(value)))

export interface TestFee {
  epoch: bigint
  maximumFee: bigint
  transferFeeBasisPoints: number
}
export interface TestMint {
  supply: bigint
  decimals: number
  mintAuthority: string | null
  freezeAuthority: string | null
  /** Of Token-2022. */
  fees?: { older: TestFee; newer: TestFee; authority: string | null } | undefined
  pointer?: { authority: string | null; address: string | null } | undefined
  metadata?: { mint: string; updateAuthority: string | null; uri: string; name?: string } | undefined
  /** An extension that says nothing of what we read. */
  hasOther?: boolean
}

export function legacyMint({ supply, decimals, mintAuthority, freezeAuthority }: TestMint): TestAccount {
  const fields = { supply, decimals, isInitialized: true }
  const authorities = { mintAuthority: orNone(mintAuthority), freezeAuthority: orNone(freezeAuthority) }
  const data = Buffer.from(legacy.getMintEncoder().encode({ ...fields, ...authorities }))
  return { owner: legacy.TOKEN_PROGRAM_ADDRESS, data }
}

export function extendedMint(mint: TestMint): TestAccount {
  const { supply, decimals, mintAuthority, freezeAuthority, fees, pointer, metadata, hasOther } = mint
  const extensions: extended.ExtensionArgs[] = []
  if (hasOther)
    extensions.push({
      __kind: 'MintCloseAuthority',
      closeAuthority: address(extended.TOKEN_2022_PROGRAM_ADDRESS),
    })
  if (fees)
    extensions.push({
      __kind: 'TransferFeeConfig',
      // The library writes the zero address where there is none.
      transferFeeConfigAuthority: address(fees.authority ?? '11111111111111111111111111111111'),
      withdrawWithheldAuthority: address('11111111111111111111111111111111'),
      withheldAmount: 5n,
      ...{ olderTransferFee: fees.older, newerTransferFee: fees.newer },
    })
  if (pointer)
    extensions.push({
      ...{ __kind: 'MetadataPointer', authority: orNone(pointer.authority) },
      metadataAddress: orNone(pointer.address),
    })
  if (metadata)
    extensions.push({
      ...{ __kind: 'TokenMetadata', updateAuthority: orNone(metadata.updateAuthority) },
      ...{ mint: address(metadata.mint), name: metadata.name ?? 'Näme', symbol: 'S', uri: metadata.uri },
      additionalMetadata: new Map([['key', 'value']]),
    })
  const data = extended.getMintEncoder().encode({
    ...{ supply, decimals, isInitialized: true },
    ...{ mintAuthority: orNone(mintAuthority), freezeAuthority: orNone(freezeAuthority) },
    extensions: extensions.length === 0 ? none() : some(extensions),
  })
  return { owner: extended.TOKEN_2022_PROGRAM_ADDRESS, data: Buffer.from(data) }
}

/** An account of a wallet. */
export function tokenAccount(
  { mint, owner, amount }: { mint: string; owner: string; amount: bigint },
  isExtended = false,
): TestAccount {
  const fields = {
    ...{ mint: address(mint), owner: address(owner), amount, delegatedAmount: 0n },
    ...{ delegate: none<Address>(), isNative: none<bigint>(), closeAuthority: none<Address>() },
  }
  if (!isExtended) {
    const data = legacy.getTokenEncoder().encode({ ...fields, state: legacy.AccountState.Initialized })
    return { owner: legacy.TOKEN_PROGRAM_ADDRESS, data: Buffer.from(data) }
  }
  const data = extended.getTokenEncoder().encode({
    ...{ ...fields, state: extended.AccountState.Initialized },
    extensions: some([{ __kind: 'ImmutableOwner' }]),
  })
  return { owner: extended.TOKEN_2022_PROGRAM_ADDRESS, data: Buffer.from(data) }
}

export function metaplexMetadata(options: {
  mint: string
  uri: string
  isMutable: boolean
  creators?: number
}): TestAccount {
  const { mint, uri, isMutable, creators = 0 } = options
  const authority = publicKey('11111111111111111111111111111111')
  const creator = { address: authority, verified: true, share: 0 }
  const data = getMetadataAccountDataSerializer().serialize({
    ...{
      updateAuthority: authority,
      mint: publicKey(mint),
      name: 'Name'.padEnd(32, '\0'),
      symbol: 'S'.padEnd(10, '\0'),
    },
    ...{ uri: uri.padEnd(200, '\0'), sellerFeeBasisPoints: 0, primarySaleHappened: false, isMutable },
    creators: creators === 0 ? umiNone() : umiSome(Array.from({ length: creators }, () => creator)),
    ...{ editionNonce: umiNone(), tokenStandard: umiNone(), collection: umiNone(), uses: umiNone() },
    ...{ collectionDetails: umiNone(), programmableConfig: umiNone() },
  })
  return { owner: METADATA_PROGRAM, data: Buffer.from(data) }
}
