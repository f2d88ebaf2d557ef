// Latency and server CPU of following: 10 000 trades a second, no token twice within a second, a hundred followers of the whole
// market. Compared with node:http and with a C program that copies each price into a prepared row. Every row has to reach
// every follower.
import { fileURLToPath } from 'node:url'
import { FOLLOW_FLUSH_MS_DEFAULT } from '../../src/http/limits.ts'
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import type { Comparison, Measured, Question, RunOptions } from '../harness.ts'
import { compiled } from '../harness.ts'
import { argsOf, endProgram, FOLLOWERS, followed, type Running, settingsOf, startProgram } from '../load.ts'

const SERVER = fileURLToPath(new URL('../servers/follow-server.ts', import.meta.url))
const LIMIT = new URL('../limits/broadcast.c', import.meta.url)

const sizes = ({ small }: RunOptions) =>
  small
    ? { tokens: 2_000, followers: 10, rate: 500, seconds: 0.3 }
    : { tokens: 10_000, followers: 100, rate: 10_000, seconds: 10 }

/** Pushes trades into a running server and reads its followers' streams. */
async function measure(
  { port, pid, more: [feedPort, rowBytes] }: Running,
  feed: 'ws' | 'lines',
  options: RunOptions,
): Promise<Measured> {
  const { tokens, followers, rate, seconds } = sizes(options)
  const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
  const load = { feed, feedPort, port, pid, mints, followers, rate, seconds, rowBytes }
  const { p50Ms, p99Ms, p999Ms, rows, cpuSeconds, loadCpuSeconds } = await followed(load)
  const cpuShare = Math.max(0.01, cpuSeconds) / seconds
  return {
    metrics: { p50Ms, p99Ms, p999Ms, cpuShare, loadCpuShare: loadCpuSeconds / seconds },
    checksum: `${rows} rows`,
  }
}

const served =
  (kind: string, feed: 'ws' | 'lines', flushMs = FOLLOW_FLUSH_MS_DEFAULT) =>
  async (options: RunOptions): Promise<Measured> => {
    const args = [...argsOf(kind), SERVER, kind, `${sizes(options).tokens}`, `${flushMs}`]
    const server = await startProgram(process.execPath, args, settingsOf(kind))
    try {
      return await measure(server, feed, options)
    } finally {
      await endProgram(server)
    }
  }

/** Size of a market row. */
function rowBytes(): number {
  const market = new Market({ tokensMax: 1 })
  const [ts, mint] = [Date.now(), mintOfSymbol('token 1000')]
  market.apply({ type: 'token', mint, ts, name: 'Token 1000', symbol: 'T1000', totalSupply: 1e9 }, ts)
  market.apply({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1e9 }, ts)
  return market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 1 }).ndjson.length
}

async function limit(options: RunOptions): Promise<Measured> {
  const bytes = rowBytes()
  const server = await startProgram(compiled(LIMIT), [`${bytes}`])
  try {
    return await measure({ ...server, more: [server.port, bytes] }, 'ws', options)
  } finally {
    await endProgram(server)
  }
}

const AT_ONCE = 'ours, each change at once'
const C = 'C broadcast'
const NODE = 'node:http'
const comparison = (title: string, metric: string, more: Partial<Comparison> = {}): Comparison => ({
  title,
  metric,
  unit: metric === 'cpuShare' ? 'cores' : 'ms',
  better: 'lower',
  ...more,
})

export const question: Question = {
  name: 'follow',
  title: 'a hundred followers of 10 000 trades a second',
  rounds: 3,
  variants: [AT_ONCE],
  candidates: {
    ours: served('mintlake', 'ws'),
    [AT_ONCE]: served('mintlake', 'ws', 0),
    [NODE]: served('node-http', 'lines'),
    [C]: limit,
  },
  comparisons: [
    comparison('follow, 100 clients × 10 000 ticks/s: p50', 'p50Ms'),
    comparison('follow: p99', 'p99Ms', { gate: 3 }),
    comparison('follow: CPU', 'cpuShare', { against: NODE, gate: 0.6 }),
    comparison('follow, each change at once: p50', 'p50Ms', {
      ...{ of: AT_ONCE, against: C, gate: 2, stretch: 1.2 },
    }),
    comparison('follow, each change at once: p99', 'p99Ms', {
      ...{ of: AT_ONCE, against: C, gate: 4, stretch: 1.5 },
    }),
    comparison('follow, each change at once: p99', 'p99Ms', { of: AT_ONCE, against: NODE }),
    comparison('follow, each change at once: CPU', 'cpuShare', { of: AT_ONCE, against: NODE }),
  ],
  prepare: () => {
    compiled(LIMIT)
    compiled(FOLLOWERS)
  },
}
