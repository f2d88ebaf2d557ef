// Starts the real nats-server with JetStream on this machine: for scripts/cluster.ts, the tests and the benchmark.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Debian has it in a folder that is on the PATH of root alone. One that lies elsewhere is named by NATS_SERVER. */
const PROGRAM =
  process.env.NATS_SERVER ?? (existsSync('/usr/sbin/nats-server') ? '/usr/sbin/nats-server' : 'nats-server')
const START_MS_MAX = 15_000
const PORT_LINE = /Listening for client connections on \S+:(\d+)/
const READY_LINE = /Server is ready/

/** What to tell where it is missing. */
export const INSTALL_HINT =
  'install it with `apt-get install nats-server` (Debian, Ubuntu), or from https://nats.io/download with NATS_SERVER=PATH'

/** Whether nats-server can be run here. */
export const hasNatsServer = (): boolean => spawnSync(PROGRAM, ['-v']).error === undefined

export interface NatsServerOptions {
  /** Where its configuration and its streams lie. It is made where it is missing. */
  dir: string
  /** 0: a free one. */
  port?: number
  /** Largest size of all its streams on disk. */
  storageBytesMax?: number
  /** Lines of its configuration besides, such as `sync_interval`. */
  config?: string
  /** Whether Ctrl-C in the terminal leaves it alone: who started it stops it. */
  detached?: boolean
  /** The command that runs it, such as one that enters a namespace and then becomes it. */
  within?: readonly string[]
  /** Its name among the servers of a cluster, the port at which the others reach it, and those of the others. */
  member?: { name: string; port: number; others: readonly number[] }
}

export interface NatsServer {
  child: ChildProcess
  port: number
  url: string
  dir: string
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>
}

/**
 * Ends a process when this one ends, also by SIGKILL: nats-server has no way to notice that. A shell does, by the end of its input.
 */
function endWithThisProcess(child: ChildProcess): void {
  const watcher = spawn('sh', ['-c', 'read -r end; kill "$0"', `${child.pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  // Without a shell it is left to who stops it.
  watcher.on('error', () => undefined)
  watcher.unref()
  // Its number may be that of another process from then on.
  child.once('exit', () => watcher.kill('SIGKILL'))
}

/** Starts it; it takes connections when this resolves. Rejects where it does not start, with what it logged last. */
export async function startNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const { dir, port = 0, storageBytesMax, config = '', detached = false, within = [] } = options
  mkdirSync(dir, { recursive: true })
  const path = join(dir, 'nats.conf')
  const storage = storageBytesMax === undefined ? '' : `max_file_store: ${storageBytesMax}`
  writeFileSync(
    path,
    `listen: "127.0.0.1:${port === 0 ? -1 : port}"
jetstream { store_dir: ${JSON.stringify(streamsFolder(dir))}, max_memory_store: 64MB
  ${storage} }
${memberLines(options)}
${config}
`,
  )
  const [command = PROGRAM, ...words] = [...within, PROGRAM, '-c', path]
  const child = spawn(command, words, { stdio: ['ignore', 'ignore', 'pipe'], detached })
  if (child.pid !== undefined) endWithThisProcess(child)
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await exited
  }
  try {
    const used = await untilReady(child)
    return {
      ...{ child, port: used, url: `nats://127.0.0.1:${used}`, dir },
      stop: () => end('SIGTERM'),
      kill: () => end('SIGKILL'),
    }
  } catch (error) {
    if (child.pid !== undefined) await end('SIGKILL')
    throw error
  }
}

function memberLines({ member }: NatsServerOptions): string {
  if (member === undefined) return ''
  const { name, port, others } = member
  const routes = others.map((other) => `"nats://127.0.0.1:${other}"`)
  return `server_name: "${name}"
cluster { name: "servers", listen: "127.0.0.1:${port}", routes: [${routes.join(', ')}] }`
}

const streamsFolder = (dir: string): string => join(dir, 'streams')

/** Deletes what a stopped one has kept. */
export const clearNatsServer = (dir: string): void =>
  rmSync(streamsFolder(dir), { recursive: true, force: true })

/** @returns the port */
function untilReady(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let port = 0
    let lastLine = ''
    const fail = (reason: string) => reject(new Error(`nats-server ${reason}: ${lastLine}`))
    const timer = setTimeout(() => fail('did not start in time'), START_MS_MAX)
    child.once('error', ({ message }) => fail(message))
    child.once('exit', (code) => {
      clearTimeout(timer)
      fail(`ended with ${code}`)
    })
    if (child.stderr === null) return
    // Its lines are read to the end, so that it is not held up by a full pipe.
    createInterface({ input: child.stderr }).on('line', (line) => {
      lastLine = line
      port = Number(PORT_LINE.exec(line)?.[1] ?? port)
      if (!READY_LINE.test(line)) return
      clearTimeout(timer)
      resolve(port)
    })
  })
}
