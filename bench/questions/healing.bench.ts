// How fast a server makes up for an outage of the chain, and whether who reads pages notices: beside the same market without an outage.
// Requests are not bounded, as with a node of one's own: what is measured is the server.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { HttpConnection } from '../clients/http-connection.ts'
import { type Measured, type Question, quantile, type RunOptions } from '../harness.ts'
import { endProgram, startProgram, startServer } from '../load.ts'

const NODE = fileURLToPath(new URL('../servers/chain-outage.ts', import.meta.url))
const PAGE = 'GET /api/v1/market?format=ndjson&limit=100 HTTP/1.1\r\nHost: bench\r\n\r\n'
const TOKENS_MAX = 16_384
const READERS = 4
const READ_EVERY_MS = 10
const HEALTH_EVERY_MS = 50
const WITHOUT = 'the same market without an outage'

/** Transactions a second; seconds before the outage and of it; and for how long pages are read where there was none. */
const sizesOf = ({ small }: RunOptions) =>
  small
    ? { rate: 100, warmS: 1, awayS: 1, quietS: 0.5, healS: 60 }
    : { rate: 1_000, warmS: 20, awayS: 60, quietS: 8, healS: 120 }

interface Healing {
  events: number
  healed: number
  isHealing: boolean
}

async function healingOf(port: number): Promise<Healing> {
  const answer = await fetch(`http://127.0.0.1:${port}/health`)
  const { feeds } = (await answer.json()) as {
    feeds: { healing: { events: number; healed: number; missing: object[]; now: object | null } }[]
  }
  const { events, healed, missing, now } = feeds[0].healing
  if (missing.length > 0) throw new Error(`not all was made up for: ${JSON.stringify(missing)}`)
  return { events, healed, isHealing: now !== null }
}

/** Reads pages until it is told to stop. @returns how long each took, ms, ascending */
function readPages(port: number): { stop: () => Promise<number[]> } {
  let isOver = false
  const latencies: number[] = []
  const read = async (delayMs: number) => {
    const connection = await HttpConnection.open(port)
    await sleep(delayMs)
    for (let dueMs = performance.now(); !isOver; dueMs += READ_EVERY_MS) {
      await sleep(Math.max(0, dueMs - performance.now()))
      const beganMs = performance.now()
      await connection.request(PAGE, 200)
      latencies.push(performance.now() - beganMs)
    }
    connection.close()
  }
  const running = Array.from({ length: READERS }, (_, index) => read((index * READ_EVERY_MS) / READERS))
  const stop = async () => {
    isOver = true
    await Promise.all(running)
    return latencies.toSorted((a, b) => a - b)
  }
  return { stop }
}

/** Waits for the end of a healing. @returns events that were fetched, and the seconds from the first of them to the last */
async function untilHealed(port: number, before: Healing, secondsMax: number): Promise<[number, number]> {
  const endMs = performance.now() + secondsMax * 1_000
  let firstMs: number | null = null
  let latest = { events: before.events, atMs: 0 }
  while (performance.now() < endMs) {
    const { events, healed, isHealing } = await healingOf(port)
    const nowMs = performance.now()
    if (isHealing) firstMs ??= nowMs
    if (events > latest.events) latest = { events, atMs: nowMs }
    if (healed > before.healed && !isHealing)
      return [
        events - before.events,
        Math.max(HEALTH_EVERY_MS, latest.atMs - (firstMs ?? latest.atMs)) / 1_000,
      ]
    await sleep(HEALTH_EVERY_MS)
  }
  throw new Error('the outage was not made up for in time')
}

async function measure(hasOutage: boolean, options: RunOptions): Promise<Measured> {
  const { rate, warmS, awayS, quietS, healS } = sizesOf(options)
  const node = await startProgram(
    process.execPath,
    ['--no-warnings', NODE, `${rate}`, `${hasOutage ? awayS : 0}`],
    {},
    1,
  )
  try {
    const server = await startServer('mintlake', {
      ...{ market: 'empty', tokens: TOKENS_MAX, ticksPerSecond: 0, body: 'page' },
      solanaRpc: `http://127.0.0.1:${node.port}`,
    })
    try {
      await sleep(warmS * 1_000)
      const before = await healingOf(server.port)
      const back = once(node.child.stdout!, 'data')
      node.child.kill('SIGUSR2')
      await back
      const pages = readPages(server.port)
      const [events, seconds] = hasOutage
        ? await untilHealed(server.port, before, healS)
        : await sleep(quietS * 1_000, [0, quietS])
      const latencies = await pages.stop()
      return {
        metrics: {
          ...(hasOutage && { eventsPerSecond: events / seconds }),
          ...{ p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) },
        },
        checksum: `${latencies.length > 0}`,
      }
    } finally {
      await endProgram(server)
    }
  } finally {
    await endProgram(node)
  }
}

const of = 'a market that makes up for an outage'

export const question: Question = {
  name: 'healing',
  title: 'a feed of the chain that makes up for an outage',
  rounds: 3,
  candidates: { [of]: (options) => measure(true, options), [WITHOUT]: (options) => measure(false, options) },
  comparisons: [
    { title: 'events healed', metric: 'eventsPerSecond', of, unit: 'events/s', better: 'higher' },
    {
      title: 'a page while healing: p99',
      metric: 'p99Ms',
      of,
      against: WITHOUT,
      unit: 'ms',
      better: 'lower',
    },
  ],
}
