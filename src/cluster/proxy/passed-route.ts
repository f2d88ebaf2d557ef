// Routes of which another node makes the answers: what reaches the client is what that node has sent.
import { randomUUID } from 'node:crypto'
import { type Context, type HttpAnswer, NO_BYTES } from '../../http/context.ts'
import { NODE_HEADER } from '../../http/node.ts'
import { idempotencyKeyOf } from '../../http/request/request-head.ts'
import { sendChunks } from '../../http/response/send-chunks.ts'
import type { PlainRoute, Route } from '../../http/route.ts'
import { ServiceError } from '../../schema/errors.ts'
import { ANSWER_MS_MAX, KEYED_ANSWER_MS_MAX, LONG_ANSWER_MS_MAX, RESEARCH_ANSWER_MS_MAX } from './limits.ts'
import type { PassedAnswer, PassedRequest } from './node-http.ts'
import type { PassingOn } from './passing-on.ts'
import { POSITION_HEADER } from './position.ts'

const SUBMIT_PATH = '/api/v1/analysis/submit'
/** Of the node that has answered: the client's own node has counted the request too, and tells its own figures. */
export const RATE_LIMIT_HEADER = /^(x-)?ratelimit/
/** Tells that a request came twice: not for a client that has sent it once. */
const KEY_NEWS = /^idempotency-replayed$/

/**
 * The route with its path, documents and limits of bodies, carried out by the writer, which checks the key and counts the
 * request. A feed's key is checked here too, before its large bodies are read: such a node needs the feed key of the writer.
 * @param passingOn throws ServiceError while there is no way to the writer
 */
export function passedRoute(route: Route, passingOn: () => PassingOn): PlainRoute {
  const { countLimit: _count, answersMarket: _market, handle: _handle, ...rest } = route
  return {
    ...rest,
    access: route.access === 'feed' ? 'feed' : 'forwarded',
    handle: async (context) => {
      const { request, isKeyOurs } = toPassOn(route, context)
      try {
        return sentOn(await passingOn().toWriter(request), isKeyOurs ? KEY_NEWS : null)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        throw toldError(error, isDryRun(route, context), isKeyOurs ? request.headers['Idempotency-Key'] : '')
      }
    },
  }
}

function toPassOn(route: Route, context: Context): { request: PassedRequest; isKeyOurs: boolean } {
  const isSubmission = route.path === SUBMIT_PATH && !isDryRun(route, context)
  const sentKey = isSubmission ? idempotencyKeyOf(context.headers) : context.headers.idempotencyKey
  const isKeyOurs = isSubmission && sentKey === null
  const key = isKeyOurs ? randomUUID().replaceAll('-', '') : (sentKey ?? '')
  const isResearch = route.access === 'researcher'
  const isRead = route.method === 'GET' || isResearch
  const repeats = isRead ? 'read' : isSubmission ? 'keyed' : 'once'
  const request = requestOf(context, key, repeats, answerMsMaxOf(route, isSubmission))
  // Exports, downloads, queries and copies end with their client. Other answers are there soon, and their clients may send the
  // next request meanwhile.
  if (isResearch || route.watchesClient) {
    const gone = new AbortController()
    context.onGone(() => gone.abort())
    request.signal = gone.signal
  }
  return { request, isKeyOurs }
}

function answerMsMaxOf(route: Route, isSubmission: boolean): number {
  if (isSubmission) return KEYED_ANSWER_MS_MAX
  if (route.isLong) return LONG_ANSWER_MS_MAX
  return route.access === 'researcher' ? RESEARCH_ANSWER_MS_MAX : ANSWER_MS_MAX
}

/** The request as it came, for another node, which is told the client that it came from. */
export function requestOf(
  context: Context,
  idempotencyKey: string,
  repeats: PassedRequest['repeats'],
  answerMsMax: number,
): PassedRequest {
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
    'X-Forwarded-For': context.ip(),
  }
  const sent = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== ''))
  return { method, path, query, headers: sent, body, repeats, answerMsMax }
}

const isDryRun = (route: Route, { query }: Context): boolean =>
  route.path === SUBMIT_PATH && !['', '0', 'false'].includes(query.get('dryRun')?.toLowerCase() ?? '')

/**
 * What may be stored of a dry run is the attempt, never a submission. Who is in doubt may send the same again with the key that this node
 * has added: it is stored once.
 * @param ownKey '': none was added
 */
function toldError(
  { code, message, extra, headers }: ServiceError,
  isDry: boolean,
  ownKey = '',
): ServiceError {
  const { mayBeStored, ...rest } = extra
  if (isDry) return new ServiceError(code, message, { ...rest, dryRun: true }, headers)
  const key = mayBeStored === true && ownKey !== '' && { 'Idempotency-Key': ownKey }
  return new ServiceError(code, message, extra, { ...headers, ...key })
}

/** Of one connection, written by the node that sends the answer to its client, or meant for it. */
const OWN_HEADERS = new Set([
  ...['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'date', 'uwebsockets'],
  ...['access-control-allow-origin', 'access-control-expose-headers', 'content-type', 'x-request-id'],
  ...[NODE_HEADER.toLowerCase(), POSITION_HEADER.toLowerCase()],
])

/** What the client gets of an answer of another node. @param dropped names of headers that it is not shown, in lower case */
export function sentOn({ status, headers, body }: PassedAnswer, dropped: RegExp | null): HttpAnswer {
  const kept = Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name) && !dropped?.test(name))
  const { 'content-type': contentType, 'content-length': length } = headers
  const head = {
    status,
    headers: Object.fromEntries(kept),
    relayed: true,
    ...(contentType && { contentType }),
  } as const
  if (Buffer.isBuffer(body)) return { ...head, body }
  return {
    ...head,
    body: NO_BYTES,
    ...(length && { bytes: Number(length) }),
    stream: (writer) => void sendChunks(body, writer),
    onDiscard: () => body.stop(),
  }
}
