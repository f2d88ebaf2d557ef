// A request to another node, as `node:http` shows it: over a connection of the simulated network, of which each message is one part of the
// request or of its answer.
import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import type { ConnectionEnd, Network } from './network.ts'

/** What the one who asks sends. */
export interface RequestMessage {
  method: string
  /** With its query. */
  target: string
  headers: Readonly<Record<string, string>>
  /** In base64. */
  body: string
}

/** Parts of an answer: its head, then chunks of its body in base64, then the end. */
export type AnswerMessage =
  | { status: number; headers: readonly (readonly [string, string])[] }
  | { chunk: string }
  | 'end'

export const sendMessage = (end: ConnectionEnd, message: RequestMessage | AnswerMessage): void =>
  end.send(Buffer.from(JSON.stringify(message)))
export const readMessage = <Message>(bytes: Buffer): Message => JSON.parse(bytes.toString()) as Message

interface Options {
  method: string
  port?: string | number
  path: string
  headers: Readonly<Record<string, string>>
  signal?: AbortSignal
}

class SimulatedAnswer extends Readable {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>
  readonly socket = { setTimeout: (): void => {} }
  readonly #onLeft: () => void

  constructor(status: number, headers: readonly (readonly [string, string])[], onLeft: () => void) {
    super({ read: () => {} })
    this.statusCode = status
    this.headers = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
    this.#onLeft = onLeft
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#onLeft()
    // As Node's own: who does not listen is not told.
    done(this.listenerCount('error') > 0 ? error : null)
  }
}

export class SimulatedClientRequest extends EventEmitter {
  readonly #network: Network
  readonly #options: Options
  readonly #socket = Object.assign(new EventEmitter(), { connecting: true, encrypted: false })
  #end: ConnectionEnd | null = null
  #answer: SimulatedAnswer | null = null
  #timer: NodeJS.Timeout | null = null
  #isOver = false

  constructor(network: Network, options: Options) {
    super()
    this.#network = network
    this.#options = options
    options.signal?.addEventListener('abort', () => this.destroy(new Error('the request was aborted')))
    network.machine.queue(() => void this.emit('socket', this.#socket))
  }

  end(body?: Uint8Array): this {
    const { method, path, headers, port } = this.#options
    const message = { method, target: path, headers, body: Buffer.from(body ?? []).toString('base64') }
    this.#network.machine.queue(() => this.#network.connect(Number(port), (end) => this.#begin(end, message)))
    return this
  }

  setTimeout(ms: number, act: () => void): this {
    this.#timer = setTimeout(act, ms)
    return this
  }

  destroy(error?: Error): this {
    this.#fail(error ?? new Error('the request was given up'))
    return this
  }

  #begin(end: ConnectionEnd | null, message: RequestMessage): void {
    if (this.#isOver) {
      end?.close()
      return
    }
    if (end === null) {
      this.#fail(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
      return
    }
    this.#end = end
    end.onBytes = (bytes) => this.#take(readMessage<AnswerMessage>(bytes))
    end.onClose = () => this.#fail(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
    this.#socket.connecting = false
    this.#socket.emit('connect')
    sendMessage(end, message)
  }

  #take(message: AnswerMessage): void {
    if (this.#isOver) return
    this.#timer?.refresh()
    if (message === 'end') {
      this.#finish()
      this.#answer?.push(null)
    } else if ('chunk' in message) this.#answer?.push(Buffer.from(message.chunk, 'base64'))
    else {
      this.#answer = new SimulatedAnswer(message.status, message.headers, () => this.#finish())
      this.emit('response', this.#answer)
    }
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    this.#finish()
    if (this.#answer !== null) this.#answer.destroy(error)
    else if (this.listenerCount('error') > 0) this.emit('error', error)
  }

  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#end?.close()
    this.#socket.emit('close')
  }
}
