// Sends a request to another node over HTTP, on connections that are kept, and reads its answer as fast as it is taken. Tells apart what
// has certainly not arrived from what may have.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { urlToHttpOptions } from 'node:url'
import type { Method } from '../../http/context.ts'
import { ANOTHER_NODE, NODE_HEADER, RELAY_HEADER } from '../../http/node.ts'
import { overloaded } from '../../http/response/rate-limit-headers.ts'
import type { ChunkSource } from '../../http/response/send-chunks.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { lazyPackage } from '../../lib/lazy-package.ts'
import { unlessLate } from '../../lib/wait.ts'
import { ServiceError } from '../../schema/errors.ts'
import { UnansweredError } from './errors.ts'
import {
  CONNECT_MS_MAX,
  IDLE_SOCKET_MS_MAX,
  OPEN_ANSWERS_MAX,
  SOCKETS_MAX,
  STALLED_ANSWER_MS_MAX,
  WHOLE_ANSWER_BYTES_MAX,
} from './limits.ts'
import { type NodeAddress, relayValue } from './node-gate.ts'

const http = lazyPackage<typeof import('node:http')>('node:http')

/** A request as another node is to get it. */
export interface PassedRequest {
  method: Method
  path: string
  /** As it was sent, without its question mark. */
  query: string
  /** By name, as they were sent. */
  headers: Readonly<Record<string, string>>
  body: Buffer
  /**
   * `read`: it changes nothing. `keyed`: it has an Idempotency-Key, so that it is carried out once however often it arrives.
   * `once`: it is not tried again where it may have been carried out.
   */
  repeats: 'read' | 'keyed' | 'once'
  /** How long the answer may take to begin. */
  answerMsMax: number
  /** Aborted when nobody waits for the answer any more. */
  signal?: AbortSignal
}

/** The answer of another node. */
export interface PassedAnswer {
  status: number
  /** By name in lower case. */
  headers: Readonly<Record<string, string>>
  /** Whole, or what is still to be read. */
  body: Buffer | ChunkSource
}

const NO_BODY_STATUSES = [204, 304]
const AGENT = {
  keepAlive: true,
  maxSockets: SOCKETS_MAX,
  maxTotalSockets: SOCKETS_MAX,
  maxFreeSockets: SOCKETS_MAX,
  timeout: IDLE_SOCKET_MS_MAX,
}

/** HTTP carries bytes, and Node writes and reads them one by one; the HTTP engine reads and writes UTF-8. */
const toBytes = (text: string): string => Buffer.from(text).toString('latin1')
const fromBytes = (text: string): string => Buffer.from(text, 'latin1').toString()
const mapped = (headers: object, change: (text: string) => string): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, change(`${value}`)]))

export class NodeHttp {
  readonly #http = new http.Agent(AGENT)
  readonly #https = new HttpsAgent(AGENT)
  /** Requests to the writer that have no answer, or not the whole of a small one. */
  readonly #unanswered = new Set<{ sentMs: number; giveUp(error: Error): void }>()
  #openAnswers = 0

  /**
   * Sends a request to a node, once.
   * @param isToWriter whether it is one of those that `giveUp` concerns
   * @throws UnansweredError; ServiceError `overloaded`, and `invalid_parameter` where it has characters that HTTP does not allow
   */
  async send(address: NodeAddress, request: PassedRequest, isToWriter = false): Promise<PassedAnswer> {
    const { answerMsMax } = request
    const sent = this.#open(address, request)
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    /** Why the answer is no longer waited for, also where it has begun. */
    let givenUp: Error | null = null
    const giveUp = (error: Error) => {
      givenUp ??= error
      reject(error)
      sent.destroy()
    }
    const unanswered = { sentMs: performance.now(), giveUp }
    if (isToWriter) this.#unanswered.add(unanswered)
    /** Whether the request may have gone out. */
    let isConnected = false
    let timer = setTimeout(
      () => giveUp(overloaded('All connections to other nodes are in use; try again.')),
      answerMsMax,
    )
    sent.once('socket', (socket: Socket & { encrypted?: boolean }) => {
      clearTimeout(timer)
      isConnected = !socket.connecting
      if (isConnected) return
      timer = setTimeout(() => giveUp(new Error('no connection in time')), CONNECT_MS_MAX)
      socket.once(socket.encrypted ? 'secureConnect' : 'connect', () => {
        clearTimeout(timer)
        isConnected = true
      })
    })
    // The engine's own time begins with a connection.
    sent.setTimeout(answerMsMax, () => giveUp(new Error('there was no answer in time')))
    // An error that comes after the answer has begun is told to who reads it, too.
    sent.on('response', resolve).on('error', reject)
    sent.end(request.body.length > 0 ? request.body : undefined)
    try {
      return await this.#take(await promise, address, request)
    } catch (failure) {
      sent.destroy()
      const error = givenUp ?? failure
      if (error instanceof UnansweredError || error instanceof ServiceError) throw error
      const why = errorMessage(error)
      if (isConnected) throw new UnansweredError('late', `${address.url}: ${why}`, error)
      throw new UnansweredError('unreachable', `${address.url} cannot be reached: ${why}`, error)
    } finally {
      clearTimeout(timer)
      this.#unanswered.delete(unanswered)
    }
  }

  /** Gives up those requests to the writer that were sent before. */
  giveUp(beforeMs: number): void {
    for (const { sentMs, giveUp } of this.#unanswered)
      if (sentMs < beforeMs) giveUp(new Error('the node has ended before it answered'))
  }

  /** Ends the connections that nobody uses. */
  close(): void {
    this.#http.destroy()
    this.#https.destroy()
  }

  /** @throws UnansweredError, ServiceError; rejects where the connection breaks */
  async #take(
    answer: IncomingMessage,
    address: NodeAddress,
    { repeats }: PassedRequest,
  ): Promise<PassedAnswer> {
    const { statusCode: status = 0 } = answer
    const headers = mapped(answer.headers, fromBytes)
    checkNode(headers[NODE_HEADER.toLowerCase()], address)
    const bytes = NO_BODY_STATUSES.includes(status) ? 0 : Number(headers['content-length'] ?? Number.NaN)
    if (bytes <= WHOLE_ANSWER_BYTES_MAX)
      return { status, headers, body: Buffer.concat(await answer.toArray()) }
    // What was carried out is told in any case.
    if (repeats === 'read' && this.#openAnswers >= OPEN_ANSWERS_MAX)
      throw overloaded('The server passes on as many large answers as it may; try again.')
    this.#openAnswers++
    answer.once('close', () => this.#openAnswers--)
    return { status, headers, body: bodyOf(answer) }
  }

  #open(address: NodeAddress, { method, path, query, headers, body, signal }: PassedRequest): ClientRequest {
    const target = urlToHttpOptions(new URL(address.url))
    const isTls = target.protocol === 'https:'
    const length = method === 'POST' && { 'Content-Length': `${body.length}` }
    const options = {
      ...target,
      method,
      path: toBytes(query === '' ? path : `${path}?${query}`),
      headers: { [RELAY_HEADER]: relayValue(address), ...mapped(headers, toBytes), ...length },
      agent: isTls ? this.#https : this.#http,
      ...(signal && { signal }),
    }
    try {
      return isTls ? requestHttps(options) : http.request(options)
    } catch (error) {
      throw new ServiceError('invalid_parameter', `The request cannot be passed on: ${errorMessage(error)}.`)
    }
  }
}

/** @throws UnansweredError where an answer is not one of that node */
function checkNode(named: string | undefined, { nodeId, url }: NodeAddress): void {
  if (named === nodeId) return
  if (named === ANOTHER_NODE)
    throw new UnansweredError('unreachable', `${url} is the address of another process than the bus tells of`)
  throw new UnansweredError('foreign', `what answers at ${url} is no node of this cluster`)
}

/** The connection is read no faster than `next` is called. */
function bodyOf(answer: IncomingMessage): ChunkSource {
  // A slow client is no reason to cut it.
  answer.socket.setTimeout(0)
  const chunks: AsyncIterator<Buffer, undefined> = answer[Symbol.asyncIterator]()
  const stalled = () => {
    throw new Error('the answer stalled')
  }
  return {
    next: async () => (await unlessLate(STALLED_ANSWER_MS_MAX, chunks.next(), stalled)).value ?? null,
    stop: () => void answer.destroy(),
  }
}
