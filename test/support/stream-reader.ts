// Reads a WebSocket stream message by message, in either format, and holds each message to the API description.
import { Packr, unpack } from 'msgpackr'
import { checkStreamed } from './conformance/conformance.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages freely
export type Message = Record<string, any> & { event: string }

/** Node's WebSocket accepts headers in addition to the standard arguments. */
const Socket = WebSocket as unknown as new (
  url: string,
  options: { headers?: Record<string, string>; protocols?: string[] },
) => WebSocket
const packr = new Packr({ useRecords: false })

/** A WebSocket read message by message. */
export class StreamReader {
  readonly opened: Promise<void>
  readonly closed: Promise<{ code: number; reason: string }>
  readonly #socket: WebSocket
  readonly #messages: Message[] = []
  #arrived: () => void = () => {}

  constructor(url: string, protocol?: string, headers: Record<string, string> = {}) {
    this.#socket = new Socket(url, { headers, protocols: protocol === undefined ? [] : [protocol] })
    this.#socket.binaryType = 'arraybuffer'
    this.opened = new Promise((resolve, reject) => {
      this.#socket.addEventListener('open', () => resolve())
      this.#socket.addEventListener('error', () => reject(new Error('the socket was refused')))
    })
    this.opened.catch(() => {})
    this.closed = new Promise((resolve) =>
      this.#socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason })),
    )
    this.#socket.addEventListener('message', ({ data }) => {
      this.#messages.push(typeof data === 'string' ? JSON.parse(data) : unpack(new Uint8Array(data)))
      this.#arrived()
    })
  }

  get protocol(): string {
    return this.#socket.protocol
  }

  /** Sends a message once the socket is open: an object as JSON or msgpack, a text as it is. */
  async send(message: object | string, isBinary = false): Promise<void> {
    await this.opened
    if (typeof message === 'string') this.#socket.send(message)
    else this.#socket.send(isBinary ? new Uint8Array(packr.pack(message)) : JSON.stringify(message))
  }

  async next(): Promise<Message> {
    while (this.#messages.length === 0)
      await new Promise<void>((resolve) => {
        this.#arrived = resolve
      })
    const message = this.#messages.shift()!
    checkStreamed('StreamMessage', JSON.stringify(message))
    return message
  }

  /** The next message of this kind. Messages before it are skipped. */
  async until(event: string): Promise<Message> {
    for (;;) {
      const message = await this.next()
      if (message.event === event) return message
    }
  }

  close(): void {
    this.#socket.close()
  }
}
