// Starts the real server on a free port with its own folder, in this process or in one that can be killed. It has no feed:
// tests push what they need.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type App, type AppOptions, startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { READER_SETTINGS } from '../../src/config/reader-settings.ts'
import { SETTINGS_BY_PATH } from '../../src/config/settings.ts'
import { checkConformance } from './conformance/conformance.ts'
import { discardRows, withLakeProcess } from './lake/lend.ts'

export const FEED_KEY = 'feed-key-of-the-tests'
export const ADMIN_KEY = 'admin-key-of-the-tests'
/** Allocating a market of full size would take a third of the start of each server. */
export const TOKENS_MAX = '1000'
const MAIN = new URL('../../src/main.ts', import.meta.url).pathname

export interface Settings {
  /** Flags without their dashes, for example `{'read-limit-anonymous': '30'}`. */
  [flag: string]: string
}

/** Rate limits are off unless a test sets them, and answers are not cached, so that tests read what they have
 *  just pushed, and labels are shown to all. */
const DEFAULTS: Settings = {
  port: '0',
  feed: 'none',
  'log-level': 'warn',
  'read-limit-anonymous': '0',
  'read-limit-keyed': '0',
  'register-limit': '0',
  'lake-flush-ms': '0',
  'tokens-max': TOKENS_MAX,
  'drain-notice-ms': '0',
  'page-age-ms': '0',
  'labels-delay-ms': '0',
}

/** A small market: to allocate the memory of a large one for each server costs the collection of all garbage. */
const SMALL = { changeLogEntriesMax: 65_536, poolBarsMin: 8_192 }

/** Of a reader: those defaults that it uses. */
function readerFlagsOf(settings: Settings): string[] {
  const flags = READER_SETTINGS.map((path) => SETTINGS_BY_PATH[path].flag)
  const defaults = Object.entries(DEFAULTS).filter(([name]) => flags.includes(name))
  return Object.entries({ ...Object.fromEntries(defaults), ...settings }).flatMap(([name, value]) => [
    `--${name}`,
    value,
  ])
}

const isReplayOfLake = ({ replay = '' }: Settings): boolean => replay.startsWith('lake=')

function flagsOf(settings: Settings, dataDir: string): string[] {
  if (settings.role === 'reader') return readerFlagsOf(settings)
  const { 'tokens-max': tokensMax, ...defaults } = DEFAULTS
  // A recorded market has the size of then.
  const all = { ...defaults, ...(!isReplayOfLake(settings) && { 'tokens-max': tokensMax }), ...settings }
  return Object.entries({ 'data-dir': dataDir, ...all }).flatMap(([name, value]) => [`--${name}`, value])
}
const secretsOf = (settings: Settings) => ({
  // Nobody may push into a recorded market.
  ...(!isReplayOfLake(settings) && { MINTLAKE_FEED_KEY: FEED_KEY }),
  ...(settings.role !== 'reader' && { MINTLAKE_ADMIN_KEY: ADMIN_KEY }),
})

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  body: any
  text: string
}

/** Reads the whole body of an answer, and holds the answer to the API description. */
async function readChecked(method: string, url: string, response: Response): Promise<Buffer> {
  const body = Buffer.from(await response.arrayBuffer())
  const { pathname, search } = new URL(url)
  const { status, headers } = response
  checkConformance({ method, path: pathname + search, status, headers, body })
  return body
}

/** `fetch` whose answer is held to the API description. Not for streams: it waits for the end of the body. */
export async function checkedFetch(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init)
  await readChecked(init.method ?? 'GET', url, response.clone())
  return response
}

/** Sends requests to a server in this or another process, and holds its answers to the API description. What is compressed has tests of
 *  its own: here it would be work for both. */
export class Client {
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const response = await fetch(this.url + path, {
      method,
      redirect: 'manual',
      headers: {
        'Accept-Encoding': 'identity',
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: raw ? (body as string) : JSON.stringify(body) }),
    })
    const text = (await readChecked(method, this.url + path, response)).toString()
    const type = response.headers.get('content-type') ?? ''
    const isJson = type.includes('json') && !type.includes('ndjson')
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : null,
    }
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.request('GET', path, undefined, headers)
  }

  post(path: string, body: unknown, key = '', headers: Record<string, string> = {}): Promise<Answer> {
    return this.request('POST', path, body, { ...(key && { Authorization: `Bearer ${key}` }), ...headers })
  }

  /** Registers an agent and returns its key. */
  async register(name = 'tester'): Promise<string> {
    const answer = await this.post('/api/v1/keys/register', { name })
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.body.data.key
  }

  /** Pushes market events. Throws if one is refused. */
  async push(...records: object[]): Promise<void> {
    const lines = records.map((record) => JSON.stringify(record)).join('\n')
    const answer = await this.request('POST', '/api/v1/ingest', lines, {
      'Content-Type': 'application/x-ndjson',
      Authorization: `Bearer ${FEED_KEY}`,
    })
    if (answer.status !== 200 || answer.body.rejected > 0) throw new Error(answer.text)
  }
}

export interface TestServer extends App {
  client: Client
  dataDir: string
  /** Stops the server and starts another on the same folder. */
  restart(settings?: Settings): Promise<TestServer>
  /** Stops the server and removes its folder, to which it brings no more rows. */
  remove(): Promise<void>
}

export const temporaryFolder = (): string => mkdtempSync(join(tmpdir(), 'mintlake-test-'))

/** The real server in this process. */
export async function openTestServer(
  settings: Settings = {},
  options: AppOptions = {},
  dataDir = temporaryFolder(),
  env: Record<string, string> = {},
): Promise<TestServer> {
  const config = readConfig(flagsOf(settings, dataDir), { ...secretsOf(settings), ...env })
  let discard = (): void => {}
  const server = await withLakeProcess((lakeProcess) => {
    discard = () => discardRows(lakeProcess)
    return startApp(config, {
      lakeProcess,
      ...options,
      tuning: { ...SMALL, ...options.tuning },
    })
  })
  await server.ready
  const stop = (): Promise<void> => {
    // From then on another server may have the process.
    discard = () => {}
    return server.stop()
  }
  return {
    ...server,
    dataDir,
    client: new Client(server.url),
    stop,
    restart: async (changed = {}) => {
      await stop()
      return openTestServer({ ...settings, ...changed }, options, dataDir, env)
    },
    remove: async () => {
      discard()
      await stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** The real program in another process, which may not listen yet. */
export interface LaunchedServer {
  process: ChildProcess
  dataDir: string
  /** The lines that it logged, and those that it wrote to its standard error. */
  lines: readonly string[]
  errorLines: readonly string[]
  /** Resolves once it listens. Rejects if it ends before that. */
  listening: Promise<Client>
  /** Resolves with its exit code; null after a kill. */
  exited: Promise<number | null>
  /** Sends SIGKILL and waits for the end of the process. */
  kill(): Promise<void>
  /** Sends SIGTERM. Returns the exit code. */
  terminate(): Promise<number | null>
}

export type ServerProcess = Omit<LaunchedServer, 'listening'> & { client: Client }

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Starts the real program as `npm start` runs it. `within` is the command that runs it, `program` the arguments of Node. */
export function launchServer(
  settings: Settings = {},
  dataDir = temporaryFolder(),
  env: Record<string, string> = {},
  within: readonly string[] = [],
  program: readonly string[] = [MAIN],
): LaunchedServer {
  const [command, ...words] = [...within, process.execPath, ...program, ...flagsOf(settings, dataDir)]
  const child = spawn(command, words, {
    env: { ...process.env, ...secretsOf(settings), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  const lines: string[] = []
  const errorLines: string[] = []
  createInterface({ input: child.stderr! }).on('line', (line) => {
    errorLines.push(line)
    console.error(line)
  })
  const listening = new Promise<Client>((resolve, reject) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      lines.push(line)
      const match = /^listening on (\S+)$/.exec(line)
      if (match !== null) resolve(new Client(match[1]))
    })
    exited.then((code) => reject(new Error(`the server ended with ${code} before it listened`)))
  })
  listening.catch(() => undefined)
  return {
    process: child,
    ...{ dataDir, lines, errorLines, listening, exited },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
    terminate: () => {
      child.kill('SIGTERM')
      return exited
    },
  }
}

/** Waits until a process listens and is ready. */
export async function untilReady(launched: LaunchedServer): Promise<ServerProcess> {
  const client = await launched.listening
  while ((await client.get('/readyz')).status !== 200) await sleep(20)
  return { ...launched, client }
}

/** Starts the real program, and waits until it is ready. */
export const spawnServer = (...args: Parameters<typeof launchServer>): Promise<ServerProcess> =>
  untilReady(launchServer(...args))
