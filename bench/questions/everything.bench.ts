// Everything at once, the server and all of its processes on one core: pushed trades, pages, snapshots, submissions and followers, on a
// fixed schedule; then the reads alone. Then the same load times a factor from more clients, until an answer's p99 passes 100 ms or what is due
// cannot be sent any more; then twice of that from many more, and back. Beside it a server such as one puts together in a week from well-known parts.
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { registerAgent, submitRequest } from '../clients/http-connection.ts'
import { random } from '../datasets/random.ts'
import { RecordedTrades } from '../datasets/recorded-trades.ts'
import {
  compiled,
  cpuSeconds,
  inFolder,
  jsonOf,
  lessIsBetter,
  type Measured,
  onCore,
  type Question,
  type RunOptions,
} from '../harness.ts'
import { endProgram, type Running, startProgram, startServer } from '../load.ts'
import type { Pauses } from '../servers/pauses.ts'
import { installPeerStores } from '../servers/peer-stores.ts'

const ROADS = new URL('../limits/roads.c', import.meta.url)
const WEEK_STACK = fileURLToPath(new URL('../servers/week-stack.ts', import.meta.url))
const STACK = 'fastify, Map, sorted-btree, better-sqlite3, ws'
const PER_POST = 200
const POSTS = 200
const AGENTS = 1_000
const PAGE = '/api/v1/market?format=ndjson&limit=100'
/** What the peer's rows have: most of what followers cost is the bytes of rows that changed. */
const FOLLOWED =
  'mint,name,symbol,priceUsd,usd_market_cap,volume_24h_usd,buys_24h,sells_24h,last_trade_timestamp,hot_score'
/** Submissions are for tokens that are not traded, so that they agree with the server. */
const UNTRADED_SHARE = 0.1
const P99_MS_MAX = 100
/** What is due and unsent at the end of a step is a backlog that grows. */
const BACKLOG_MS_MAX = 250
/** Below 1 on machines on which the load itself is too much. */
const FACTORS = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10]
/** How many times more connections each road has while more than the usual load is measured: an answer must not hold up what is due next. */
const CLIENTS = 4
/** As many more at twice of what is sustained: what overloads a server are those who do not wait for each other. */
const CLIENTS_OF_TWICE = 32
/** No connection has more time than this between two requests: after ten seconds the server ends one that is idle. */
const CONNECTION_IDLE_S_MAX = 5
/** After a load beyond what is sustained: how much longer answers may take than they do at it. */
const P99_TIMES = 3
/** The sizes of the issue that this question was made for. */
const LOAD = { trades: 20_000, pages: 300, snapshots: 300, submissions: 100, followers: 100 }

const sizesOf = ({ small, full }: RunOptions) =>
  small
    ? { tokens: 1_000, scale: 0.02, warmMs: 200, ms: 500, stepMs: 300, factors: [1] }
    : {
        tokens: 100_000,
        scale: 1,
        warmMs: 20_000,
        ms: full ? 600_000 : 60_000,
        stepMs: 10_000,
        factors: FACTORS,
      }

const NAMES = ['pages', 'snapshots', 'submissions', 'pushes'] as const
type Name = (typeof NAMES)[number]
const READS = ['pages', 'snapshots'] as const satisfies Name[]
interface Latencies {
  count: number
  p50: number
  p99: number
  p999: number
  max: number
  refused: number
  backlogMs: number
  /** Each second of the time that was measured. */
  seconds: { count: number; refused: number; p99: number }[]
}
type Answered = Record<Name, Latencies> & {
  seconds: number
  follow: { p50: number; p99: number; bytes: number }
}

/** How many connections each road has, its requests a second, and the status it expects. */
const ROADS_OF: Record<Name, { connections: number; perSecond: number; status: number }> = {
  pages: { connections: 16, perSecond: LOAD.pages, status: 200 },
  snapshots: { connections: 16, perSecond: LOAD.snapshots, status: 200 },
  submissions: { connections: 50, perSecond: LOAD.submissions, status: 201 },
  pushes: { connections: 4, perSecond: LOAD.trades / PER_POST, status: 200 },
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`

function pushRequest(trades: RecordedTrades): string {
  let lines = ''
  for (let count = 0; count < PER_POST; count++) {
    const { mint, side, tokenAmount, wallet, tx } = trades.next(0) as Record<string, unknown>
    const priceUsd = 1e-5 * (1 + (count % 7) / 100)
    const text = JSON.stringify({ type: 'trade', mint, ts: 0, side, tokenAmount, priceUsd, wallet, tx })
    lines += `${text.replace('"ts":0', '"ts":@@@@@@@@@@@@@')}\n`
  }
  return (
    `POST /api/v1/ingest HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench\r\n` +
    `Content-Type: application/x-ndjson\r\nContent-Length: ${lines.length}\r\n\r\n${lines}`
  )
}

/** Writes the requests of every road. @returns the files */
async function writeRequests(folder: string, port: number, tokens: number): Promise<Record<Name, string>> {
  const next = random(3)
  const traded = Math.round(tokens * (1 - UNTRADED_SHARE))
  const trades = new RecordedTrades(traded)
  const keys: string[] = []
  for (let index = 0; index < Math.min(AGENTS, tokens); index++)
    keys.push(await registerAgent(port, `agent ${index}`))
  const mintAt = (index: number): string => mintOfSymbol(`token ${index}`)
  const requests: Record<Name, string[]> = {
    pages: [get(PAGE)],
    snapshots: Array.from({ length: 1_000 }, () =>
      get(`/api/v1/datapoint?mint=${mintAt(Math.floor(next() ** 3 * tokens))}`),
    ),
    submissions: keys.map((key, index) => submitRequest(key, mintAt(traded + (index % (tokens - traded))))),
    pushes: Array.from({ length: POSTS }, () => pushRequest(trades)),
  }
  const files = {} as Record<Name, string>
  for (const name of NAMES) {
    files[name] = join(folder, name)
    writeFileSync(files[name], requests[name].map((request) => `${request}\0`).join(''))
  }
  return files
}

interface Subject {
  start(options: RunOptions, folder: string): Promise<Running>
  follow: string
}

const ours: Subject = {
  start: ({ small }) =>
    startServer('mintlake', {
      ...{
        tokens: sizesOf({ small, full: false }).tokens,
        ticksPerSecond: 0,
        body: 'page',
        record: true,
        tellsPauses: true,
      },
    }),
  follow: get(`/api/v1/market?follow=1&format=ndjson&limit=1&fields=${FOLLOWED}`),
}

const weekStack: Subject = {
  start: (options, folder) =>
    startProgram(process.execPath, ['--no-warnings', WEEK_STACK, `${sizesOf(options).tokens}`, folder]),
  follow:
    'GET / HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
}

/** CPU seconds of the processes that a server has started. */
const childrenCpuSeconds = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean),
    )
    .reduce((sum, child) => sum + cpuSeconds(Number(child)) + childrenCpuSeconds(Number(child)), 0)

/** The pauses of a server's collector since it was asked last. */
async function pausesOf({ child }: Running): Promise<Pauses> {
  // After ten minutes they are more than a pipe gives at once.
  const lines = createInterface({ input: child.stdout! })
  const told = once(lines, 'line')
  child.kill('SIGUSR2')
  const [line] = await told
  lines.close()
  return JSON.parse(line) as Pauses
}

function pauseMetrics({ young, old }: Pauses, seconds: number): Record<string, number> {
  const youngMs = young.reduce((total, ms) => total + ms, 0)
  return {
    youngMs: youngMs / Math.max(1, young.length),
    youngPercent: youngMs / 10 / seconds,
    oldPer5Min: (old.length * 300) / seconds,
    oldMsMax: Math.max(0, ...old),
  }
}

type Load = (
  factor: number,
  warmMs: number,
  ms: number,
  clients?: number,
  names?: readonly Name[],
) => Promise<Answered>

const measure = (subject: Subject) => (options: RunOptions) =>
  inFolder(async (folder): Promise<Measured> => {
    const { tokens, scale, warmMs, ms, stepMs, factors } = sizesOf(options)
    const server = await subject.start(options, folder)
    try {
      const files = await writeRequests(folder, server.port, tokens)
      writeFileSync(join(folder, 'follow'), `${subject.follow}\0`)
      const load: Load = (factor, warm, measured, clients = 1, names = NAMES) => {
        const roads = names.flatMap((name) => {
          const { connections, perSecond, status } = ROADS_OF[name]
          const each = perSecond * scale * factor
          const most = Math.ceil(each * CONNECTION_IDLE_S_MAX)
          return [name, Math.min(connections * clients, most), each, status, files[name]]
        })
        const followers = Math.ceil(LOAD.followers * scale)
        const args = [server.port, warm, measured, followers, join(folder, 'follow'), ...roads]
        return jsonOf(...onCore(1, compiled(ROADS), args.map(String)), warm + measured + 60_000)
      }
      await load(1, 0, warmMs)
      await pausesOf(server)
      const [before, childrenBefore] = [cpuSeconds(server.pid), childrenCpuSeconds(server.pid)]
      const answered = await load(1, 0, ms)
      const { seconds, follow } = answered
      const metrics: Record<string, number> = {
        ...pauseMetrics(await pausesOf(server), seconds),
        serverCores: (cpuSeconds(server.pid) - before) / seconds,
        otherCores: (childrenCpuSeconds(server.pid) - childrenBefore) / seconds,
        followP50Ms: follow.p50,
        followP99Ms: follow.p99,
      }
      for (const name of NAMES) {
        if (answered[name].refused > 0) throw new Error(`${answered[name].refused} ${name} were refused`)
        Object.assign(metrics, {
          [`${name}P50Ms`]: answered[name].p50,
          [`${name}P99Ms`]: answered[name].p99,
          [`${name}P999Ms`]: answered[name].p999,
        })
      }
      const alone = await load(1, stepMs / 2, 2 * stepMs, 1, READS)
      for (const name of READS) metrics[`${name}Times`] = answered[name].p99 / alone[name].p99
      const factor = await sustainedFactor(load, stepMs, factors)
      metrics.sustained = LOAD.trades * scale * factor
      Object.assign(metrics, await beyond(load, factor || 1, stepMs))
      return { metrics, checksum: `${NAMES.map((name) => answered[name].count > 0)}` }
    } finally {
      await endProgram(server)
    }
  })

/** @returns the largest factor at which every road keeps up, 0 if none. Each has a second try: a stall of the machine is no proof. */
async function sustainedFactor(load: Load, stepMs: number, factors: readonly number[]): Promise<number> {
  let sustained = 0
  for (const factor of factors) {
    if (!(await keepsUp(load, factor, stepMs)) && !(await keepsUp(load, factor, stepMs))) break
    sustained = factor
  }
  return sustained
}

async function keepsUp(load: Load, factor: number, stepMs: number): Promise<boolean> {
  const answered = await load(factor, stepMs / 2, stepMs, CLIENTS)
  return NAMES.every((name) => {
    const { p99, backlogMs, refused } = answered[name]
    return p99 <= P99_MS_MAX && backlogMs <= BACKLOG_MS_MAX && refused === 0
  })
}

/** Twice of what is sustained, and what is sustained again. */
async function beyond(load: Load, factor: number, stepMs: number): Promise<Record<string, number>> {
  const usual = await load(factor, stepMs / 2, stepMs, CLIENTS)
  const twice = await load(2 * factor, stepMs, stepMs, CLIENTS_OF_TWICE)
  const after = await load(factor, 0, stepMs, CLIENTS)
  const metrics: Record<string, number> = { twiceTimes: 0, backSeconds: 0 }
  for (const name of NAMES) {
    const { count, p99, refused } = twice[name]
    metrics[`${name}TwiceP99Ms`] = p99
    metrics[`${name}RefusedPercent`] = (100 * refused) / Math.max(1, refused + count)
    if (usual[name].count > 0) metrics.twiceTimes = Math.max(metrics.twiceTimes!, p99 / usual[name].p99)
    const worst = after[name].seconds.findLastIndex(
      (second) => second.refused > 0 || second.p99 > P99_TIMES * usual[name].p99,
    )
    metrics.backSeconds = Math.max(metrics.backSeconds!, worst + 1)
  }
  return metrics
}

const beside = (title: string, metric: string, unit: string): Question['comparisons'][number] => ({
  ...{ title: `everything at once: ${title}`, metric, unit, against: STACK, better: 'lower' },
})

export const question: Question = {
  name: 'everything',
  title:
    'everything at once on one core: 20 000 trades/s, 300 pages/s, 300 snapshots/s, 100 submissions/s, 100 followers',
  rounds: 1,
  onDemand: [STACK],
  candidates: { ours: measure(ours), [STACK]: measure(weekStack) },
  comparisons: [
    {
      title: 'everything at once: trades/s at which it still keeps up, everything else in proportion',
      ...{ metric: 'sustained', unit: '/s', against: STACK, better: 'higher' },
    },
    ...NAMES.flatMap((name) => [
      lessIsBetter(`everything at once: ${name} p50`, `${name}P50Ms`, 'ms'),
      beside(`${name} p99`, `${name}P99Ms`, 'ms'),
      beside(`${name} p99.9`, `${name}P999Ms`, 'ms'),
    ]),
    ...READS.map((name) =>
      lessIsBetter(`everything at once: ${name} p99, in p99s of reads alone`, `${name}Times`, '×', {
        gate: 3,
      }),
    ),
    beside(
      'twice of what it keeps up with: the p99 of what is accepted, in p99s of before, the worst road',
      'twiceTimes',
      '×',
    ),
    beside('until p99 is at most three times that of before, after twice', 'backSeconds', 's'),
    ...NAMES.flatMap((name) => [
      beside(`${name} p99 at twice`, `${name}TwiceP99Ms`, 'ms'),
      beside(`${name} refused at twice`, `${name}RefusedPercent`, '%'),
    ]),
    beside('age of a follower’s newest row, p50', 'followP50Ms', 'ms'),
    beside('age of a follower’s newest row, p99', 'followP99Ms', 'ms'),
    beside('CPU of the server', 'serverCores', 'cores'),
    beside('CPU of its other processes', 'otherCores', 'cores'),
    beside('a young collection, mean', 'youngMs', 'ms'),
    beside('time in young collections', 'youngPercent', '%'),
    beside('old collections in five minutes', 'oldPer5Min', ''),
    beside('longest old collection', 'oldMsMax', 'ms'),
  ],
  prepare({ small }) {
    if (!small) installPeerStores()
    compiled(ROADS)
  },
}
