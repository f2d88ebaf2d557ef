// A cluster to be measured: nats-server, a writer and readers as `npm start` runs them, without limits and with a market that is pushed.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { hasNatsServer, type NatsServer, startNatsServer } from '../../scripts/nats-server.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { NEEDS_NATS, onCore, serverArgs } from '../harness.ts'
import { endProgram, type Running } from '../load.ts'

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url))
const START_MS_MAX = 60_000
const POLL_MS = 50
/** Launches in one body. */
const PUSHED_TOGETHER = 2_000
const FLAGS = ['--port', '0', '--log-level', 'warn', '--read-limit-anonymous', '0', '--read-limit-keyed', '0']
const WRITER_FLAGS = [
  ...['--feed', 'none', '--record', 'true', '--register-limit', '0'],
  ...['--submit-limits', 'rate=0,cooldown-ms=0', '--lake-tidy', 'every-ms=20000'],
]

export interface Cluster {
  writer: Running
  readers: Running[]
  nats: NatsServer | null
  mints: string[]
  end(): Promise<void>
}

export interface ClusterOptions {
  tokens: number
  readers: number
  /** False: one process without a bus, to compare with. */
  bus?: boolean
  /** Core of each reader; the writer and NATS are on the first one. Two of a kind would share a core. */
  readerCores?: readonly (0 | 1)[]
}

async function startNode(core: 0 | 1, flags: readonly string[]): Promise<Running> {
  const args = [...serverArgs(), START, ...FLAGS, ...flags]
  const child: ChildProcess = spawn(...onCore(core, process.execPath, args), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MINTLAKE_FEED_KEY: 'bench' },
  })
  const port = await new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX)
    child.once('exit', (code) => reject(new Error(`a node ended with ${code}`)))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const url = /^listening on (\S+)$/.exec(line)?.[1]
      if (url === undefined) return
      clearTimeout(timer)
      resolve(Number(new URL(url).port))
    })
  })
  return { child, pid: child.pid!, port, more: [] }
}

async function untilTrue(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + START_MS_MAX
  while (!(await isTrue())) {
    if (performance.now() > untilMs) throw new Error(`${what} took too long`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

const urlOf = ({ port }: Running, path: string): string => `http://127.0.0.1:${port}${path}`
const isReady = async (node: Running): Promise<boolean> => (await fetch(urlOf(node, '/readyz'))).ok

async function tokensOf(node: Running): Promise<number> {
  const health = (await (await fetch(urlOf(node, '/health'))).json()) as { market: { tokens: number } }
  return health.market.tokens
}

async function fill(writer: Running, mints: readonly string[]): Promise<void> {
  const ts = Date.now()
  for (let from = 0; from < mints.length; from += PUSHED_TOGETHER) {
    const lines = mints.slice(from, from + PUSHED_TOGETHER).flatMap((mint, at) => [
      { type: 'token', mint, ts, name: `Token ${from + at}`, symbol: `T${from + at}`, totalSupply: 1e9 },
      { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 },
    ])
    const answer = await fetch(urlOf(writer, '/api/v1/ingest'), {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-ndjson', Authorization: 'Bearer bench' },
      body: lines.map((line) => JSON.stringify(line)).join('\n'),
    })
    if (!answer.ok) throw new Error(await answer.text())
  }
}

/** Starts it, and waits until every reader has the whole market. */
async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { tokens, readers: readerCount, bus = true, readerCores = [] } = options
  if (!hasNatsServer()) throw new Error(NEEDS_NATS)
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
  const started: Running[] = []
  let nats: NatsServer | null = null
  const end = async () => {
    for (const node of started.toReversed()) await endProgram(node)
    await nats?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    nats = bus ? await startNatsServer({ dir: join(folder, 'nats') }) : null
    const flags = ['--data-dir', join(folder, 'data'), '--tokens-max', `${tokens}`, ...WRITER_FLAGS]
    const busFlags = nats === null ? [] : ['--bus', nats.url]
    const writer = await startNode(0, [...flags, ...(nats === null ? [] : ['--role', 'writer']), ...busFlags])
    started.push(writer)
    await untilTrue('the start of the writer', () => isReady(writer))
    const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
    await fill(writer, mints)
    const readers: Running[] = []
    for (let index = 0; index < readerCount; index++) {
      const reader = await startNode(readerCores[index] ?? 0, ['--role', 'reader', ...busFlags])
      started.push(reader)
      readers.push(reader)
      await untilTrue('the start of a reader', () => isReady(reader))
      await untilTrue('a reader', async () => (await tokensOf(reader)) === tokens)
    }
    return { writer, readers, nats, mints, end }
  } catch (error) {
    await end()
    throw error
  }
}

/** Measures with a cluster that ends afterwards. */
export async function onCluster<Result>(
  options: ClusterOptions,
  measure: (cluster: Cluster) => Promise<Result>,
): Promise<Result> {
  const cluster = await startCluster(options)
  try {
    return await measure(cluster)
  } finally {
    await cluster.end()
  }
}

/** The node that clients use: the first reader, or the writer to compare it with. */
export type Through = 'reader' | 'writer'

export const nodeOf = ({ writer, readers }: Cluster, through: Through): Running =>
  through === 'reader' ? readers[0] : writer
