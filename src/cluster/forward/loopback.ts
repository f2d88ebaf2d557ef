// Sends requests of other nodes to the HTTP server of this very process, so that they pass the same code as any other.
import { Agent, type ClientRequest, request } from 'node:http'
import { RELAYED_CLIENT_HEADER, relayedClientValue } from '../../http/request/addresses.ts'
import { LOOPBACK_IDLE_MS_MAX, LOOPBACK_SOCKETS_MAX } from './limits.ts'
import type { ForwardedRequest } from './protocol.ts'

/** Node writes headers and paths byte by byte; what the HTTP engine has read as UTF-8 leaves as it came. */
const asSent = (text: string): string => Buffer.from(text).toString('latin1')

export class Loopback {
  readonly #port: number
  readonly #secret: string
  readonly #agent = new Agent({
    keepAlive: true,
    maxSockets: LOOPBACK_SOCKETS_MAX,
    maxFreeSockets: LOOPBACK_SOCKETS_MAX,
    timeout: LOOPBACK_IDLE_MS_MAX,
  })

  /** @param port `relayPort` of the HTTP server. @param secret its `relaySecret` */
  constructor(port: number, secret: string) {
    this.#port = port
    this.#secret = secret
  }

  /** Sends a request. @throws Error where its path or a header has characters that HTTP does not allow */
  send({ method, path, query, headers, client }: ForwardedRequest, body: Buffer): ClientRequest {
    const sent: Record<string, string> = { [RELAYED_CLIENT_HEADER]: relayedClientValue(this.#secret, client) }
    for (const [name, value] of Object.entries(headers)) sent[name] = asSent(value)
    if (method === 'POST') sent['Content-Length'] = `${body.length}`
    const outgoing = request({
      host: '127.0.0.1',
      port: this.#port,
      agent: this.#agent,
      method,
      path: asSent(query === '' ? path : `${path}?${query}`),
      headers: sent,
    })
    outgoing.end(body)
    return outgoing
  }

  close(): void {
    this.#agent.destroy()
  }
}
