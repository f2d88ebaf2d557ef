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
    : { tokens: 10_000, followers: 100, rate: 10_000, seconds: 3 }

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
  (kind: string, feed: 'ws' | 'lines', flushMs = 0) =>
  async (options: RunOptions): Promise<Measured> => {
    const args = [...argsOf(kind), SERVER, kind, `${sizes(options).tokens}`, `${flushMs}`]
    const server = await startProgram(process.execPath, args, settingsOf(kind))
    try {
      return await measure(server, feed, options)
    } finally {
      await endProgram(server)
    }
  }

async function coalesced(options: RunOptions): Promise<Measured> {
  const { metrics, checksum } = await served('mintlake', 'ws', FOLLOW_FLUSH_MS_DEFAULT)(options)
  return {
    metrics: { ...metrics, beyondMs: Math.max(0.01, metrics.p99Ms - FOLLOW_FLUSH_MS_DEFAULT) },
    checksum,
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

const COALESCED = `ours, coalesced at ${FOLLOW_FLUSH_MS_DEFAULT} ms`
const C = 'C broadcast'
const NODE = 'node:http'
const comparison = (
  metric: string,
  against: string,
  unit: string,
  gate?: number,
  stretch?: number,
): Comparison => ({ title: `follow, ${metric}`, metric, against, unit, gate, stretch, better: 'lower' })

export const question: Question = {
  name: 'follow',
  title: 'a hundred followers of 10 000 trades a second',
  rounds: 3,
  variants: [COALESCED],
  candidates: {
    ours: served('mintlake', 'ws'),
    [COALESCED]: coalesced,
    [NODE]: served('node-http', 'lines'),
    [C]: limit,
  },
  comparisons: [
    { ...comparison('p50Ms', C, 'ms', 2, 1.2), title: 'follow, 100 clients × 10 000 ticks/s: p50' },
    { ...comparison('p99Ms', C, 'ms', 4, 1.5), title: 'follow: p99' },
    { ...comparison('cpuShare', NODE, 'cores', 0.75, 0.55), title: 'follow: CPU' },
    { ...comparison('p99Ms', NODE, 'ms'), title: 'follow: p99' },
    {
      title: `follow, coalesced at ${FOLLOW_FLUSH_MS_DEFAULT} ms as by default: p99 beyond it`,
      metric: 'beyondMs',
      of: COALESCED,
      unit: 'ms',
      gate: 10,
      stretch: 2,
      better: 'lower',
    },
    {
      ...comparison('cpuShare', NODE, 'cores', 0.75, 0.6),
      title: `follow, coalesced at ${FOLLOW_FLUSH_MS_DEFAULT} ms as by default: CPU`,
      of: COALESCED,
    },
  ],
  prepare: () => {
    compiled(LIMIT)
    compiled(FOLLOWERS)
  },
}
