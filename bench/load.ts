// Starts servers on core 0 and loads them from core 1. The figure that is gated is work per CPU second of the server, which
// does not depend on the speed of the load generator.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type Core,
  compiled,
  cpuSeconds,
  inFolder,
  jsonOf,
  type Measured,
  onCore,
  type RunOptions,
  rssBytes,
  serverArgs,
} from './harness.ts'
import type { ServerOptions } from './servers/server.ts'

const SERVER = fileURLToPath(new URL('servers/server.ts', import.meta.url))
const LOAD = new URL('limits/load.c', import.meta.url)
const PEER_STORE_SERVER = fileURLToPath(new URL('servers/submission-server.ts', import.meta.url))
const PUSHERS = fileURLToPath(new URL('clients/pushers.ts', import.meta.url))
const START_TIMEOUT_MS = 120_000
const END_TIMEOUT_MS = 30_000

export interface Running {
  child: ChildProcess
  pid: number
  port: number
  /** Further numbers that it printed after its port. */
  more: number[]
}

/** Starts a program that prints its port, possibly followed by more numbers. */
export function startProgram(
  command: string,
  args: readonly string[],
  settings: NodeJS.ProcessEnv = {},
  core: Core = 0,
): Promise<Running> {
  const env = { ...process.env, ...settings }
  const child = spawn(...onCore(core, command, args), { stdio: ['ignore', 'pipe', 'inherit'], env })
  // A candidate that is ended early leaves no server behind, which would take from the next one.
  const end = (): void => void child.kill('SIGKILL')
  process.once('exit', end)
  child.once('exit', () => process.off('exit', end))
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS)
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
    child.stdout!.once('data', (line) => {
      clearTimeout(timer)
      const [port, ...more] = String(line).split(' ').map(Number)
      resolve({ child, pid: child.pid!, port, more })
    })
  })
}

/** Stops a program and waits for its exit, so that its last writes do not disturb the next candidate. */
export async function endProgram({ child }: Running): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS)
  child.kill('SIGTERM')
  await ended
  clearTimeout(timer)
}

/** Arguments of Node for a kind of server. */
export const argsOf = (kind: string): string[] => (kind === 'mintlake' ? serverArgs() : ['--no-warnings'])

/** The environment that scripts/start.mjs sets. */
export const settingsOf = (kind: string): NodeJS.ProcessEnv =>
  kind === 'mintlake' ? { UV_THREADPOOL_SIZE: '16' } : {}

/** A peer's store behind HTTP, in an empty folder. */
export const startPeerStore = (kind: 'sqlite' | 'lmdb', folder: string, core: Core = 0): Promise<Running> =>
  startProgram(process.execPath, ['--no-warnings', PEER_STORE_SERVER, kind, folder], {}, core)

export const startServer = (kind: string, options: ServerOptions, core: Core = 0): Promise<Running> =>
  startProgram(
    process.execPath,
    [...argsOf(kind), SERVER, kind, JSON.stringify(options)],
    settingsOf(kind),
    core,
  )

export interface Loaded {
  answers: number
  bytes: number
  p50Ms: number
  p99Ms: number
  /** What was asked for, or until the first answer was whole. */
  seconds: number
}

const load = (port: number, path: string, connections: number, seconds: number): Promise<Loaded> =>
  jsonOf(...onCore(1, compiled(LOAD), [`${port}`, path, `${connections}`, `${seconds}`]))

export interface LoadOptions extends RunOptions {
  connections?: number
}

/** Loads a running server, first to warm it up and then to measure. */
export async function measureLoad(server: Running, path: string, options: LoadOptions): Promise<Measured> {
  const connections = options.connections ?? 32
  await load(server.port, path, connections, options.small ? 0.1 : 1)
  const before = cpuSeconds(server.pid)
  const asked = options.small ? 0.3 : 3
  const { answers, bytes, p50Ms, p99Ms, seconds } = await load(server.port, path, connections, asked)
  const cpu = Math.max(0.01, cpuSeconds(server.pid) - before)
  return {
    metrics: {
      perCpuSecond: answers / cpu,
      perSecond: answers / seconds,
      p50Ms,
      p99Ms,
      cpuShare: cpu / seconds,
      rssMiB: rssBytes(server.pid) / 1_048_576,
    },
    checksum: `${Math.round(bytes / Math.max(1, answers))} bytes each`,
  }
}

const FOLLOW_PATH = '/api/v1/market?follow=1&format=ndjson&limit=1'
const FOLLOWERS_TIMEOUT_MS = 60_000
/** The program that pushes and follows; a question that uses it compiles it before it measures. */
export const FOLLOWERS = new URL('limits/followers.c', import.meta.url)

export interface FollowLoad {
  feed: 'ws' | 'lines'
  /** Takes the trades. */
  feedPort: number
  /** Of the server that is followed. */
  port: number
  pid: number
  mints: readonly string[]
  followers: number
  /** Trades a second. */
  rate: number
  seconds: number
  /** Size of a market row. */
  rowBytes: number
}

export interface Followed {
  p50Ms: number
  p99Ms: number
  p999Ms: number
  rows: number
  sent: number
  cpuSeconds: number
  loadCpuSeconds: number
}

/** Pushes trades and reads the followers' streams. @throws Error where rows are missing; they may come twice where the machine
 *  stalled for a second */
export const followed = (load: FollowLoad): Promise<Followed> =>
  inFolder(async (folder) => {
    const { feed, feedPort, port, pid, mints, followers, rate, seconds, rowBytes } = load
    const file = join(folder, 'mints')
    writeFileSync(file, mints.join('\n'))
    const args = [feed, feedPort, port, FOLLOW_PATH, followers, rate, seconds, file, pid, rowBytes].map(
      String,
    )
    const result = await jsonOf<Followed>(...onCore(1, compiled(FOLLOWERS), args), FOLLOWERS_TIMEOUT_MS)
    if (result.rows < result.sent * followers)
      throw new Error(`${result.rows} rows came of ${result.sent} trades to ${followers} followers`)
    return result
  })

/** Load of a pushing feed. */
export interface Push {
  /** Trades in one POST. */
  perPost: number
  /** Trades a second. */
  rate: number
}

const push = (port: number, { perPost, rate }: Push, seconds: number): Promise<{ accepted: number }> =>
  jsonOf(
    ...onCore(1, process.execPath, ['--no-warnings', PUSHERS, ...[port, perPost, rate, seconds].map(String)]),
  )

/** Pushes trades with wallets and transactions, of as many tokens. */
export const pushRecorded = (
  port: number,
  { perPost, rate, tokens }: Push & { tokens: number },
  seconds: number,
): Promise<{ accepted: number }> =>
  jsonOf(
    ...onCore(1, process.execPath, [
      '--no-warnings',
      PUSHERS,
      ...[port, perPost, rate, seconds, tokens].map(String),
    ]),
  )

/** CPU seconds that a server spends on a pushed trade while nobody reads. */
export async function pushCost(server: Running, pushed: Push, options: RunOptions): Promise<number> {
  await push(server.port, pushed, options.small ? 0.1 : 3)
  const before = cpuSeconds(server.pid)
  const { accepted } = await push(server.port, pushed, options.small ? 0.3 : 3)
  return (cpuSeconds(server.pid) - before) / accepted
}

/** Loads a server while trades are pushed to it. @param cost CPU seconds of a trade, which are subtracted */
export async function measurePushed(
  server: Running,
  path: string,
  pushed: Push,
  cost: number,
  options: LoadOptions,
): Promise<Measured> {
  const connections = options.connections ?? 32
  const both = (seconds: number) =>
    Promise.all([load(server.port, path, connections, seconds), push(server.port, pushed, seconds)])
  // Warm up with pushes and reads together, so that pages with changed rows are compiled too.
  await both(options.small ? 0.1 : 2)
  const before = cpuSeconds(server.pid)
  const seconds = options.small ? 0.3 : 3
  const [{ answers, bytes, p50Ms, p99Ms, seconds: loadedSeconds }, { accepted }] = await both(seconds)
  const cpu = cpuSeconds(server.pid) - before
  return {
    metrics: {
      perCpuSecond: answers / Math.max(0.01, cpu - accepted * cost),
      perCpuSecondPushesIncluded: answers / Math.max(0.01, cpu),
      perSecond: answers / loadedSeconds,
      pushedPerSecond: accepted / seconds,
      pushCostUs: cost * 1e6,
      p50Ms,
      p99Ms,
    },
    checksum: `${Math.round(bytes / Math.max(1, answers))} bytes each`,
  }
}

/** Starts a server, loads it and stops it. */
export async function loadServer(
  kind: string,
  server: ServerOptions,
  path: string,
  options: LoadOptions,
): Promise<Measured> {
  const running = await startServer(kind, server)
  try {
    return await measureLoad(running, path, options)
  } finally {
    await endProgram(running)
  }
}
