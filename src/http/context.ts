// In: one request as the HTTP engine hands it over. Out: what a route may know of it, and the answer it gives.
// Never holds the engine's request: that dies with the handler.
import type { Caller } from '../submissions/types.ts'
import { ChunkedBody } from './response/chunked-body.ts'
import type { StreamWriter } from './stream/broadcaster.ts'

export type Method = 'GET' | 'POST' | 'DELETE'

/** Headers that routes read; copied at arrival, absent ones are empty. */
export interface RequestHeaders {
  accept: string
  contentType: string
  ifNoneMatch: string
  idempotencyKey: string
  authorization: string
  acceptEncoding: string
}

/** The parameters of a request. To be read only: requests that ask the same share them. */
export type Query = Pick<URLSearchParams, 'get'>

export interface Context {
  method: Method
  path: string
  /** The last path segment of a route that ends in `{id}`. */
  id: string
  query: Query
  headers: RequestHeaders
  requestId: string
  /** Address of the client, from a proxy's header only when the proxy is trusted. Asked for before the first wait. */
  ip(): string
  /** Headers that say how many reads, or registrations, are left. */
  limits: Record<string, string>
  /** The agent asking, when a key was sent; routes that need one are only reached with it. */
  caller: Caller | null
  body: Buffer
  /** Throws 429 where the reader's rows are used up: for what takes long to make. Rows are counted with the answer. */
  admitRows(): void
  /** Has `act` called when the client goes before it has its answer. */
  onGone(act: () => void): void
}

/** The body of an answer that stays open. */
export interface BodyWriter extends StreamWriter {
  end(last: Buffer): void
  /** Ends the connection: a body that is cut must not look whole. */
  fail(): void
}

export interface HttpAnswer {
  status: number
  /** Bytes are sent as they are; anything else as JSON. */
  body: Buffer | ChunkedBody | Record<string, unknown>
  contentType?: string
  headers?: Record<string, string>
  /** Rows of the market list in it, which count for its reader. */
  rows?: number
  /** The same question may get this very answer again for a few milliseconds (response-cache.ts). */
  reusable?: true
  /** Takes over once status and headers are written; `body` is the first that is sent. */
  stream?: (writer: BodyWriter) => void
  /** Called in the place of `stream` where no body is sent: the client has gone, or wants the headers alone. */
  onDiscard?: () => void
}

export const JSON_TYPE = 'application/json; charset=utf-8'
export const PROBLEM_TYPE = 'application/problem+json'
export const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'

/** A body in one piece. */
export function bytesOf(body: HttpAnswer['body']): Buffer {
  if (Buffer.isBuffer(body)) return body
  return body instanceof ChunkedBody ? body.joined() : Buffer.from(JSON.stringify(body))
}
