// A server whose answers a test writes one by one, for what the real one does not do when asked.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Handler = (res: ServerResponse, req: IncomingMessage) => void

/** A JSON answer. */
export const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): Handler =>
  (res) =>
    void res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))

/** Headers of an answer in a backtest, whose market waits. */
export const atMarketTime = (ms: number) => ({ 'X-Market-Time': `${ms}`, 'X-Market-Waits': 'true' })

/** An error answer of Mintlake's form. */
export const problem = (status: number, code: string, more: object = {}): Handler =>
  answer(status, { ok: false, error: `It is ${code}.`, code, status, ...more }, { 'X-Request-Id': 'r1' })

/** Takes the request and never answers. */
export const hang: Handler = () => {}
/** Closes the connection without an answer. */
export const breakOff: Handler = (res) => void res.destroy()

export class ScriptedServer {
  readonly url: string
  /** The requests so far, each with its body. */
  readonly requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  readonly #server: Server
  readonly #script: Handler[]

  private constructor(server: Server, script: Handler[]) {
    this.#server = server
    this.#script = script
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (req, res) => void this.#handle(req, res))
  }

  /** Each request gets the next answer of the script, and then the last one again and again. */
  static async start(...script: Handler[]): Promise<ScriptedServer> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new ScriptedServer(server, script)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    const { method = '', url = '', headers } = req
    const handler = this.#script[Math.min(this.requests.length, this.#script.length - 1)]
    this.requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
    handler(res, req)
  }
}
