// @module-tag drill
// The real server plays a tape of an hour, without any key: afterwards what it attaches to a submission about a token that it has
// watched since its launch is known, but for what the chain of the tape does not say.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  MAINNET_GENESIS,
  ORCA_OWNER,
  ORCA_SOL_USDC,
  PYTH_OWNER,
  PYTH_SOL_USD,
} from '../../../src/ingest/solana/programs.ts'
import { TapeWriter } from '../../../src/ingest/solana/tape.ts'
import { ENRICHED_FIELDS } from '../../../src/schema/features.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { lakeGlob, readSql } from '../../store/support.ts'
import { orcaAccount, pythAccount, ZERO_ADDRESS } from '../../support/chain/encode.ts'
import {
  extendedMint,
  legacyMint,
  metaplexMetadata,
  type TestAccount,
  tokenAccount,
} from '../../support/chain/token-accounts.ts'
import { logsNotification } from '../../support/chain/transaction.ts'
import { ChainWorld, SOL, USDC } from '../../support/chain/world.ts'
import { submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const START_MS = Date.UTC(2026, 10, 1, 12)
const SUPPLY = 1_000_000_000_000_000n
const NO_AUTHORITIES = { supply: SUPPLY, decimals: 6, mintAuthority: null, freezeAuthority: null }
const SUBSCRIPTIONS = [101, 102, 103, 104, 105]

let folder: string
let server: TestServer
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mintlake-enriched-'))
})
afterEach(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

const encode = ({ owner, data }: TestAccount) => ({ owner, data: [data.toString('base64'), 'base64'] })

/** A tape of a world, by the minute. */
class HourTape {
  readonly world = new ChainWorld(36, { startMs: START_MS, truncated: 0 })
  readonly writer: TapeWriter
  #atMs = START_MS

  constructor(path: string) {
    const clock = { now: () => this.#atMs, monotonicMs: () => this.#atMs }
    this.writer = new TapeWriter(path, 1e9, clock, () => {})
  }

  frame(frame: object): void {
    this.writer.frame(JSON.stringify({ jsonrpc: '2.0', ...frame }))
  }

  answer(accounts: Record<string, TestAccount>): void {
    const result = { context: { slot: this.world.slot }, value: Object.values(accounts).map(encode) }
    this.writer.answer('getMultipleAccounts', [Object.keys(accounts)], result)
  }

  begin(): void {
    this.writer.answer('getGenesisHash', [], MAINNET_GENESIS)
    const orca = { owner: ORCA_OWNER, data: orcaAccount(150) }
    this.answer({
      [PYTH_SOL_USD]: { owner: PYTH_OWNER, data: pythAccount(150, START_MS) },
      [ORCA_SOL_USDC]: orca,
    })
    for (const [index, result] of SUBSCRIPTIONS.entries()) this.frame({ id: index + 1, result })
  }

  /** A second passes, in which something is traded. */
  second(): void {
    const { world } = this
    world.pass(1_000)
    this.#atMs = world.nowMs
    if (world.nowMs % 60_000 === 0) {
      const value = encode({ owner: PYTH_OWNER, data: pythAccount(150, world.nowMs) })
      const params = { subscription: SUBSCRIPTIONS[3], result: { context: { slot: world.slot }, value } }
      this.frame({ method: 'accountNotification', params })
    }
    this.notify(world.tokens.length > 0 ? world.trade(world.pick()) : world.launch(SOL, false))
    this.frame({
      method: 'slotNotification',
      params: {
        subscription: SUBSCRIPTIONS[2],
        result: { parent: world.slot - 1, root: 1, slot: world.slot },
      },
    })
  }

  notify(transaction: Parameters<typeof logsNotification>[0]): void {
    const { method, params } = logsNotification(transaction, SUBSCRIPTIONS[0])
    this.frame({ method, params })
  }
}

/** Writes the tape. @returns the tokens, and which of them have no metadata on the chain */
async function writeTape(path: string): Promise<{ mints: string[]; bare: string; unheld: string }> {
  const tape = new HourTape(path)
  const { world } = tape
  tape.begin()
  // The feed was away until its first moment.
  world.pass(5_000)
  for (let index = 0; index < 12; index++) tape.notify(world.launch(index % 3 === 0 ? USDC : SOL, false))
  for (let second = 0; second < 4_200; second++) tape.second()
  const mints = world.tokens.map(({ mint }) => mint)
  const [bare, unheld, legacy] = mints
  const metadata = (mint: string) => ({ mint, updateAuthority: null, uri: 'https://x.example' })
  for (const mint of mints) {
    const pointer = { authority: null, address: mint }
    const account =
      mint === bare || mint === legacy
        ? legacyMint(NO_AUTHORITIES)
        : extendedMint({ ...NO_AUTHORITIES, pointer, metadata: metadata(mint) })
    tape.answer({ [mint]: account })
    if (mint === unheld) continue
    const [held, wallet] = ['an account', 'a wallet'].map((name) => mintOfSymbol(`${name} of ${mint}`))
    tape.answer({ [held]: tokenAccount({ mint, owner: wallet, amount: SUPPLY / 4n }) })
    tape.answer({ [wallet]: { owner: ZERO_ADDRESS, data: Buffer.alloc(0) } })
    const largest = {
      context: { slot: 1 },
      value: [{ address: held, amount: `${SUPPLY / 4n}`, decimals: 6 }],
    }
    tape.writer.answer('getTokenLargestAccounts', [mint, { commitment: 'confirmed' }], largest)
  }
  const address = await metaplexAddress(legacy)
  tape.answer({ [address]: metaplexMetadata({ mint: legacy, uri: 'https://x.example', isMutable: true }) })
  await tape.writer.close()
  return { mints, bare, unheld }
}

async function metaplexAddress(mint: string): Promise<string> {
  const { address, getAddressEncoder, getProgramDerivedAddress } = await import('@solana/kit')
  const program = address('metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s')
  const bytes = getAddressEncoder()
  const seeds = ['metadata', bytes.encode(program), bytes.encode(address(mint))]
  return (await getProgramDerivedAddress({ programAddress: program, seeds }))[0]
}

it('after an hour nothing is unknown but what the chain does not say, in DataPoints and in training rows', {
  timeout: 60_000,
}, async () => {
  const path = join(folder, 'hour.tape')
  const { mints, bare, unheld } = await writeTape(path)
  server = await openTestServer({
    feed: 'solana',
    'solana-tape': path,
    replay: 'speed=max',
    'submit-limits': 'rate=0',
  })
  const feed = async () => (await server.client.get('/health')).body.feeds[0]
  await expect.poll(feed, { timeout: 50_000 }).toMatchObject({ state: 'finished' })
  const key = await server.client.register()
  for (const mint of mints) {
    const { body } = await server.client.get(`/api/v1/datapoint?mint=${mint}`)
    const unknown = ENRICHED_FIELDS.filter((field) => body.data[field] === null)
    expect(unknown, mint).toEqual(unknownOf(mint))
    expect((await submit(server.client, key, submission(mint))).status).toBe(201)
  }
  await server.store.flushLake()
  const rows = await readSql(`SELECT * FROM ${lakeGlob(server.dataDir, 'training')}`)
  expect(rows.map(({ mint }) => mint).toSorted()).toEqual(mints.toSorted())
  for (const row of rows) {
    const unknown = ENRICHED_FIELDS.filter((field) => row[field] === null)
    expect(unknown, `${row.mint}`).toEqual(unknownOf(`${row.mint}`))
    expect(row.enriched_source).toBe('chain+trades')
    // Its metadata is an account of its own.
    if (row.mint === mints[2])
      expect(row).toMatchObject({ is_mutable_metadata: true, top10_holder_pct_onchain: 25 })
  }

  function unknownOf(mint: string): string[] {
    if (mint === bare) return ['is_mutable_metadata']
    return mint === unheld ? ['top10_holder_pct_onchain'] : []
  }
})
