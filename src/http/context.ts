import { jsonLine } from '../lib/text/json-text.ts'
import type { Caller } from '../submissions/types.ts'
import { ChunkedBody } from './response/chunked-body.ts'
import type { StreamWriter, WriteKind } from './stream/follower.ts'

export type Method = 'GET' | 'POST' | 'DELETE'

/** What was sent of the headers that the HTTP layer reads. A header that was not sent is empty. */
export class SentHeaders {
  accept = ''
  acceptEncoding = ''
  apiKey = ''
  authorization = ''
  cacheControl = ''
  connection = ''
  contentEncoding = ''
  contentLength = ''
  contentType = ''
  forwardedFor = ''
  forwardedProto = ''
  host = ''
  /** Null: not sent. */
  idempotencyKey: string | null = null
  ifNoneMatch = ''
  ifRange = ''
  origin = ''
  range = ''
  /** X-Mintlake-Relay: of a request that another node has passed on (RelayGate). */
  relay = ''
  requestId = ''
  transferEncoding = ''
}

/** Named parameters as text: of a query string, or of a message on a WebSocket. */
export interface Query {
  /** The first value of that name, or null. */
  get(name: string): string | null
}

/** What an answer tells about itself, beside its data. */
export interface Notes {
  /** Names of the query that the route does not read. */
  ignored?: readonly string[]
  /** Why the market is not exactly the one that it stands for. */
  approximate?: string
  /** Why the market does not have all yet that it begins with. */
  warming_up?: string
}

/** What a route sees of a request. */
export interface Context {
  method: Method
  path: string
  /** The last path segment of a route whose path ends with `{id}`; otherwise empty. */
  id: string
  query: Query
  /** The query string as it was sent, without its question mark. */
  queryText: string
  /** For the `meta` of the answer (response/notes.ts). */
  notes: Notes
  /** As they were sent; `authorization` is `X-API-Key` too, as `Bearer <key>`. `idempotencyKeyOf` reads the key of a repetition. */
  headers: SentHeaders
  requestId: string
  /** Empty for routes that read no body. */
  body: Buffer
  /** The address of the client. A proxy's header counts only if the proxy is trusted. A GET handler that awaits must ask
   *  for it before: the address can no longer be read once the client has disconnected. */
  ip(): string
  /** Who the request is counted for: a key's owner, or an address. See `readerOf`; what is said of `ip` holds for it. */
  client(): string
  /** Whether another process has passed the request on, which has the client. */
  isRelayed(): boolean
  /** Whether, on a server that listens on loopback, a program of this computer asks: no proxy, and no page of another site. Told
   *  to routes that open locally; others get false. */
  isLocal(): boolean
  /** Under which address the client reaches the server, without a slash at the end; empty where that is not certain. Only a
   *  handler that has not awaited may ask for it. */
  origin(): string
  /** Throws 429 if the client has used up its rows. For answers that take long to make: the rows themselves are counted
   *  once the answer is there. */
  admitRows(): void
  /** Calls `onGone` if the client disconnects before it has its answer. */
  onGone(onGone: () => void): void
}

/** What a route with the access `agent` sees. */
export interface AgentContext extends Context {
  /** The agent whose key was sent. */
  caller: Caller
}

/** What a route with the access `personal` or `researcher` sees. */
export interface ReaderContext extends Context {
  /** The agent whose key was sent; null without a key, and for the operator's. */
  caller: Caller | null
}

/** Writes an answer whose body is streamed. */
export interface BodyWriter extends StreamWriter {
  /** @param tail bytes behind these that a reader can do without for now: see GzipWriter */
  write(bytes: Buffer, kind?: WriteKind, tail?: Buffer): boolean
  end(last: Buffer): void
  /** Cuts the connection, so that an incomplete body is not taken for a complete one. */
  fail(): void
}

export interface HttpAnswer {
  status: number
  /** Bytes are sent as they are; an object is sent as JSON. */
  body: Buffer | ChunkedBody | Record<string, unknown>
  contentType?: string
  headers?: Record<string, string>
  /** Rows of the market list in the answer, counted against the reader's limit. */
  rows?: number
  /** Parameters that the route knows and that had no effect on this answer. */
  ignored?: readonly string[]
  /** The response cache may send this answer again for the same request (response-cache.ts). */
  reusable?: true
  /** For a reusable answer, asked after a write to its path (`Route.changes`): whether it would still be the same. Unset: it would not. */
  isUnchanged?: () => boolean
  /** Whether it is what would be answered now, whatever its age. */
  isNewest?: () => boolean
  /** Called once status, headers and `body` are written: it writes the rest. */
  stream?: (writer: BodyWriter) => void
  /** Length of a streamed body, where it is known: it is sent as Content-Length. */
  bytes?: number
  /** Another process has made it: it is sent as it is, with no note, version or compression of this one. */
  relayed?: true
  /** Called instead of `stream` if no body is sent: after a disconnect, or for HEAD. */
  onDiscard?: () => void
}

/** Answers as `okWith` and `okData` of the schema describe them. */
export const ok = (body: object): HttpAnswer => ({ status: 200, body: { ok: true, ...body } })
export const okData = (data: unknown, more?: object): HttpAnswer => ok({ data, ...more })

export const JSON_TYPE = 'application/json; charset=utf-8'
export const PROBLEM_TYPE = 'application/problem+json'
export const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'

export const NO_BYTES = Buffer.alloc(0)

/** The whole body in one buffer. */
export function bodyBytes(body: HttpAnswer['body']): Buffer {
  if (Buffer.isBuffer(body)) return body
  return body instanceof ChunkedBody ? body.joined() : Buffer.from(jsonLine(body))
}
