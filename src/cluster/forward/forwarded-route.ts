// Routes of which another node makes the answers: what reaches the client is what that node has sent.
import { randomUUID } from 'node:crypto'
import { type Context, type HttpAnswer, NO_BYTES } from '../../http/context.ts'
import { sendChunks } from '../../http/response/send-chunks.ts'
import type { PlainRoute, Route } from '../../http/route.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { BusNames } from '../bus.ts'
import type { Answered, Errand, ForwardClient } from './forward-client.ts'
import { RelayedBody } from './relayed-body.ts'

const SUBMIT_PATH = '/api/v1/analysis/submit'
/** Of the node that has answered: the client's own node has counted the request too, and tells its own figures. */
export const RATE_LIMIT_HEADER = /^(x-)?ratelimit/i

export interface Forwarding {
  client: ForwardClient
  names: BusNames
}

/**
 * The route with its path, documents and limits of bodies, carried out by the writer, which checks the key and counts the
 * request. A feed's key is checked here too, before its large bodies are read: such a node needs the feed key of the writer.
 */
export function forwardedRoute(route: Route, { client, names }: Forwarding): PlainRoute {
  const { countLimit: _count, answersMarket: _market, handle: _handle, ...rest } = route
  return {
    ...rest,
    access: route.access === 'feed' ? 'feed' : 'forwarded',
    handle: async (context) => {
      const { errand, isKeyOurs } = errandOf(route, context)
      try {
        return relayedAnswer(client, await client.send(names.writer, errand), isKeyOurs ? KEY_NEWS : NO_NEWS)
      } catch (error) {
        if (isDryRun(route, context)) throw dryRunError(error)
        throw isKeyOurs ? doubtfulError(error, errand.request.headers['Idempotency-Key']) : error
      }
    },
  }
}

/** Headers that tell that a request came twice: not for a client that has sent it once. */
const KEY_NEWS = /^idempotency-replayed$/i
const NO_NEWS = /^$/

function errandOf(route: Route, context: Context): { errand: Errand; isKeyOurs: boolean } {
  const isSubmission = route.path === SUBMIT_PATH && !isDryRun(route, context)
  const sentKey = context.headers.idempotencyKey
  const isKeyOurs = isSubmission && sentKey === ''
  const key = isKeyOurs ? randomUUID().replaceAll('-', '') : sentKey
  const isResearch = route.access === 'researcher'
  const isRead = route.method === 'GET' || isResearch
  const repeats = isRead ? 'read' : isSubmission ? 'keyed' : 'once'
  let isGone = false
  // Exports, downloads and queries end with their client. Other answers are there soon, and their clients may send the next
  // request meanwhile.
  if (isResearch)
    context.onGone(() => {
      isGone = true
    })
  return { errand: { ...errandAs(repeats, context, key), isAbandoned: () => isGone }, isKeyOurs }
}

/** The request as it came, for another node. */
export function errandAs(
  repeats: Errand['repeats'],
  context: Context,
  idempotencyKey: string,
): Omit<Errand, 'isAbandoned'> {
  const { method, path, queryText: query, headers, requestId, body } = context
  const named = {
    Authorization: headers.authorization,
    Accept: headers.accept,
    'Accept-Encoding': headers.acceptEncoding,
    'Content-Type': headers.contentType,
    'If-None-Match': headers.ifNoneMatch,
    'If-Range': headers.ifRange,
    Range: headers.range,
    'Idempotency-Key': idempotencyKey,
    'X-Request-Id': requestId,
  }
  const sent = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== ''))
  const request = { kind: 'request', method, path, query, headers: sent, client: context.ip() } as const
  return { request, body, repeats }
}

const isDryRun = (route: Route, { query }: Context): boolean =>
  route.path === SUBMIT_PATH && !['', '0', 'false'].includes(query.get('dryRun')?.toLowerCase() ?? '')

/** What may be stored of a dry run is the attempt, never a submission. */
function dryRunError(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  const { mayBeStored: _, ...extra } = error.extra
  return new ServiceError(error.code, error.message, { ...extra, dryRun: true }, { ...error.headers })
}

/** Who is in doubt may send the same again with the key that this node has added: it is stored once. */
function doubtfulError(error: unknown, key: string | undefined): unknown {
  if (!(error instanceof ServiceError) || error.extra.mayBeStored !== true || key === undefined) return error
  return new ServiceError(error.code, error.message, error.extra, {
    ...error.headers,
    'Idempotency-Key': key,
  })
}

/** @param dropped names of headers that the client is not shown */
export function relayedAnswer(
  client: ForwardClient,
  { reply, subject, call }: Answered,
  dropped: RegExp,
): HttpAnswer {
  const headers: Record<string, string> = {}
  let contentType: string | undefined
  let length: string | undefined
  for (const [name, value] of reply.headers) {
    const lower = name.toLowerCase()
    if (lower === 'content-type') contentType = value
    else if (lower === 'content-length') length = value
    else if (!dropped.test(name)) headers[name] = value
  }
  const { status, bytes, more } = reply
  const head = { status, headers, relayed: true as const, ...(contentType !== undefined && { contentType }) }
  if (!more) return { ...head, body: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) }
  const rest = new RelayedBody(client.link, subject, call, reply)
  return {
    ...head,
    body: NO_BYTES,
    ...(length !== undefined && { bytes: Number(length) }),
    stream: (writer) => void sendChunks(rest, writer),
    onDiscard: () => rest.stop(),
  }
}
