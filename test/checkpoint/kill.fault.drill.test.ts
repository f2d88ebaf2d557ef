// @module-tag drill
// The real program under a load of pushes is killed at random moments, again and again, with and without checkpoints in between:
// every trade acknowledged well before is there, each once and in order.
import { rmSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { seededRandom } from '../support/disk/simulated-disk.ts'
import { type ServerProcess, spawnServer, temporaryFolder } from '../support/test-server.ts'

/** What a killed server may have in memory: 100 ms, and more where the machine is busy with other work. */
const IN_MEMORY_MS = 600
const MINTS = Array.from({ length: 10 }, (_, index) => mintOfSymbol(`killed ${index}`))
const RECENT_TRADES = 20

let dataDir: string
let server: ServerProcess | null = null
afterEach(async () => {
  await server?.kill()
  rmSync(dataDir, { recursive: true, force: true })
})

/** The trades of a token, in the order in which they were sent. */
interface Sent {
  txs: string[]
  /** When each was acknowledged, ms. */
  acknowledgedAtMs: number[]
}

const sentOf = new Map<string, Sent>(MINTS.map((mint) => [mint, { txs: [], acknowledgedAtMs: [] }]))

/** Pushes until the server is killed. */
async function load(to: ServerProcess): Promise<void> {
  for (let body = 0; ; body++) {
    const records = Array.from({ length: 30 }, (_, index) => {
      const mint = MINTS[(body + index) % MINTS.length]
      const tx = `${process.pid}-${sentOf.get(mint)!.txs.push('') - 1}`
      sentOf.get(mint)!.txs[sentOf.get(mint)!.txs.length - 1] = tx
      return { type: 'trade', mint, ts: Date.now(), side: 'buy', tokenAmount: 1, priceUsd: 1, tx }
    })
    try {
      await to.client.push(...records)
    } catch {
      return
    }
    const nowMs = performance.now()
    for (const { txs, acknowledgedAtMs } of sentOf.values())
      while (acknowledgedAtMs.length < txs.length) acknowledgedAtMs.push(nowMs)
  }
}

/** Compares what the server has with what was sent to those before it. What was lost counts as never sent from then on. */
async function check(by: ServerProcess, killedAtMs: number): Promise<void> {
  for (const [mint, { txs, acknowledgedAtMs }] of sentOf) {
    const bars = (await by.client.get(`/api/v1/ohlc?mint=${mint}&tf=1s&limit=1000`)).body
    const held = (bars.data as { n: number }[]).reduce((sum, { n }) => sum + n, 0)
    const expected = acknowledgedAtMs.filter((atMs) => atMs < killedAtMs - IN_MEMORY_MS).length
    expect(held).toBeGreaterThanOrEqual(expected)
    expect(held).toBeLessThanOrEqual(txs.length)
    const { recentTrades } = (await by.client.get(`/api/v1/datapoint?mint=${mint}`)).body.data
    const newest = txs.slice(Math.max(0, held - RECENT_TRADES), held).reverse()
    expect(recentTrades.map(({ tx }: { tx: string }) => tx)).toEqual(newest)
    txs.length = held
    acknowledgedAtMs.length = 0
    while (acknowledgedAtMs.length < held) acknowledgedAtMs.push(0)
    const { meta } = (await by.client.get(`/api/v1/ohlc?mint=${mint}&tf=1m&limit=2`)).body
    expect(meta.incomplete.length).toBeGreaterThan(0)
  }
}

/** Many kills are simulated (test/simulate); this one is real. */
const KILLS = Number(process.env.MINTLAKE_TEST_MARKET_KILLS ?? 1)

test(`every trade of a while before the kill is there once, and the bar in progress is marked: ${KILLS} kills`, async () => {
  dataDir = temporaryFolder()
  for (const sent of sentOf.values()) sent.txs.length = sent.acknowledgedAtMs.length = 0
  const random = seededRandom(Date.now() % 1_000_000)
  let killedAtMs = 0
  for (let kill = 0; kill <= KILLS; kill++) {
    const settings = {
      'checkpoint-interval-ms': kill % 2 === 0 ? '86400000' : '700',
      'lake-flush-ms': '500',
    }
    server = await spawnServer(settings, dataDir)
    if (kill > 0) await check(server, killedAtMs)
    if (kill === KILLS) break
    const loading = load(server)
    await new Promise((resolve) => setTimeout(resolve, 800 + random() * 1_000))
    killedAtMs = performance.now()
    await server.kill()
    await loading
  }
  expect(MINTS.every((mint) => sentOf.get(mint)!.txs.length > 100)).toBe(true)
})
