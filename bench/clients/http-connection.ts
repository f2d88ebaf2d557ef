// A connection that speaks HTTP/1.1 by hand, one request at a time. A client library would take more of the core that
// the load shares than the server takes of its own.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { submissionOf } from '../datasets/submission.ts'

const HEAD_END = '\r\n\r\n'
const CONTENT_LENGTH = /\r\ncontent-length: (\d+)/i
const ERROR_CHARACTERS_MAX = 1_000

/** Bytes of a response, head included, or 0 before its head has arrived. */
function responseBytes(received: string): number {
  const headEnd = received.indexOf(HEAD_END)
  if (headEnd === -1) return 0
  const length = CONTENT_LENGTH.exec(received.slice(0, headEnd))
  return headEnd + HEAD_END.length + Number(length?.[1] ?? 0)
}

export class HttpConnection {
  readonly #socket: Socket
  #received = ''
  /** Of the response that is arriving, or 0. */
  #bytes = 0
  #waiting: PromiseWithResolvers<string> | null = null

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: string) => this.#receive(chunk))
    const fail = (error?: Error) =>
      this.#waiting?.reject(error ?? new Error('the server closed the connection'))
    socket.on('error', fail)
    socket.on('end', () => fail())
  }

  static async open(port: number): Promise<HttpConnection> {
    const socket = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay(true)
    await once(socket, 'connect')
    return new HttpConnection(socket)
  }

  /** Sends a request and resolves with the whole response, head included. Rejects where its status is another one. */
  async request(text: string, status: number): Promise<string> {
    this.#waiting = Promise.withResolvers()
    this.#socket.write(text, 'latin1')
    const response = await this.#waiting.promise
    if (!response.startsWith(`HTTP/1.1 ${status}`)) throw new Error(response.slice(0, ERROR_CHARACTERS_MAX))
    return response
  }

  close(): void {
    this.#socket.destroy()
  }

  #receive(chunk: string): void {
    this.#received += chunk
    this.#bytes ||= responseBytes(this.#received)
    if (this.#bytes === 0 || this.#received.length < this.#bytes) return
    const response = this.#received
    this.#received = ''
    this.#bytes = 0
    this.#waiting?.resolve(response)
  }
}

/** Registers an agent. Returns its key. */
export async function registerAgent(port: number, name: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/keys/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ name }),
  })
  return ((await response.json()) as { data: { key: string } }).data.key
}

/** The request that submits an analysis of a token. */
export function submitRequest(key: string, mint: string): string {
  const body = JSON.stringify(submissionOf(mint))
  return (
    `POST /api/v1/analysis/submit HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
}
