// A request that another node has received, for this process to answer.

import type { Method } from '../context.ts'
import type { EngineRequest } from '../engine.ts'

export interface RelayedRequest {
  method: Method
  path: string
  /** As it was sent, without its question mark. */
  query: string
  /** By name, as they were sent. */
  headers: Readonly<Record<string, string>>
  /** The client, as `clientAddress` returned it on the other node. */
  client: string
  body: Uint8Array
}

/** The request as the engine would give it. */
export const engineRequestOf = ({
  method,
  path,
  query,
  headers,
  client,
  body,
}: RelayedRequest): EngineRequest => ({
  relayedClient: client,
  getMethod: () => method.toLowerCase(),
  getUrl: () => path,
  getQuery: () => query,
  forEach: (take) => {
    for (const name in headers) take(name.toLowerCase(), headers[name] ?? '')
    if (method === 'POST') take('content-length', `${body.length}`)
  },
})
