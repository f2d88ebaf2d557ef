// Calls to RPC endpoints: JSON-RPC over HTTP within one budget of requests.
import pLimit, { type LimitFunction } from 'p-limit'
import { z } from 'zod'
import { fetchFailure } from '../../lib/error-text.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { readBoundedText } from '../../lib/text/bounded-text.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { type Lane, RequestPace } from '../request-pace.ts'
import { readRetryAfterMs } from '../retry-after.ts'
import { withinTime } from '../wait.ts'
import { type Endpoint, withoutAddresses } from './endpoints.ts'
import {
  METHOD_BUSY_MAX,
  METHOD_REFUSED_MS,
  RPC_ANSWER_BYTES_MAX,
  RPC_CONCURRENCY,
  RPC_PAUSE_MS,
  RPC_PAUSE_MS_MAX,
  RPC_SPARE_CONCURRENCY,
  RPC_TIMEOUT_MS,
  RPC_WAITING_MAX,
} from './limits.ts'

export interface RpcOptions {
  endpoints: readonly Endpoint[]
  /** Of all calls together. */
  requestsPerSecond: number
  /** The chain that every endpoint must be of; an endpoint is asked before its first call. Without it any chain will do. */
  genesis?: string | undefined
  timeoutMs?: number | undefined
  /** Told of each answer. */
  tape?: ChainTape | undefined
}

export type RpcFault =
  | 'busy'
  | 'stopped'
  | 'timeout'
  | 'unreachable'
  | 'rate_limited'
  | 'refused'
  | 'malformed'
  | 'other_chain'
/** A result, or why there is none. `refused`: the endpoint does not do this; another try gives the same. */
export type RpcAnswer = (
  | { ok: true; result: unknown }
  /** `code` is that of JSON-RPC, where the endpoint has said one; `sentMs` is on the monotonic clock, where a request was sent. */
  | { ok: false; fault: RpcFault; message: string; code?: number; sentMs?: number }
) & {
  /** Which of the endpoints has answered, from 0, where there are several. */
  endpoint?: number
}

/** Keeps what comes in, as it came. */
export interface ChainTape {
  frame(text: string): void
  answer(method: string, params: readonly unknown[], result: unknown): void
}

/** What the feed asks endpoints: a node, or a tape of one. */
export interface Rpc {
  /**
   * Does not reject.
   * @param tries how often this was asked of each endpoint in vain: one that was asked least is asked, the present one first
   */
  call(
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    tries?: readonly number[],
  ): Promise<RpcAnswer>
  /** The host that is asked at present. */
  readonly host: string
  /** How many there are to ask: one that has not may be followed by one that has. */
  readonly endpointCount: number
  /** The same for calls that come after all others, and that give way where an endpoint refuses them. */
  readonly spare: Pick<Rpc, 'call'>
  /** Told once of each method that an endpoint does not serve. */
  onMethodRefused: ((method: string, host: string, message: string) => void) | null
  describe(): Record<string, unknown>
}

const METHOD_NOT_FOUND = -32_601
const REFUSING_STATUSES = [401, 402, 403, 404, 405, 410]
/** As providers say that a plan does not have a method. */
const REFUSES_METHOD =
  /method[^.]*\b(not|disabled|blocked|unavailable|unsupported|forbidden)\b|\b(not|un)\s?(available|allowed|supported|enabled)\b|upgrade/i

const envelopeSchema = z.union([
  z.object({
    jsonrpc: z.literal('2.0'),
    // Null where the node did not read so far, as of a key that it does not know.
    id: z.number().nullable(),
    error: z.object({ code: z.number(), message: z.string() }),
  }),
  z.object({ jsonrpc: z.literal('2.0'), id: z.number(), result: z.unknown() }),
])
const MESSAGE_CHARS_MAX = 200

export class RpcClient implements Rpc {
  readonly #options: RpcOptions
  onMethodRefused: Rpc['onMethodRefused'] = null
  /** For what can wait: its faults move no live call to another endpoint. */
  readonly spare = {
    call: (method: string, params: readonly unknown[], signal: AbortSignal) =>
      this.#callSpare(method, params, signal),
  }
  readonly #limit = pLimit(RPC_CONCURRENCY)
  readonly #spareLimit = pLimit(RPC_SPARE_CONCURRENCY)
  /** Of the budget of all endpoints. */
  readonly #pace: RequestPace
  readonly #refusals = new MethodRefusals()
  #spareCurrent = 0
  #id = 0
  #current = 0
  /** Addresses that are of the wanted chain. */
  readonly #checked = new Set<string>()
  #calls = 0
  readonly #faults: Partial<Record<RpcFault, number>> = {}

  constructor(options: RpcOptions) {
    this.#options = options
    this.#pace = new RequestPace(options.requestsPerSecond)
  }

  get host(): string {
    return this.#endpoint.host
  }

  get endpointCount(): number {
    return this.#options.endpoints.length
  }

  get #endpoint(): Endpoint {
    return this.#options.endpoints[this.#current]
  }

  call(
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    tries: readonly number[] = [],
  ): Promise<RpcAnswer> {
    return this.#queued(this.#limit, method, params, async () => {
      const endpoint = this.#leastTried(tries)
      const answer = await this.#callEndpoint(this.#options.endpoints[endpoint], method, params, signal)
      // Another endpoint may be reached, or may have requests left; calls that fail together move on once.
      if (!answer.ok && answer.fault !== 'stopped' && this.#current === endpoint)
        this.#current = (endpoint + 1) % this.endpointCount
      return { ...answer, endpoint }
    })
  }

  /** The first from the present endpoint on that was asked least. */
  #leastTried(tries: readonly number[]): number {
    const { endpointCount } = this
    let least = this.#current
    for (let step = 1; step < endpointCount; step++) {
      const at = (this.#current + step) % endpointCount
      if ((tries[at] ?? 0) < (tries[least] ?? 0)) least = at
    }
    return least
  }

  #callSpare(method: string, params: readonly unknown[], signal: AbortSignal): Promise<RpcAnswer> {
    return this.#queued(this.#spareLimit, method, params, async () => {
      const { endpoints } = this.#options
      let latest: RpcAnswer = { ok: false, fault: 'refused', message: `no endpoint serves ${method}` }
      for (let attempt = 0; attempt < endpoints.length; attempt++) {
        const endpoint = endpoints[(this.#spareCurrent + attempt) % endpoints.length]
        if (this.#refusals.has(endpoint, method)) continue
        latest = await this.#callEndpoint(endpoint, method, params, signal, 'spare')
        if (this.#refusals.isNew(endpoint, method, latest))
          this.onMethodRefused?.(method, endpoint.host, latest.ok ? '' : latest.message)
        if (latest.ok || latest.fault === 'stopped') return latest
        // What one endpoint refuses another may serve; one that fails gives way to the next at the next call.
        if (!this.#refusals.has(endpoint, method)) {
          this.#spareCurrent++
          return latest
        }
      }
      return latest
    })
  }

  /** Makes a call when those before it leave room, unless too many wait. */
  async #queued(
    limit: LimitFunction,
    method: string,
    params: readonly unknown[],
    call: () => Promise<RpcAnswer>,
  ): Promise<RpcAnswer> {
    if (limit.pendingCount >= RPC_WAITING_MAX) return this.#failed('busy', 'too many calls wait')
    const answer = await limit(call)
    if (answer.ok) this.#options.tape?.answer(method, params, answer.result)
    return answer
  }

  /** Whether an endpoint is of the wanted chain; null where it does not say. Does not reject. */
  async isOfChain(endpoint: Endpoint, signal: AbortSignal): Promise<boolean | null> {
    // A connection that was lost does not wait for calls.
    if (this.#isKnown(endpoint)) return true
    const fault = await this.#limit(() => this.#whyNotOfChain(endpoint, signal))
    return fault === null ? true : fault.ok || fault.fault !== 'other_chain' ? null : false
  }

  async #callEndpoint(
    endpoint: Endpoint,
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    lane: Lane = 'live',
  ): Promise<RpcAnswer> {
    const why = await this.#whyNotOfChain(endpoint, signal, lane)
    return why ?? this.#request(endpoint, method, params, signal, lane)
  }

  /** Whether an endpoint needs not be asked which chain it is of. */
  #isKnown({ url }: Endpoint): boolean {
    return this.#options.genesis === undefined || this.#checked.has(url)
  }

  async #whyNotOfChain(
    endpoint: Endpoint,
    signal: AbortSignal,
    lane: Lane = 'live',
  ): Promise<RpcAnswer | null> {
    if (this.#isKnown(endpoint)) return null
    const answer = await this.#request(endpoint, 'getGenesisHash', [], signal, lane)
    if (!answer.ok) return answer
    if (answer.result !== this.#options.genesis)
      return this.#failed(
        'other_chain',
        `${endpoint.host} is an endpoint of another chain than Solana's mainnet`,
      )
    this.#checked.add(endpoint.url)
    return null
  }

  describe(): Record<string, unknown> {
    const { requestsPerSecond } = this.#options
    const { pendingCount: waiting } = this.#limit
    return {
      host: this.host,
      requestsPerSecond,
      calls: this.#calls,
      waiting,
      faults: { ...this.#faults },
      refusedMethods: this.#refusals.describe(),
    }
  }

  #failed(fault: RpcFault, message: string): RpcAnswer & { ok: false } {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1
    const text = withoutAddresses(message, this.#options.endpoints).slice(0, MESSAGE_CHARS_MAX)
    return { ok: false, fault, message: text }
  }

  async #request(
    endpoint: Endpoint,
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
    lane: Lane,
  ): Promise<RpcAnswer> {
    await this.#pace.turn(signal, lane)
    const { timeoutMs = RPC_TIMEOUT_MS } = this.#options
    const sentMs = performance.now()
    const answer = await withinTime(timeoutMs, signal, (ending, heard) =>
      this.#ask(endpoint, method, params, { ending, heard }, signal),
    )
    return answer.ok ? answer : { ...answer, sentMs }
  }

  async #ask(
    { url, host }: Endpoint,
    method: string,
    params: readonly unknown[],
    { ending, heard }: { ending: AbortSignal; heard: () => void },
    signal: AbortSignal,
  ): Promise<RpcAnswer> {
    if (signal.aborted) return this.#failed('stopped', 'the feed stops')
    const id = ++this.#id
    this.#calls++
    try {
      const response = await fetch(withoutUser(url), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...authorization(url) },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
        signal: ending,
        redirect: 'manual',
      })
      if (response.status === 429 || response.status === 503) this.#pause(response)
      if (!response.ok) {
        // Its status says all; its body may never end.
        await response.body?.cancel()
        return this.#failedWith(response.status, host)
      }
      const text = await readBoundedText(response, RPC_ANSWER_BYTES_MAX, heard)
      const answer = this.#readEnvelope(text, id, host)
      // Too many requests, as several providers say it with status 200.
      if (!answer.ok && answer.fault === 'rate_limited') this.#pause(response)
      return answer
    } catch (error) {
      if (signal.aborted) return this.#failed('stopped', 'the feed stops')
      return this.#failed(ending.aborted ? 'timeout' : 'unreachable', `${host}: ${fetchFailure(error)}`)
    }
  }

  #failedWith(status: number, host: string): RpcAnswer {
    const message = `${host} answers ${status}`
    if (status === 429) return this.#failed('rate_limited', message)
    if (status >= 500) return this.#failed('unreachable', message)
    return { ...this.#failed('refused', message), code: status }
  }

  #readEnvelope(text: string | null, id: number, host: string): RpcAnswer {
    const envelope = text === null ? undefined : safeParse(envelopeSchema, parseJson(text)).data
    if (envelope === undefined || (envelope.id !== null && envelope.id !== id))
      return this.#failed('malformed', `${host} answers no JSON-RPC`)
    if (!('error' in envelope)) return { ok: true, result: envelope.result }
    const { code, message } = envelope.error
    const isBusy = code === -32_005 || code === -32_429 || code === 429
    return { ...this.#failed(isBusy ? 'rate_limited' : 'refused', `${host}: ${message}`), code }
  }

  #pause({ headers }: Response): void {
    const askedMs = readRetryAfterMs(headers.get('retry-after'), headers.get('date')) ?? RPC_PAUSE_MS
    this.#pace.pause(Math.min(askedMs, RPC_PAUSE_MS_MAX))
  }
}

/** Which methods which endpoints have refused, for a while. */
class MethodRefusals {
  /** By address and method: until when, on the monotonic clock. */
  readonly #until = new Map<string, { host: string; method: string; untilMs: number }>()
  /** Answers 429 in a row, and when the last of them came. */
  readonly #busy = new Map<string, { count: number; atMs: number }>()
  readonly #told = new Set<string>()

  has({ url }: Endpoint, method: string): boolean {
    return performance.now() < (this.#until.get(`${method} ${url}`)?.untilMs ?? 0)
  }

  /** Learns from an answer. @returns whether it is the first that refuses the method as such */
  isNew({ url, host }: Endpoint, method: string, answer: RpcAnswer): boolean {
    const key = `${method} ${url}`
    if (!refusesMethod(answer) && this.#countBusy(key, answer) < METHOD_BUSY_MAX) return false
    this.#busy.delete(key)
    this.#until.set(key, { host, method, untilMs: performance.now() + METHOD_REFUSED_MS })
    const isNew = !this.#told.has(key)
    this.#told.add(key)
    return isNew
  }

  /** @returns how many answers 429 there are in a row. Calls that were on their way together have met one moment, and count once. */
  #countBusy(key: string, answer: RpcAnswer): number {
    const { count, atMs } = this.#busy.get(key) ?? { count: 0, atMs: Number.NEGATIVE_INFINITY }
    if (answer.ok || answer.fault !== 'rate_limited') this.#busy.delete(key)
    else if ((answer.sentMs ?? 0) >= atMs) this.#busy.set(key, { count: count + 1, atMs: performance.now() })
    return this.#busy.get(key)?.count ?? 0
  }

  /** Hosts by method. */
  describe(): Record<string, string[]> {
    const refused: Record<string, string[]> = {}
    for (const { host, method, untilMs } of this.#until.values())
      if (performance.now() < untilMs) refused[method] = [...(refused[method] ?? []), host]
    return refused
  }
}

/** Whether an endpoint says that it does not serve a method, not that it does not like what was asked. */
function refusesMethod(answer: RpcAnswer): boolean {
  if (answer.ok || answer.fault !== 'refused') return false
  const { code = 0, message } = answer
  return code === METHOD_NOT_FOUND || REFUSING_STATUSES.includes(code) || REFUSES_METHOD.test(message)
}

/** `fetch` refuses an address that names a user. */
function withoutUser(text: string): string {
  const url = new URL(text)
  url.username = url.password = ''
  return url.href
}

function authorization(text: string): Record<string, string> {
  const { username, password } = new URL(text)
  if (username === '') return {}
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { Authorization: `Basic ${Buffer.from(user).toString('base64')}` }
}

/** Errors of Solana's nodes (`rpc_custom_error.rs`). A block that is listed and then counts as skipped is one that is missing. */
const PRUNED_CODES = [
  -32_001, // cleaned up
  -32_007, // skipped, or missing since the node began from a snapshot
  -32_009, // skipped, or missing in the long-term storage
  -32_011, // the node keeps no history
]
const NOT_YET_CODES = [
  -32_004, // not available
  -32_014, // its status is not available yet
  -32_016, // the node is behind
]

/** What an endpoint answers each time. Any other error may be of the moment, or of this answer alone. */
const REFUSED_CODES = [
  -32_600, // not a request that it knows
  -32_602, // not with these parameters
  -32_015, // a transaction of a version that is not supported
]

type Verdict = 'again' | 'not_yet' | 'unsure' | 'pruned' | 'refused' | 'over'
/** What an error says of what was asked: whether the same endpoint, or another one, may have it later. */
export function verdictOf(answer: RpcAnswer & { ok: false }): Verdict {
  const { fault, code } = answer
  if (fault === 'stopped') return 'over'
  if (fault === 'timeout' || fault === 'unreachable' || fault === 'rate_limited' || fault === 'busy')
    return 'again'
  if (fault === 'malformed') return 'unsure'
  if (code === undefined) return 'refused'
  if (PRUNED_CODES.includes(code)) return 'pruned'
  if (NOT_YET_CODES.includes(code)) return 'not_yet'
  // From 300 on they are statuses of HTTP.
  const isRefused = (code >= 300 && code < 500) || REFUSED_CODES.includes(code) || refusesMethod(answer)
  return isRefused ? 'refused' : 'unsure'
}
