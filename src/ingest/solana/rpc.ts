// Calls to RPC endpoints: JSON-RPC over HTTP within one budget of requests.
import pLimit from 'p-limit'
import { z } from 'zod'
import { errorMessage } from '../../lib/error-text.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { readRetryAfterMs } from '../retry-after.ts'
import { wait } from '../wait.ts'
import { type Endpoint, withoutAddresses } from './endpoints.ts'
import {
  RPC_ANSWER_BYTES_MAX,
  RPC_CONCURRENCY,
  RPC_PAUSE_MS,
  RPC_PAUSE_MS_MAX,
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
  /** Told of each answer, for a tape. */
  onAnswer?: ((method: string, params: readonly unknown[], result: unknown) => void) | undefined
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
export type RpcAnswer =
  | { ok: true; result: unknown }
  /** `code` is that of JSON-RPC, where the endpoint has said one. */
  | { ok: false; fault: RpcFault; message: string; code?: number }

/** What the feed asks endpoints: a node, or a tape of one. */
export interface Rpc {
  /** Does not reject. */
  call(method: string, params: readonly unknown[], signal: AbortSignal): Promise<RpcAnswer>
  /** The host that is asked at present. */
  readonly host: string
  /** How many there are to ask: one that has not may be followed by one that has. */
  readonly endpointCount: number
  describe(): Record<string, unknown>
}

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
  readonly #limit = pLimit(RPC_CONCURRENCY)
  readonly #intervalMs: number
  /** The earliest time of the next request, on the monotonic clock. */
  #nextAtMs = 0
  #turns = Promise.resolve()
  #id = 0
  #current = 0
  /** Addresses that are of the wanted chain. */
  readonly #checked = new Set<string>()
  #calls = 0
  readonly #faults: Partial<Record<RpcFault, number>> = {}

  constructor(options: RpcOptions) {
    this.#options = options
    this.#intervalMs = 1_000 / options.requestsPerSecond
  }

  get host(): string {
    return this.#endpoint.host
  }

  get endpointCount(): number {
    return this.#options.endpoints.length
  }

  get #endpoint(): Endpoint {
    return this.#options.endpoints[this.#current % this.#options.endpoints.length]
  }

  async call(method: string, params: readonly unknown[], signal: AbortSignal): Promise<RpcAnswer> {
    if (this.#limit.pendingCount >= RPC_WAITING_MAX) return this.#failed('busy', 'too many calls wait')
    const answer = await this.#limit(async () => {
      const current = this.#current
      const answer = await this.#callEndpoint(this.#endpoint, method, params, signal)
      // Another endpoint may be reached, or may have requests left; calls that fail together move on once.
      if (!answer.ok && answer.fault !== 'stopped' && this.#current === current) this.#current++
      return answer
    })
    if (answer.ok) this.#options.onAnswer?.(method, params, answer.result)
    return answer
  }

  /** Whether an endpoint is of the wanted chain; null where it does not say. Does not reject. */
  async isOfChain(endpoint: Endpoint, signal: AbortSignal): Promise<boolean | null> {
    const fault = await this.#limit(() => this.#whyNotOfChain(endpoint, signal))
    return fault === null ? true : fault.ok || fault.fault !== 'other_chain' ? null : false
  }

  async #callEndpoint(
    endpoint: Endpoint,
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
  ): Promise<RpcAnswer> {
    const why = await this.#whyNotOfChain(endpoint, signal)
    return why ?? this.#request(endpoint, method, params, signal)
  }

  async #whyNotOfChain(endpoint: Endpoint, signal: AbortSignal): Promise<RpcAnswer | null> {
    const { genesis } = this.#options
    if (genesis === undefined || this.#checked.has(endpoint.url)) return null
    const answer = await this.#request(endpoint, 'getGenesisHash', [], signal)
    if (!answer.ok) return answer
    if (answer.result !== genesis)
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
    return { host: this.host, requestsPerSecond, calls: this.#calls, waiting, faults: { ...this.#faults } }
  }

  #failed(fault: RpcFault, message: string): RpcAnswer & { ok: false } {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1
    const text = withoutAddresses(message, this.#options.endpoints).slice(0, MESSAGE_CHARS_MAX)
    return { ok: false, fault, message: text }
  }

  /** Requests take turns in the order in which they were asked for, at the rate of the budget. */
  #waitForTurn(signal: AbortSignal): Promise<void> {
    this.#turns = this.#turns.then(async () => {
      while (!signal.aborted && performance.now() < this.#nextAtMs)
        await wait(this.#nextAtMs - performance.now(), signal)
      this.#nextAtMs = Math.max(this.#nextAtMs, performance.now() - this.#intervalMs) + this.#intervalMs
    })
    return this.#turns
  }

  async #request(
    { url, host }: Endpoint,
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
  ): Promise<RpcAnswer> {
    await this.#waitForTurn(signal)
    if (signal.aborted) return this.#failed('stopped', 'the feed stops')
    const id = ++this.#id
    this.#calls++
    const timeout = AbortSignal.timeout(this.#options.timeoutMs ?? RPC_TIMEOUT_MS)
    try {
      const response = await fetch(withoutUser(url), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...authorization(url) },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
        signal: AbortSignal.any([timeout, signal]),
        redirect: 'manual',
      })
      const text = await readBoundedText(response)
      if (response.status === 429 || response.status === 503) this.#pause(response)
      if (response.status === 429) return this.#failed('rate_limited', `${host} answers 429`)
      if (!response.ok && response.status >= 500)
        return this.#failed('unreachable', `${host} answers ${response.status}`)
      if (!response.ok) return this.#failed('refused', `${host} answers ${response.status}`)
      return this.#readEnvelope(text, id, host)
    } catch (error) {
      if (signal.aborted) return this.#failed('stopped', 'the feed stops')
      return this.#failed(timeout.aborted ? 'timeout' : 'unreachable', `${host}: ${errorMessage(error)}`)
    }
  }

  #readEnvelope(text: string | null, id: number, host: string): RpcAnswer {
    const envelope = text === null ? undefined : safeParse(envelopeSchema, parseJson(text)).data
    if (envelope === undefined || (envelope.id !== null && envelope.id !== id))
      return this.#failed('malformed', `${host} answers no JSON-RPC`)
    if (!('error' in envelope)) return { ok: true, result: envelope.result }
    const { code, message } = envelope.error
    // -32005, -32429 and 429: too many requests, as several providers say it with status 200.
    const isBusy = code === -32_005 || code === -32_429 || code === 429
    return { ...this.#failed(isBusy ? 'rate_limited' : 'refused', `${host}: ${message}`), code }
  }

  #pause({ headers }: Response): void {
    const askedMs = readRetryAfterMs(headers.get('retry-after'), headers.get('date')) ?? RPC_PAUSE_MS
    this.#nextAtMs = Math.max(this.#nextAtMs, performance.now() + Math.min(askedMs, RPC_PAUSE_MS_MAX))
  }
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

/** The body as text; null where it is larger than `RPC_ANSWER_BYTES_MAX`. */
async function readBoundedText(response: Response): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > RPC_ANSWER_BYTES_MAX) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
