// Writes answers to the engine's responses: the only file that does, except for WebSockets.
import { lazyPackage } from '../../lib/lazy-package.ts'
import { ERRORS, ServiceError } from '../../schema/errors.ts'
import { type BodyWriter, bodyBytes, type HttpAnswer, JSON_TYPE, NO_BYTES, PROBLEM_TYPE } from '../context.ts'
import type { EngineResponse } from '../engine.ts'
import { STREAMED_BYTES_MIN } from '../limits.ts'
import { NO_LIMITS } from '../request/read-limits.ts'
import type { RequestIds } from '../request/request-ids.ts'
import { ChunkedBody } from './chunked-body.ts'
import type { CachedResponse } from './response-cache.ts'
import { toServiceError } from './to-service-error.ts'

const { STATUS_CODES } = lazyPackage<typeof import('node:http')>('node:http')
/** Reasons by status; of two, Node knows the words of an older standard. */
const REASONS: typeof STATUS_CODES = {
  ...STATUS_CODES,
  413: 'Content Too Large',
  422: 'Unprocessable Content',
}

const EXPOSED_HEADERS =
  'X-Request-Id, ETag, Location, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, ' +
  'X-RateLimit-Reset, X-Result-Count, X-Complete-From, X-Held-From, X-Incomplete, X-Clamped, X-List-Version, X-Next-Cursor, X-Next-Since, X-More, X-Missing-Files, ' +
  'Idempotency-Key, Idempotency-Replayed, X-Ignored-Parameters, X-Approximate, X-Warming-Up, X-Market-Time, X-Market-Waits, X-Lag-Ms, Accept-Ranges, Content-Range'

/** Pages of any origin may read the answers: no cookies are used. */
const CROSS_ORIGIN_HEADERS = `\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: ${EXPOSED_HEADERS}`

/** The answer to an error (RFC 9457). An error that no code expected becomes `internal`, without its message. */
export function problemAnswer(
  error: unknown,
  path: string,
  requestId: string,
): HttpAnswer & { body: Record<string, unknown> } {
  const known =
    toServiceError(error) ??
    new ServiceError('internal', 'The server failed to answer; the fault is its own.')
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

/** The response to one request. The client may disconnect before the answer is ready. */
export class Reply {
  readonly res: EngineResponse
  readonly requestId: string
  readonly headOnly: boolean
  /** Whether nothing can be written any more: the client has disconnected, or the engine has the whole answer. */
  isClosed = false
  /** While the engine's handler runs, it collects what is written and sends it together. */
  isCorked = true
  /** Whether the connection is closed after this answer. */
  closes = false
  /** Called if the client disconnects before it has the whole answer. */
  onClosed?: () => void
  /** Called once the engine has the last byte of the answer; for a stream, once it has begun. */
  onSent: () => void = () => {}
  #isPaused = false

  constructor(res: EngineResponse, requestId: string, headOnly = false) {
    this.res = res
    this.requestId = requestId
    this.headOnly = headOnly
  }

  /** Must be called if the engine's handler returns before the whole answer is written: the client may then disconnect. */
  detach(onGone: () => void = () => {}): void {
    if (!this.isCorked) return
    this.isCorked = false
    this.res.onAborted(() => {
      this.isClosed = true
      this.onClosed?.()
      onGone()
    })
  }

  /** Stops reading from the socket until this request is answered: the engine closes a connection on which a request arrives
   *  while another waits. A disconnect is not noticed meanwhile. */
  pause(): void {
    if (this.isClosed || this.#isPaused) return
    this.#isPaused = true
    this.res.pause()
  }

  /** Reads from the socket again. Must be called before the answer is sent: after that the response is invalid. */
  resume(): void {
    if (this.#isPaused) this.res.resume()
    this.#isPaused = false
  }
}

/**
 * The status line and the headers that every answer has, by status. The engine writes a status and a header's value unchanged,
 * so several headers can be written in one call; and it takes bytes faster than text.
 */
const commonHeads = new Map<number, Buffer>()

function commonHead(status: number): Buffer {
  let head = commonHeads.get(status)
  if (head === undefined) {
    head = Buffer.from(`${status} ${REASONS[status]}${CROSS_ORIGIN_HEADERS}`)
    commonHeads.set(status, head)
  }
  return head
}

/** Headers as text, each after a line end. */
function headerLines(headers: Readonly<Record<string, string>> | undefined): string {
  let lines = ''
  for (const name in headers) lines += `\r\n${name}: ${headers[name]}`
  return lines
}

/** The headers that belong to this answer alone, as text. */
function answerHeaderLines(answer: HttpAnswer, hasBody: boolean): string {
  const lines = headerLines(answer.headers)
  return hasBody ? `\r\nContent-Type: ${answer.contentType ?? JSON_TYPE}${lines}` : lines
}

/** Status line and headers of an answer for the response cache, with a request id at the end. */
export function encodeHead(answer: HttpAnswer, ids: RequestIds): { head: Buffer; bytesBeforeId: number } {
  const common = commonHead(answer.status)
  const idLine = `\r\nX-Request-Id: ${ids.next()}`
  const head = Buffer.concat([common, Buffer.from(answerHeaderLines(answer, true) + idLine)])
  return { head, bytesBeforeId: head.length - idLine.length }
}

/**
 * Sends a cached response, inside the engine's handler. A large body is shared by all who read it: a slow reader holds no copy.
 * @param sentId the request id that the client sent, or an empty string.
 * @returns the reply while it is still being sent, or null once all of it is.
 */
export function sendCached(
  res: EngineResponse,
  { head, bytesBeforeId, body }: CachedResponse,
  ids: RequestIds,
  sentId: string,
  limits: Record<string, string>,
): Reply | null {
  if (sentId === '' && limits === NO_LIMITS) {
    ids.renew(head)
    res.writeStatus(head)
  } else {
    res.writeStatus(head.subarray(0, bytesBeforeId))
    res.writeHeader('X-Request-Id', ids.idFor(sentId) + headerLines(limits))
  }
  if (body.length < STREAMED_BYTES_MIN) {
    res.end(body)
    return null
  }
  const reply = new Reply(res, sentId)
  sendLarge(reply, body.length, (at) => body.subarray(at))
  return reply.isClosed ? null : reply
}

/** Sends an answer, unless the client has disconnected. */
export function send(reply: Reply, answer: HttpAnswer, limits: Record<string, string> = {}): void {
  if (reply.isClosed || reply.headOnly) answer.onDiscard?.()
  if (reply.isClosed) return void reply.onSent()
  const { res } = reply
  reply.resume()
  const hasBody = answer.status !== 304 && answer.status !== 204
  const { body: made } = answer
  const body = !hasBody ? null : made instanceof ChunkedBody ? made : bodyBytes(made)
  const write = () => {
    res.writeStatus(commonHead(answer.status))
    res.writeHeader(
      'X-Request-Id',
      reply.requestId + answerHeaderLines(answer, hasBody) + headerLines(limits),
    )
    const isOfUnknownLength = answer.stream !== undefined && answer.bytes === undefined
    if (body !== null && reply.headOnly && !isOfUnknownLength) {
      // Not endWithoutBody(bytes): the engine would wait for the bytes and close the connection at the next request.
      res.writeHeader(
        'Content-Length',
        `${body instanceof ChunkedBody ? body.bytes : (answer.bytes ?? body.length)}`,
      )
    }
    if (body === null || reply.headOnly) res.endWithoutBody()
    else if (body instanceof ChunkedBody) return sendLarge(reply, body.bytes, (at) => body.chunkAt(at))
    else if (answer.stream !== undefined && answer.bytes !== undefined)
      return openMeasuredStream(reply, answer.bytes, answer.stream)
    else if (answer.stream !== undefined) openStream(reply, body, answer.stream)
    else if (body.length < STREAMED_BYTES_MIN) res.end(body, reply.closes)
    else return sendLarge(reply, body.length, (at) => body.subarray(at))
    reply.onSent()
  }
  if (reply.isCorked) write()
  else res.cork(write)
}

/** Sends a large body as fast as the socket takes it, without a copy of the rest. */
function sendLarge(reply: Reply, bytes: number, chunkAt: (offset: number) => Buffer): void {
  const { res } = reply
  /** Sends from an offset on. @returns false if the socket is full. */
  const push = (from: number): boolean => {
    for (let offset = from; ; ) {
      const chunk = chunkAt(offset)
      const [ok, finished] = res.tryEnd(chunk, bytes)
      if (finished) {
        reply.isClosed = true
        reply.onSent()
      }
      if (finished || !ok) return ok
      offset += chunk.length
    }
  }
  if (push(0) && reply.isClosed) return
  reply.detach(() => reply.onSent())
  res.onWritable(push)
}

/** Cuts the connection, unless the whole answer is sent. */
const cut = (reply: Reply): unknown => reply.isClosed || reply.res.close()

/** Hands the open response to a stream. After a failure the connection is cut, so that an incomplete body is not taken for a
 *  complete one. */
function openStream(reply: Reply, first: Buffer, stream: (writer: BodyWriter) => void): void {
  const { res } = reply
  reply.detach()
  let resume: () => void = () => {}
  let bytes = first
  let tail: Buffer = NO_BYTES
  let hasRoom = true
  // One closure for all writes of a stream: a hundred streams may have a thousand writes a second each.
  const write = () => {
    hasRoom = res.write(bytes)
    if (tail.length > 0) hasRoom = res.write(tail) && hasRoom
  }
  const corked = (act: () => void) => {
    if (reply.isClosed) return
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
  if (first.length > 0) corked(write)
  stream({
    write(next, _kind, nextTail = NO_BYTES) {
      bytes = next
      tail = nextTail
      hasRoom = false
      corked(write)
      return hasRoom
    },
    end(last) {
      corked(() => res.end(last))
      reply.isClosed = true
    },
    fail: () => cut(reply),
    onWritable(onWritable) {
      resume = onWritable
    },
    onClosed(onClosed) {
      reply.onClosed = onClosed
    },
  })
}

/** As `openStream`, for a body of a known length. The engine copies nothing of it: a chunk must stay as it is until there is
 *  room for the next. */
function openMeasuredStream(reply: Reply, bytes: number, stream: (writer: BodyWriter) => void): void {
  const { res } = reply
  reply.detach()
  let resume: () => void = () => {}
  let onClosed: () => void = () => {}
  let chunk: Buffer = NO_BYTES
  let chunkAt = 0
  /** Sends what is left of the chunk at `offset` of the body. @returns whether all of it was taken */
  const push = (offset: number): boolean => {
    const [hasRoom, isFinished] = res.tryEnd(chunk.subarray(offset - chunkAt), bytes)
    if (isFinished) {
      reply.isClosed = true
      reply.onSent()
    }
    return hasRoom
  }
  res.onWritable((offset) => {
    const hasRoom = push(offset)
    if (hasRoom) resume()
    return hasRoom
  })
  reply.onClosed = () => {
    reply.onSent()
    onClosed()
  }
  stream({
    write(next) {
      if (reply.isClosed) return false
      let hasRoom = false
      res.cork(() => {
        chunk = next
        chunkAt = res.getWriteOffset()
        hasRoom = push(chunkAt)
      })
      return hasRoom
    },
    end: () => cut(reply),
    fail: () => cut(reply),
    onWritable(onWritable) {
      resume = onWritable
    },
    onClosed(closed) {
      onClosed = closed
    },
  })
}
