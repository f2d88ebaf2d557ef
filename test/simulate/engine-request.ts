// A request as the HTTP engine gives it, without a connection.
import type { Method } from '../../src/http/context.ts'
import type { EngineRequest } from '../../src/http/engine.ts'

export interface SimulatedRequest {
  method: Method
  path: string
  /** As it was sent, without its question mark. */
  query: string
  /** By name, as they were sent. */
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

/** The request as the engine would give it. */
export const engineRequestOf = ({ method, path, query, headers, body }: SimulatedRequest): EngineRequest => ({
  getMethod: () => method.toLowerCase(),
  getUrl: () => path,
  getQuery: () => query,
  forEach: (take) => {
    for (const name in headers) take(name.toLowerCase(), headers[name] ?? '')
    if (method === 'POST') take('content-length', `${body.length}`)
  },
})
