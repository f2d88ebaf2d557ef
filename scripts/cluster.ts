// npm run cluster -- --readers 2 [flags of the writer]
// A cluster on this machine, to try it out: nats-server, a writer and readers, each a process of its own. Prints their addresses, and
// stops all of them with Ctrl-C, SIGTERM or a closed terminal. Nothing that ends is started again.
import './check-runtime.mjs'
import './end-with-npm.mjs'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ConfigError, readConfig } from '../src/config/config.ts'
import { isReaderSetting } from '../src/config/reader-settings.ts'
import { SETTINGS, SETTINGS_BY_PATH } from '../src/config/settings.ts'
import { ENDING_SIGNALS } from '../src/lib/process/ending-signals.ts'
import { keysOf } from '../src/lib/record.ts'
import { hasNatsServer, INSTALL_HINT, type NatsServer, startNatsServer } from './nats-server.ts'
import { SERVER_FLAGS } from './program.mjs'

const START = fileURLToPath(new URL('start.mjs', import.meta.url))
const READERS_MAX = 64
const READERS_DEFAULT = 2
const EXIT_USAGE = 2
/** Others than those of npm start, so that both run beside one another. */
const PORT_DEFAULT = 8180
const DATA_DIR_DEFAULT = './data-cluster'
/** What this script says itself: the nodes are here, and so is NATS. */
const OWN_SETTINGS = ['role', 'bus.servers', 'bus.login', 'bus.password', 'bus.nodeUrl'] as const
const USAGE =
  'npm run cluster -- [--readers 0..64] [--nats-port PORT] [flags of the writer: npm start -- --help all lists them]\n' +
  `Without --port the writer has ${PORT_DEFAULT} and the readers the ports behind it; without --data-dir all is in ${DATA_DIR_DEFAULT}.`

interface Plan {
  readers: number
  natsPort: number
  /** Below the writer's data folder, so that it is found again by the next start. */
  natsDir: string
  writerFlags: string[]
  readerFlags: string[]
  /** Of the writer; readers have those behind it, or free ones where it is 0. */
  port: number
}

class UsageError extends Error {}

type Role = 'writer' | 'reader'

/** The settings that a node uses. */
const settingsOf = (role: Role) =>
  keysOf(SETTINGS_BY_PATH)
    .filter((path) => (role === 'reader' ? isReaderSetting(path) : path !== 'bus.reader'))
    .map((path) => SETTINGS_BY_PATH[path])

const hasFlag = (settings: ReturnType<typeof settingsOf>, flag: string): boolean =>
  settings.some((setting) => setting.flag === flag)

/** The variables that a node uses: it refuses those of the other role. */
function environmentOf(role: Role): NodeJS.ProcessEnv {
  const used = new Set(settingsOf(role).map(({ env }) => env))
  const unused = Object.values(SETTINGS_BY_PATH).flatMap(({ env }) => (used.has(env) ? [] : env))
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !unused.includes(name)))
}

/** `--name value` and `--name=value`, in order. @throws UsageError */
function flagsOf(args: readonly string[]): [string, string][] {
  const flags: [string, string][] = []
  for (let at = 0; at < args.length; at++) {
    const [, name, joined] = /^--([a-z0-9-]+)(?:=(.*))?$/s.exec(args[at]) ?? []
    if (name === undefined) throw new UsageError(`"${args[at]}" is not a flag`)
    const value = joined ?? args[++at]
    if (value === undefined) throw new UsageError(`--${name} has no value`)
    flags.push([name, value])
  }
  return flags
}

/** @throws UsageError or ConfigError */
function planOf(args: readonly string[]): Plan {
  const flags = flagsOf(args)
  for (const { flag, env } of OWN_SETTINGS.map((path) => SETTINGS_BY_PATH[path])) {
    if (flag !== null && flags.some(([name]) => name === flag))
      throw new UsageError(`--${flag} is set by this script`)
    if (process.env[env]) throw new UsageError(`${env} is set by this script`)
  }
  const wholeNumber = (name: string, fallback: number, max: number): number => {
    const text = flags.findLast(([given]) => given === name)?.[1] ?? `${fallback}`
    if (!/^\d{1,5}$/.test(text) || Number(text) > max)
      throw new UsageError(`--${name} must be between 0 and ${max}`)
    return Number(text)
  }
  const textOf = (chosen: [string, string][]): string[] =>
    chosen.flatMap(([name, value]) => [`--${name}`, value])
  const others = [
    ...defaultFlags(flags),
    ...flags.filter(([name]) => name !== 'readers' && name !== 'nats-port'),
  ]
  const ofWriter = settingsOf('writer')
  const writerFlags = textOf(
    others.filter(([flag]) => !hasFlag(settingsOf('reader'), flag) || hasFlag(ofWriter, flag)),
  )
  const config = readConfig(
    ['--role', 'writer', '--bus', 'nats://127.0.0.1:4222', ...writerFlags],
    environmentOf('writer'),
  )
  return {
    readers: wholeNumber('readers', READERS_DEFAULT, READERS_MAX),
    natsPort: wholeNumber('nats-port', 0, 65_535),
    natsDir: join(config.dataDir, 'nats'),
    port: config.port,
    writerFlags,
    // Each reader gets a port of its own.
    readerFlags: textOf(
      others.filter(([flag]) => flag !== SETTINGS.port.flag && hasFlag(settingsOf('reader'), flag)),
    ),
  }
}

/** What is given by neither flag nor environment. */
function defaultFlags(flags: readonly [string, string][]): [string, string][] {
  const defaults = [
    [SETTINGS.port, `${PORT_DEFAULT}`],
    [SETTINGS.dataDir, DATA_DIR_DEFAULT],
  ] as const
  return defaults.flatMap(([{ flag, env }, value]): [string, string][] =>
    flag === null || process.env[env] || flags.some(([name]) => name === flag) ? [] : [[flag, value]],
  )
}

interface Node {
  name: string
  child: ChildProcess
  ended: Promise<void>
}

/** From then on an end is no news. */
let isStopping = false

/** Starts a node. Resolves with its address once it listens; its lines go to the output, behind its name. */
async function startNode(name: string, role: Role, flags: readonly string[], nodes: Node[]): Promise<string> {
  // Whoever stops all nodes would not know of one that starts after that.
  if (isStopping) throw new Error(`${name} is not started any more`)
  const child = spawn(process.execPath, [...SERVER_FLAGS, START, '--role', role, ...flags], {
    // With this name of its npm script it ends by itself where this process is killed.
    env: { ...environmentOf(role), npm_lifecycle_event: 'start' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  nodes.push({ name, child, ended })
  createInterface({ input: child.stderr }).on('line', (line) => console.error(`${name}: ${line}`))
  const lines = createInterface({ input: child.stdout })
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      console.log(`${name}: ${line}`)
      const url = /^listening on (\S+)$/.exec(line)?.[1]
      if (url !== undefined) resolve(url)
    })
    ended.then(() => {
      if (!isStopping) console.error(`${name} has ended with ${child.exitCode ?? child.signalCode}`)
      reject(new Error(`${name} did not start`))
    })
  })
}

/** Readers first: they finish what they forward. NATS last. */
async function stopAll(nodes: readonly Node[], nats: NatsServer): Promise<void> {
  isStopping = true
  for (const { child, ended } of nodes.toReversed()) {
    child.kill('SIGTERM')
    await ended
  }
  await nats.stop()
}

async function startAll(plan: Plan, nats: NatsServer, nodes: Node[]): Promise<void> {
  const busFlags = ['--bus', nats.url]
  const addresses = [`nats-server ${nats.url}`]
  const writer = await startNode('writer', 'writer', [...busFlags, ...plan.writerFlags], nodes)
  addresses.push(`writer      ${writer}`)
  for (let count = 1; count <= plan.readers; count++) {
    const port = plan.port === 0 ? 0 : plan.port + count
    const flags = [...busFlags, ...plan.readerFlags, '--port', `${port}`]
    addresses.push(`reader ${count}    ${await startNode(`reader ${count}`, 'reader', flags, nodes)}`)
  }
  console.log(`\n${addresses.join('\n')}\n\nCtrl-C stops all of them.`)
}

async function main(): Promise<void> {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    console.log(USAGE)
    return
  }
  const plan = planOf(args)
  if (!hasNatsServer()) throw new UsageError(`nats-server is not installed: ${INSTALL_HINT}`)
  const nats = await startNatsServer({ dir: plan.natsDir, port: plan.natsPort, detached: true })
  const nodes: Node[] = []
  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => {
    stopping ??= stopAll(nodes, nats)
    return stopping
  }
  for (const signal of ENDING_SIGNALS) process.on(signal, () => void stop())
  nats.child.once('exit', () => {
    if (!isStopping) console.error('nats-server has ended')
  })
  try {
    await startAll(plan, nats, nodes)
    await Promise.all(nodes.map(({ ended }) => ended))
  } catch (error) {
    if (!isStopping) {
      console.error(`mintlake: ${error instanceof Error ? error.message : error}`)
      process.exitCode = 1
    }
  }
  await stop()
}

main().catch((error: Error) => {
  console.error(`mintlake: ${error.message}`)
  const isUsage = error instanceof UsageError || error instanceof ConfigError
  if (isUsage) console.error(USAGE)
  process.exit(isUsage ? EXIT_USAGE : 1)
})
