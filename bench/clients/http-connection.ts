// A connection that speaks HTTP/1.1 by hand, one request at a time. A client library would take more of the core that
// the load shares than the server takes of its own.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { submissionOf } from '../datasets/submission.ts'

const HEAD_END = '\r\n\r\n'
const CONTENT_LENGTH = /\r\ncontent-length: (\d+)/i
const ERROR_CHARACTERS_MAX = 1_000

/** Part of a response that has arrived. */
interface Arriving {
  head: string
  text: string
  /** Characters of it, which are bytes, that have not arrived. */
  missing: number
}

export class HttpConnection {
  readonly #socket: Socket
  #received = ''
  #arriving: Arriving | null = null
  #waiting: PromiseWithResolvers<Arriving> | null = null

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
  async request(request: string, status: number): Promise<string> {
    this.#waiting = Promise.withResolvers()
    this.#socket.write(request, 'latin1')
    const { head, text } = await this.#waiting.promise
    if (!head.startsWith(`HTTP/1.1 ${status}`)) throw new Error(text.slice(0, ERROR_CHARACTERS_MAX))
    return text
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Looks for the head alone, and once, however many chunks the response has. */
  #receive(chunk: string): void {
    if (this.#arriving !== null) {
      this.#arriving.text += chunk
      this.#arriving.missing -= chunk.length
    } else {
      this.#received += chunk
      const headEnd = this.#received.indexOf(HEAD_END)
      if (headEnd === -1) return
      const head = this.#received.slice(0, headEnd)
      const bodyLength = Number(CONTENT_LENGTH.exec(head)?.[1])
      const missing = headEnd + HEAD_END.length + bodyLength - this.#received.length
      this.#arriving = { head, text: this.#received, missing }
    }
    if (this.#arriving.missing > 0) return
    const arrived = this.#arriving
    this.#arriving = null
    this.#received = ''
    this.#waiting?.resolve(arrived)
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
