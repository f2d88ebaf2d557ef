// A node on the simulated machine: the real server, or a reader of a cluster. Requests enter at the pipeline; a life of it ends by a stop, a
// crash or a power cut.
import { type App, type AppOptions, startApp } from '../../src/app.ts'
import { type ReaderApp, startReader } from '../../src/cluster/reader/reader-app.ts'
// The server imports it when it begins: loaded before, that takes no turn of the real event loop.
import '../../src/cluster/writer/bus-writer.ts'
import { whenWriterMayBegin } from '../../src/cluster/writer/standby.ts'
import { readConfig } from '../../src/config/config.ts'
import { isWriter } from '../../src/config/settings.ts'
import type { Method } from '../../src/http/context.ts'
import { Pipeline } from '../../src/http/pipeline.ts'
import type { HttpServer, ServerDeps } from '../../src/http/server.ts'
import type { Log } from '../../src/lib/log.ts'
import { engineRequestOf } from './engine-request.ts'
import { SimulatedResponse } from './engine-response.ts'
import { type RequestMessage, readMessage, sendMessage } from './machine/http-request.ts'
import type { Draws, Machine, SimulatedProcess } from './machine/machine.ts'
import type { ConnectionEnd, Network } from './machine/network.ts'
import { ADMIN_KEY, FEED_KEY, flagsOf } from './settings.ts'

const CHANGE_LOG_ENTRIES = 4_096
/** Of an answer that waits until its client takes it. */
const ROOM_BYTES = 65_536

export interface Answer {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: checks look into answers freely
  body: any
  /** On the machine's own time, ms. */
  sentMs: number
  answeredMs: number
}

export interface SentRequest {
  method: Method
  path: string
  query?: string
  key?: string
  headers?: Readonly<Record<string, string>>
  body?: string
  /** The address of its client. */
  client?: string
}

/** A request under way. */
export interface Sent {
  /** Null: there is none yet. */
  answer: Answer | null
  /** It got no answer, and never will: the server ended, or the client has left. */
  isLost: boolean
  sentMs: number
  /** The client leaves. */
  leave(): void
}

/** A stream that is open. */
export interface Stream {
  status: number
  isEnded: boolean
  /** Takes what has come. */
  read(): string
  leave(): void
}

type Running = Pick<App, 'ready' | 'stop'>

interface Life<Node extends Running> {
  process: SimulatedProcess
  pipeline: Pipeline | null
  app: Node | null
  /** Why the start failed; null: it did not. */
  failure: string | null
  /** When it was told to stop; null: it was not. */
  stoppingMs: number | null
  startedMs: number
}

/** What a program is started with. */
type Launch = Required<Pick<AppOptions, 'clock' | 'log' | 'startServer'>> & {
  /** Ends the process, with a reason. */
  fail(reason: unknown): void
}

export interface NodeWorld<Node extends Running> {
  machine: Machine
  network: Network
  /** Also of the host that it runs on at first. */
  name: string
  /** At which other nodes reach it, at first. */
  port: number
  draws: Draws
  onLog(level: string, message: string, fields: unknown): void
  launch(launch: Launch): Promise<Node>
}

export class SimulatedNode<Node extends Running> {
  life: Life<Node> | null = null
  lives = 0
  /** Where its next life begins, and at which port. */
  host: string
  port: number
  readonly #world: NodeWorld<Node>
  readonly #open = new Set<Sent>()

  constructor(world: NodeWorld<Node>) {
    this.#world = world
    this.host = world.name
    this.port = world.port
  }

  get name(): string {
    return this.#world.name
  }

  get app(): Node | null {
    return this.life?.app ?? null
  }

  /** Whether it listens. */
  get isUp(): boolean {
    return this.life?.process.isAlive === true && this.life.pipeline !== null
  }

  start(): void {
    const { machine, name } = this.#world
    const process = machine.fork(name, this.host)
    const life: Life<Node> = {
      ...{ process, pipeline: null, app: null, failure: null, stoppingMs: null },
      startedMs: machine.nowMs,
    }
    this.life = life
    this.lives++
    machine.after(1, () => void this.#begin(life), process)
  }

  async #begin(life: Life<Node>): Promise<void> {
    const { machine, launch } = this.#world
    try {
      life.app = await launch({
        clock: { now: () => machine.wallMs, monotonicMs: () => machine.nowMs },
        log: this.#log(),
        startServer: async (_host, _port, deps) => this.#listen(life, deps),
        fail: (reason) => this.#fail(life, reason),
      })
      life.app.ready.catch((error) => this.#fail(life, error))
    } catch (error) {
      this.#fail(life, error)
    }
  }

  /** One that cannot start ends, as the program does. */
  #fail(life: Life<Node>, error: unknown): void {
    life.failure = String(error)
    life.process.kill()
  }

  #listen(life: Life<Node>, deps: ServerDeps): HttpServer {
    const { network } = this.#world
    const { port } = this
    const pipeline = new Pipeline(deps)
    life.pipeline = pipeline
    network.listen(port, life.process, (end) => {
      end.onBytes = (bytes) => this.#takePassedOn(pipeline, end, readMessage<RequestMessage>(bytes))
    })
    return {
      ...{ port, ownPort: port },
      drain: () => pipeline.drain(),
      stopListening: async () => {
        life.pipeline = null
      },
      idle: async () => {
        while (pipeline.inFlight > 0) await new Promise((resolve) => setTimeout(resolve, 10))
      },
      close: async () => {},
      inFlight: () => pipeline.inFlight,
      requestCount: () => pipeline.requestCount,
      bodyBytes: () => pipeline.bodyBytes,
    }
  }

  /** A request of another node. */
  #takePassedOn(pipeline: Pipeline, end: ConnectionEnd, message: RequestMessage): void {
    const response = new SimulatedResponse(Buffer.from(message.body, 'base64'), ROOM_BYTES, '127.0.0.1')
    let hasHead = false
    response.onProgress = () => {
      if (!hasHead && response.status !== 0) {
        hasHead = true
        sendMessage(end, { status: response.status, headers: response.headers })
      }
      const bytes = response.take(ROOM_BYTES * 16)
      if (bytes.length > 0) sendMessage(end, { chunk: bytes.toString('base64') })
      if (!response.isEnded) return
      if (!response.isCut) sendMessage(end, 'end')
      end.close()
    }
    end.onClose = () => response.abort()
    const { method, target, headers, body } = message
    const [path = '', query = ''] = target.split('?', 2)
    const entered = { method: method as Method, path, query, headers, body: Buffer.from(body, 'base64') }
    pipeline.handle(response, engineRequestOf(entered))
  }

  #log(): Log {
    const line = (level: string) => (fields: unknown, message: string) =>
      this.#world.onLog(level, message, fields)
    const levels = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
    return levels as unknown as Log
  }

  /** Ends the process at once. Its children end with it. */
  crash(): void {
    this.life?.process.kill()
    this.life = null
    this.#lose()
  }

  /** Stops it in order. Resolved by `life.process` being dead. */
  stop(): void {
    const { life } = this
    if (life === null || life.app === null || life.stoppingMs !== null) return
    life.stoppingMs = this.#world.machine.nowMs
    const { app, process } = life
    this.#world.machine.after(
      1,
      () =>
        void app.stop().then(
          () => process.kill(),
          (error) => this.#fail(life, error),
        ),
      process,
    )
  }

  /** Its life goes on without it: what was sent to it may still be answered. @returns the node that it is from now on */
  leaveBehind(): SimulatedNode<Node> {
    const left = new SimulatedNode({ ...this.#world, name: `${this.name} that was left` })
    Object.assign(left, { life: this.life, lives: this.lives, host: this.host, port: this.port })
    for (const sent of this.#open) left.#open.add(sent)
    this.#open.clear()
    this.life = null
    return left
  }

  /** Goes on as a process that was started beside it, as another node. */
  goOnAs(other: SimulatedNode<Node>): void {
    const { life } = other
    if (life === null) return
    life.startedMs = this.#world.machine.nowMs
    this.life = life
    this.lives++
    other.life = null
  }

  /** What was in flight has no answer. */
  #lose(): void {
    for (const sent of this.#open) sent.isLost = true
    this.#open.clear()
  }

  /** To be called when the process has ended by itself. */
  noteEnd(): void {
    this.life = null
    this.#lose()
  }

  send(request: SentRequest, onAnswer: (answer: Answer) => void = () => {}): Sent {
    const { machine } = this.#world
    const sentMs = machine.nowMs
    const { life } = this
    let response: SimulatedResponse | null = null
    const sent: Sent = {
      ...{ answer: null, isLost: false, sentMs },
      leave: () => {
        if (sent.answer !== null) return
        sent.isLost = true
        this.#open.delete(sent)
        const left = response
        if (left !== null && life !== null && this.life !== null)
          machine.queue(() => left.abort(), life.process)
      },
    }
    this.#open.add(sent)
    const parts: Buffer[] = []
    response = this.#enter(request, (made) => {
      parts.push(made.take(ROOM_BYTES * 16))
      if (!made.isEnded || made.isCut || sent.isLost || sent.answer !== null) return
      const answer = toAnswer(made, Buffer.concat(parts).toString(), sentMs, machine.nowMs)
      sent.answer = answer
      this.#open.delete(sent)
      machine.queue(() => onAnswer(answer), machine.world)
    })
    if (response === null) {
      sent.isLost = true
      this.#open.delete(sent)
    }
    return sent
  }

  /** Null where nobody listens. */
  #enter(request: SentRequest, onProgress: (response: SimulatedResponse) => void): SimulatedResponse | null {
    const { life } = this
    const pipeline = life?.pipeline
    if (!life?.process.isAlive || pipeline == null) return null
    const body = Buffer.from(request.body ?? '')
    const { method, path, query = '', client = '10.0.0.1' } = request
    const response = new SimulatedResponse(body, ROOM_BYTES, client)
    response.onProgress = () => onProgress(response)
    const { machine, draws } = this.#world
    const headers = { ...request.headers, ...(request.key && { Authorization: `Bearer ${request.key}` }) }
    machine.after(
      draws.between(0.1, 3),
      () => pipeline.handle(response, engineRequestOf({ method, path, query, headers, body })),
      life.process,
    )
    return response
  }

  follow(query: string): Stream | null {
    const stream: Stream = { status: 0, isEnded: false, read: () => '', leave: () => {} }
    const response = this.#enter({ method: 'GET', path: '/api/v1/market', query }, (made) => {
      stream.status = made.status
      stream.isEnded = made.isEnded
    })
    const { life } = this
    if (response === null || life === null) return null
    const { machine } = this.#world
    // What was taken gives room for more, as work of the server.
    stream.read = () => {
      const before = machine.running
      machine.running = life.process
      const bytes = life.process.isAlive ? response.take(ROOM_BYTES * 64) : Buffer.alloc(0)
      machine.running = before
      return bytes.toString()
    }
    stream.leave = () => machine.queue(() => response.abort(), life.process)
    return stream
  }
}

function toAnswer(response: SimulatedResponse, text: string, sentMs: number, answeredMs: number): Answer {
  const headers = Object.fromEntries(response.headers.map(([name, value]) => [name.toLowerCase(), value]))
  const type = headers['content-type'] ?? ''
  const isJson = type.includes('json') && !type.includes('ndjson') && text !== ''
  return {
    status: response.status,
    headers,
    text,
    body: isJson ? JSON.parse(text) : null,
    sentMs,
    answeredMs,
  }
}

/** The server: of a cluster its writer. */
export const launchServer =
  (settings: Readonly<Record<string, string>>, followFlushMs: number, random: () => number) =>
  async ({ fail, ...launch }: Launch): Promise<App> => {
    const keys = { MINTLAKE_FEED_KEY: FEED_KEY, MINTLAKE_ADMIN_KEY: ADMIN_KEY }
    const config = readConfig(flagsOf(settings), keys)
    const lock = isWriter(config) ? await whenWriterMayBegin(config, launch.log) : undefined
    return startApp(config, {
      ...launch,
      ...{ lock, random, onFenced: fail },
      tuning: { changeLogEntriesMax: CHANGE_LOG_ENTRIES, follow: { flushMs: followFlushMs } },
    })
  }

/** A reader of a cluster. */
export const launchReader =
  (flags: readonly string[]) =>
  (launch: Launch): Promise<ReaderApp> =>
    startReader(readConfig(flags, { MINTLAKE_FEED_KEY: FEED_KEY }), launch)

export type SimulatedServer = SimulatedNode<App>
export type SimulatedReader = SimulatedNode<ReaderApp>
