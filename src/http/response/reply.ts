// In: an answer or an error, and the engine's response. Out: bytes on the wire. The one place where the error shape of
// the contract (RFC 9457 members and the ecosystem's own) is made. Never decides what to answer.
import type { HttpResponse } from 'uWebSockets.js'
import { ERRORS, ServiceError } from '../../schema/errors.ts'
import { type BodyWriter, bytesOf, type HttpAnswer, JSON_TYPE, PROBLEM_TYPE } from '../context.ts'
import { STREAMED_BYTES_MIN } from '../limits.ts'
import { NO_LIMITS } from '../request/read-limits.ts'
import type { RequestIds } from '../request/request-ids.ts'
import { ChunkedBody } from './chunked-body.ts'
import type { CachedResponse } from './response-cache.ts'
import { toServiceError } from './to-service-error.ts'

const STATUS_TEXT: Readonly<Record<number, string>> = {
  200: '200 OK',
  201: '201 Created',
  204: '204 No Content',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  406: '406 Not Acceptable',
  408: '408 Request Timeout',
  409: '409 Conflict',
  410: '410 Gone',
  413: '413 Content Too Large',
  415: '415 Unsupported Media Type',
  422: '422 Unprocessable Content',
  426: '426 Upgrade Required',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
}

const EXPOSED_HEADERS =
  'X-Request-Id, ETag, Location, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, ' +
  'X-RateLimit-Reset, X-Result-Count, X-Complete-From, X-List-Version, X-Next-Cursor, X-Next-Since, X-More, ' +
  'Idempotency-Replayed'

/** Readable by pages of any origin: nothing here goes by cookies. */
const CROSS_ORIGIN_HEADERS = `\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: ${EXPOSED_HEADERS}`

/** The body of an error answer. What nobody expected becomes `internal`, without its message. */
export function problem(error: unknown, path: string, requestId: string): HttpAnswer {
  const known =
    toServiceError(error) ??
    new ServiceError('internal', 'The server failed to answer; the fault is on its side.')
  const { status, title } = ERRORS[known.code]
  return {
    status,
    contentType: PROBLEM_TYPE,
    headers: known.headers,
    body: {
      ok: false,
      error: known.message,
      code: known.code,
      type: `urn:mintlake:error:${known.code}`,
      title,
      status,
      detail: known.message,
      instance: path,
      requestId,
      ...known.extra,
    },
  }
}

/** A response that may be gone by the time the answer is ready. */
export class Reply {
  readonly res: HttpResponse
  readonly requestId: string
  readonly headOnly: boolean
  aborted = false
  /** While the engine's handler runs, what is written goes out together: the engine has corked the socket. */
  isCorked = true
  /** The connection ends with this answer. */
  closes = false
  /** Called when the client goes before its answer is whole. */
  onClosed?: () => void
  /** Called when the engine has the answer to its last byte; a stream counts as sent once it has begun. */
  onSent: () => void = () => {}
  #isPaused = false

  constructor(res: HttpResponse, requestId: string, headOnly = false) {
    this.res = res
    this.requestId = requestId
    this.headOnly = headOnly
  }

  /** Must be called where the engine's handler ends before the answer is whole: from then on the client may go first. */
  detach(onGone: () => void = () => {}): void {
    if (!this.isCorked) return
    this.isCorked = false
    this.res.onAborted(() => {
      this.aborted = true
      this.onClosed?.()
      onGone()
    })
  }

  /** Leaves what the client sends next in its socket until this is answered: the engine closes a connection on which a
   *  request arrives while another waits for its answer. A client that goes meanwhile is not noticed. */
  pause(): void {
    if (this.aborted || this.#isPaused) return
    this.#isPaused = true
    this.res.pause()
  }

  /** Reads on. Must be called before the answer is sent: then the engine forgets the response. */
  resume(): void {
    if (this.#isPaused) this.res.resume()
    this.#isPaused = false
  }
}

/**
 * Status line and the headers that every answer has, by status. The engine writes a status, and a header's value, as it is
 * given, so more headers can follow in it: two calls instead of one for each header; and it takes bytes faster than a text.
 */
const commonHeads = new Map<number, Buffer>()

function commonHead(status: number): Buffer {
  let head = commonHeads.get(status)
  if (head === undefined) {
    head = Buffer.from(`${STATUS_TEXT[status] ?? status}${CROSS_ORIGIN_HEADERS}`)
    commonHeads.set(status, head)
  }
  return head
}

/** The headers that an answer has of its own, each after a line end. */
function headersOf(answer: HttpAnswer, hasBody: boolean): string {
  let lines = hasBody ? `\r\nContent-Type: ${answer.contentType ?? JSON_TYPE}` : ''
  for (const name in answer.headers) lines += `\r\n${name}: ${answer.headers[name]}`
  return lines
}

/** The heads of an answer that is kept to be given again. */
export function headsOf(answer: HttpAnswer, ids: RequestIds): { head: Buffer; headWithoutId: Buffer } {
  const headWithoutId = Buffer.concat([commonHead(answer.status), Buffer.from(headersOf(answer, true))])
  return {
    head: Buffer.concat([headWithoutId, Buffer.from(`\r\nX-Request-Id: ${ids.next()}`)]),
    headWithoutId,
  }
}

/** Gives an answer that was made before. Inside the request's handler. One call writes its head where it can. A reader who
 *  is slow to take a large body holds the bytes that all share, no copy.
 *  @returns what still sends, or null where all is sent. */
export function sendCached(
  res: HttpResponse,
  { head, headWithoutId, body }: CachedResponse,
  ids: RequestIds,
  sentId: string,
  limits: Record<string, string>,
): Reply | null {
  if (sentId === '' && limits === NO_LIMITS) {
    ids.renew(head)
    res.writeStatus(head)
  } else {
    res.writeStatus(headWithoutId)
    res.writeHeader('X-Request-Id', ids.of(sentId) + limitsOf(limits))
  }
  if (body.length < STREAMED_BYTES_MIN) {
    res.end(body)
    return null
  }
  const reply = new Reply(res, sentId)
  stream(reply, body.length, (at) => body.subarray(at))
  // Sent to its last byte, it is gone for whoever would write to it.
  return reply.aborted ? null : reply
}

/** The headers of a reader's limits, each after a line end. */
function limitsOf(limits: Record<string, string>): string {
  let lines = ''
  for (const name in limits) lines += `\r\n${name}: ${limits[name]}`
  return lines
}

/** Sends an answer, unless the client has gone. */
export function send(reply: Reply, answer: HttpAnswer, limits: Record<string, string> = {}): void {
  if (reply.aborted || reply.headOnly) answer.onDiscard?.()
  if (reply.aborted) return void reply.onSent()
  const { res } = reply
  reply.resume()
  const bodiless = answer.status === 304 || answer.status === 204
  const { body: made } = answer
  const body = bodiless ? null : made instanceof ChunkedBody ? made : bytesOf(made)
  const write = () => {
    res.writeStatus(commonHead(answer.status))
    res.writeHeader('X-Request-Id', reply.requestId + headersOf(answer, body !== null) + limitsOf(limits))
    if (body !== null && reply.headOnly) {
      // Not endWithoutBody(bytes): after that the engine waits for the bytes, and ends the connection at its next request.
      res.writeHeader('Content-Length', `${body instanceof ChunkedBody ? body.bytes : body.length}`)
    }
    if (body === null || reply.headOnly) res.endWithoutBody()
    else if (body instanceof ChunkedBody) return stream(reply, body.bytes, (at) => body.partAt(at))
    else if (answer.stream !== undefined) follow(reply, body, answer.stream)
    else if (body.length < STREAMED_BYTES_MIN) res.end(body, reply.closes)
    else return stream(reply, body.length, (at) => body.subarray(at))
    reply.onSent()
  }
  if (reply.isCorked) write()
  else res.cork(write)
}

/** Sends a large body as fast as the socket takes it; what it does not take is not copied. */
function stream(reply: Reply, bytes: number, partAt: (offset: number) => Buffer): void {
  const { res } = reply
  /** False once the socket is full. */
  const push = (from: number): boolean => {
    for (let offset = from; ; ) {
      const part = partAt(offset)
      const [ok, finished] = res.tryEnd(part, bytes)
      if (finished) {
        reply.aborted = true
        reply.onSent()
      }
      if (finished || !ok) return ok
      offset += part.length
    }
  }
  if (push(0) && reply.aborted) return
  reply.detach(() => reply.onSent())
  res.onWritable(push)
}

/** Hands the open response to a stream. A failure after the headers destroys the socket: a body that is cut must not
 *  look whole. */
function follow(reply: Reply, first: Buffer, stream: (writer: BodyWriter) => void): void {
  const { res } = reply
  reply.detach()
  let resume: () => void = () => {}
  let bytes = first
  let room = true
  // One closure for all writes of a stream: there may be a thousand a second to each of a hundred streams.
  const write = () => {
    room = res.write(bytes)
  }
  const guarded = (act: () => void) => {
    if (reply.aborted) return
    try {
      res.cork(act)
    } catch {
      res.close()
    }
  }
  res.onWritable(() => {
    resume()
    return true
  })
  if (first.length > 0) guarded(write)
  stream({
    write(next) {
      bytes = next
      room = false
      guarded(write)
      return room
    },
    end(last) {
      guarded(() => res.end(last))
      reply.aborted = true
    },
    fail() {
      if (!reply.aborted) res.close()
    },
    onWritable(called) {
      resume = called
    },
    onClosed(called) {
      reply.onClosed = called
    },
  })
}
