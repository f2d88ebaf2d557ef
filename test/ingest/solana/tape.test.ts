// A tape of the chain: captured from a node, played through the same code, damaged at every place.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { captureTape } from '../../../src/ingest/solana/capture.ts'
import { endpointsOf } from '../../../src/ingest/solana/endpoints.ts'
import { ChainEnrichment } from '../../../src/ingest/solana/enrichment/chain-enrichment.ts'
import { ENRICH_RETRY_MS } from '../../../src/ingest/solana/limits.ts'
import { type Rpc, RpcClient } from '../../../src/ingest/solana/rpc.ts'
import { SolanaFeed } from '../../../src/ingest/solana/solana.ts'
import { openTape, type TapeEnd, TapeWriter } from '../../../src/ingest/solana/tape.ts'
import type { FeedStatus } from '../../../src/ingest/types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { PatchFields } from '../../../src/schema/datapoint.ts'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { extendedMint, legacyMint, tokenAccount } from '../../support/chain/token-accounts.ts'
import { ChainWorld } from '../../support/chain/world.ts'
import { runCommand } from '../../support/terminal.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const KEY = 'a-secret-key-of-the-endpoint'
const soon = { interval: 5, timeout: 10_000 }
let folder: string
let node: SolanaNode

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mintlake-tape-'))
  node = await SolanaNode.start()
})
afterEach(async () => {
  await node.close()
  rmSync(folder, { recursive: true, force: true })
})

const optionsOf = (out: string, signal: AbortSignal, bytesMax = 1e9) => ({
  ...{
    solana: {
      ...{ rpcUrls: [`${node.url}/${KEY}`], socketUrls: [], requestsPerSecond: 1_000 },
      commitment: 'confirmed' as const,
    },
  },
  ...{ out, bytesMax, timeMsMax: 60_000, signal },
})

/** Captures a random market. @returns the tape and the world behind it */
async function capture(steps: number): Promise<{ path: string; world: ChainWorld }> {
  const path = join(folder, 'chain.tape')
  const world = new ChainWorld(11, { startMs: Date.now() })
  node.setSolPrice(150, Date.now())
  const stopping = new AbortController()
  const written = vi.spyOn(TapeWriter.prototype, 'answer')
  const capturing = captureTape(optionsOf(path, stopping.signal), systemClock)
  await expect.poll(() => node.asked('logsSubscribe').length, soon).toBe(2)
  await expect.poll(() => node.asked('slotSubscribe').length, soon).toBe(1)
  const told = Array.from({ length: steps }, () => world.step())
  for (const [address, account] of world.accounts) node.accounts.set(address, account)
  for (const transaction of told) node.confirm(transaction)
  node.nextSlot()
  // The tape has everything once the feed has asked for what is truncated, and for the mint of each token.
  const truncated = told.filter(({ logs }) => logs.at(-1) === 'Log truncated').length
  await expect.poll(() => node.asked('getTransaction').length, soon).toBe(truncated)
  const asked = () =>
    new Set(node.asked('getMultipleAccounts').flatMap(({ params }) => params[0] as string[]))
  await expect.poll(() => world.tokens.every(({ mint }) => asked().has(mint)), soon).toBe(true)
  // And once it has what was answered: an answer that is on its way at the end is not in it.
  for (const method of ['getTransaction', 'getMultipleAccounts'])
    await expect
      .poll(() => {
        const answered = written.mock.calls.filter(([of]) => of === method)
        return node.asked(method).length - answered.length
      }, soon)
      .toBe(0)
  written.mockRestore()
  stopping.abort()
  expect(await capturing).toMatchObject({ end: 'stopped' })
  return { path, world }
}

async function play(path: string): Promise<MarketEvent[]> {
  const { sink, status } = await playWhole(path)
  if (status.problem) throw new Error(status.problem)
  return sink.data
}

async function playWhole(path: string): Promise<{ sink: MemorySink; status: FeedStatus }> {
  const sink = new MemorySink()
  const source = await openTape(path, 'max', () => performance.now())
  const held = new Set<string>()
  sink.reject = (event) => {
    if ('mint' in event) held.add(event.mint)
    return null
  }
  const options = { source, commitment: 'confirmed', pools: 'migrated', random: () => 0 } as const
  const feed = new SolanaFeed({ ...options, holds: (mint) => held.has(mint) }, sink, new MemoryLog())
  await feed.ready
  await expect.poll(() => feed.describe().state, soon).toMatch(/^(finished|failed)$/)
  await feed.stop()
  return { sink, status: feed.describe() }
}

const tradesOf = ({ data }: MemorySink) => data.filter(({ type }) => type === 'trade')

/** The tape with other lines between its head and its end. */
async function editTape(path: string, edit: (lines: Line[]) => Line[]): Promise<string> {
  const [head, ...rest] = gunzipSync(readFileSync(path)).toString().trimEnd().split('\n')
  const lines = edit(rest.slice(0, -1).map((line) => JSON.parse(line)))
  const texts = [head, ...[...lines, { end: lines.length }].map((line) => JSON.stringify(line))]
  const edited = join(folder, 'edited.tape')
  writeFileSync(edited, gzipSync(texts.map((line) => `${line}\n`).join('')))
  return edited
}

interface Line {
  at: number
  frame?: string
}
const isAnswer = ({ frame }: Line) => frame !== undefined && JSON.parse(frame).id !== undefined
const REFUSAL = JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32_601, message: 'no such method' } })

it('in which an endpoint refused what is needed goes on with the next one', async () => {
  const { path, world } = await capture(60)
  const edited = await editTape(path, (lines) =>
    lines.toSpliced(lines.findIndex(isAnswer), 0, { at: lines[0].at, frame: REFUSAL }),
  )
  const { sink, status } = await playWhole(edited)
  expect(tradesOf(sink)).toHaveLength(world.ledger.length)
  expect(status).toMatchObject({ state: 'finished', problem: null, connects: 1 })
})

it('in which nothing was subscribed to has failed, with the reason', async () => {
  const { path } = await capture(20)
  const edited = await editTape(path, (lines) => [
    ...lines.filter(({ frame }) => frame === undefined),
    { at: lines[0].at, frame: REFUSAL },
  ])
  const { status } = await playWhole(edited)
  expect(status).toMatchObject({ state: 'failed', problem: expect.stringContaining('no such method') })
})

it('of several connections tells that something may be missing between them', async () => {
  const { path, world } = await capture(60)
  const edited = await editTape(path, (lines) => {
    const middle = lines.findLastIndex(({ frame }) => frame?.includes('logsNotification'))
    const later = (line: Line) => ({ ...line, at: line.at + 60_000 })
    const again = lines.filter(isAnswer).map((line) => ({ ...line, at: lines[middle].at }))
    return [...lines.slice(0, middle), ...[...again, ...lines.slice(middle)].map(later)]
  })
  const { sink, status } = await playWhole(edited)
  expect(tradesOf(sink)).toHaveLength(world.ledger.length)
  expect(status).toMatchObject({ state: 'finished', problem: null, connects: 2, disconnects: 1 })
  const [, , lost, back] = sink.links
  expect(lost).toMatchObject({ type: 'disconnect', feed: 'solana' })
  expect(back).toMatchObject({ type: 'reconnect', feed: 'solana' })
  expect(back.ts - (lost as { sinceMs: number }).sinceMs).toBeGreaterThanOrEqual(60_000)
})

it('captured and played gives every trade of the chain once, the same each time, and holds no address of an endpoint', async () => {
  const { path, world } = await capture(300)
  const events = await play(path)
  const trades = events.flatMap((event) =>
    event.type === 'trade' ? [`${event.tx}:${event.eventIndex}`] : [],
  )
  expect(new Set(trades)).toEqual(new Set(world.ledger.map((each) => `${each.signature}:${each.eventIndex}`)))
  expect(trades).toHaveLength(world.ledger.length)
  expect(events).toContainEqual(expect.objectContaining({ type: 'solPrice', usd: 150 }))
  expect(await play(path)).toEqual(events)
  expect(gunzipSync(readFileSync(path)).toString()).not.toContain(KEY)
})

/** What the chain says of tokens through `rpc`; `meanwhile` happens before what could not be had is asked for again. */
async function enrich(rpc: Pick<Rpc, 'call'>, mints: readonly string[], meanwhile = () => {}) {
  const said = new Map<string, PatchFields>()
  let nowMs = 1_000_000
  const enrichment = new ChainEnrichment({
    ...{ rpc, commitment: 'confirmed', signal: new AbortController().signal, collectMs: 0 },
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
    heldSince: () => 0,
    hottest: () => [],
    apply: ({ mint, fields }) => {
      const { enriched_at: _, ...others } = fields
      said.set(mint, { ...said.get(mint), ...others })
    },
  })
  const answered = async () => {
    while (enrichment.pending !== null) await enrichment.pending
  }
  enrichment.want(mints, 'traded')
  await answered()
  meanwhile()
  nowMs += ENRICH_RETRY_MS
  enrichment.tick()
  await answered()
  return said
}

it('says of tokens what the node did: of one that it did not have at first, of a closed account, of a fee that has ended', async () => {
  const path = join(folder, 'tokens.tape')
  const [late, taxed, held] = ['late', 'taxed', 'held'].map((symbol) => mintOfSymbol(symbol))
  const plain = { supply: 10n ** 15n, decimals: 6, mintAuthority: null, freezeAuthority: null }
  const fee = (epoch: bigint, transferFeeBasisPoints: number) => ({
    ...{ epoch, maximumFee: 10n, transferFeeBasisPoints },
  })
  node.accounts.set(
    taxed,
    extendedMint({ ...plain, fees: { authority: null, older: fee(1n, 100), newer: fee(2n, 0) } }),
  )
  node.accounts.set(held, legacyMint(plain))
  for (const [name, amount] of [
    ['open', 10n ** 14n],
    ['closed', 10n ** 13n],
  ] as const)
    node.accounts.set(mintOfSymbol(name), tokenAccount({ mint: held, owner: mintOfSymbol('wallet'), amount }))
  node.missingAccounts.add(mintOfSymbol('closed'))
  const tape = new TapeWriter(path, 1e9, systemClock, () => {})
  const rpc = new RpcClient({
    ...{ endpoints: endpointsOf([node.url]), requestsPerSecond: 1_000, tape },
  })
  const said = await enrich(rpc, [late, taxed, held], () => {
    node.nextSlot()
    node.accounts.set(late, legacyMint(plain))
  })
  await tape.close()
  expect(said.get(late)).toMatchObject({ has_mint_authority: false })
  expect(said.get(taxed)).toMatchObject({ transfer_fee_enabled: false })
  expect(said.get(held)).toMatchObject({ top10_holder_pct_onchain: 10 })
  const played = await openTape(path, 'max', () => 0)
  expect(await enrich(played.rpc, [late, taxed, held])).toEqual(said)
})

it('ends before its answers are more than can be played', async () => {
  const path = join(folder, 'answers.tape')
  const answersMax = 10_000
  let end: TapeEnd | null = null
  const tape = new TapeWriter(path, 1e9, systemClock, (why) => (end = why), answersMax)
  const answer = (address: string) =>
    tape.answer('getMultipleAccounts', [[address]], { value: [{ owner: 'x'.repeat(3_000) }] })
  for (const address of ['one', 'two', 'three']) answer(address)
  expect(end).toBeNull()
  answer('four')
  expect(end).toBe('answers')
  await tape.close()
  await openTape(path, 'max', () => 0, answersMax)
})

it('is played whatever was answered again: only what is kept counts', async () => {
  const path = join(folder, 'again.tape')
  const tape = new TapeWriter(path, 1e9, systemClock, () => {})
  for (let time = 0; time < 10; time++)
    tape.answer('getMultipleAccounts', [['one']], { value: [{ owner: 'x'.repeat(3_000) }] })
  await tape.close()
  await openTape(path, 'max', () => 0, 10_000)
  await expect(openTape(path, 'max', () => 0, 1_000)).rejects.toThrow('larger than 1000 bytes')
})

it('ends at its size, and is whole then', async () => {
  const path = join(folder, 'small.tape')
  node.setSolPrice(150, Date.now())
  const capturing = captureTape(optionsOf(path, new AbortController().signal, 3_000), systemClock)
  await expect.poll(() => node.asked('slotSubscribe').length, soon).toBe(1)
  for (let slot = 0; slot < 50; slot++) node.nextSlot()
  const report = await capturing
  expect(report).toMatchObject({ end: 'bytes' })
  await openTape(path, 'max', () => 0)
})

it('ends where the disk is far behind, and is whole then', async () => {
  const path = join(folder, 'slow.tape')
  let end: TapeEnd | null = null
  const tape = new TapeWriter(path, Number.POSITIVE_INFINITY, systemClock, (why) => {
    end = why
  })
  const frame = 'x'.repeat(1_000_000)
  // Nothing is written within one turn, as with a disk that takes nothing.
  for (let count = 0; count < 100 && end === null; count++) tape.frame(frame)
  expect(end).toBe('slow disk')
  expect(tape.lines).toBeLessThan(80)
  await tape.close()
  const lines = gunzipSync(readFileSync(path)).toString().trimEnd().split('\n')
  expect(lines).toHaveLength(tape.lines + 2)
  expect(JSON.parse(lines.at(-1)!)).toEqual({ end: tape.lines })
})

it('that exists is not overwritten', async () => {
  const path = join(folder, 'there')
  writeFileSync(path, 'mine')
  await expect(captureTape(optionsOf(path, new AbortController().signal), systemClock)).rejects.toThrow(
    'exists already',
  )
  expect(readFileSync(path, 'utf8')).toBe('mine')
})

it('of an endpoint that is not reached is no file: the next attempt may take its name', async () => {
  const path = join(folder, 'none.tape')
  const options = optionsOf(path, new AbortController().signal)
  const solana = { ...options.solana, rpcUrls: ['http://127.0.0.1:1'] }
  const { lines, problem } = await captureTape({ ...options, solana, timeMsMax: 50 }, systemClock)
  expect({ lines, isThere: existsSync(path) }).toEqual({ lines: 0, isThere: false })
  expect(problem).toContain('127.0.0.1:1')
})

it('says how many connections ended on the way, and that there was none at the end', async () => {
  const stopping = new AbortController()
  const path = join(folder, 'broken.tape')
  const capturing = captureTape(optionsOf(path, stopping.signal), systemClock)
  const subscribed = (count: number) =>
    expect.poll(() => node.asked('slotSubscribe').length, soon).toBe(count)
  await subscribed(1)
  node.nextSlot()
  node.drop()
  await subscribed(2)
  node.nextSlot()
  node.handshake = 503
  node.drop()
  await expect.poll(() => node.handshakesRefused, soon).toBeGreaterThan(0)
  stopping.abort()
  expect(await capturing).toMatchObject({ disconnects: 2, isConnected: false, end: 'stopped' })
})

it('for longer than a timer can wait, or for what is no number, is refused, and no file is made', async () => {
  const path = join(folder, 'long.tape')
  for (const [flag, value, range] of [
    ['--seconds', '2592000', 'from 1 to 2147483'],
    ['--seconds', 'abc', 'from 1 to 2147483'],
    ['--size-mb', '0x10', 'of 1 or more'],
  ] as const) {
    const { code, err } = await runCommand(['capture', '--solana-rpc', node.url, '--out', path, flag, value])
    expect({ code, err, isThere: existsSync(path) }).toEqual({
      code: 2,
      err: `mintlake: ${flag}: "${value}" is not a whole number ${range}\nsee mintlake capture --help\n`,
      isThere: false,
    })
  }
})

it('cut or changed anywhere is refused with a sentence, and never played as if it were whole', async () => {
  const { path } = await capture(120)
  const bytes = readFileSync(path)
  const damaged = join(folder, 'damaged')
  for (let at = 0; at < bytes.length; at += Math.ceil(bytes.length / 40)) {
    writeFileSync(damaged, bytes.subarray(0, at))
    await expect(
      openTape(damaged, 'max', () => 0),
      `cut at ${at}`,
    ).rejects.toThrow(damaged)
  }
  const lines = gunzipSync(bytes).toString().trimEnd().split('\n')
  for (const kept of [
    lines.slice(0, -1),
    lines.toSpliced(5, 1),
    lines.toSpliced(5, 0, 'no JSON'),
    lines.slice(1),
    [],
  ]) {
    writeFileSync(damaged, gzipSync(kept.map((line) => `${line}\n`).join('')))
    await expect(openTape(damaged, 'max', () => 0)).rejects.toThrow(damaged)
  }
  await expect(openTape(join(folder, 'nowhere'), 'max', () => 0)).rejects.toThrow('cannot be read')
})
