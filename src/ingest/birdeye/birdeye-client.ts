import pLimit from 'p-limit'
import { z } from 'zod'
import { assert } from '../../lib/assert.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import {
  PROVIDER_ANSWER_BYTES_MAX,
  PROVIDER_CONCURRENCY,
  PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_MS_MAX,
  PROVIDER_REQUESTS_PER_SECOND_MAX,
  PROVIDER_TIMEOUT_MS,
} from '../limits.ts'
import { wait } from '../wait.ts'

export interface BirdeyeClientOptions {
  apiKey: string
  baseUrl: string
  /** What the plan allows: above 0, at most `PROVIDER_REQUESTS_PER_SECOND_MAX`. */
  requestsPerSecond: number
  timeoutMs?: number
}

export type BirdeyeAnswer =
  | { data: Record<string, unknown>; fault: null }
  | { data: null; fault: BirdeyeFault }
export type BirdeyeFault =
  | 'timeout'
  | 'unreachable'
  | 'rate_limited'
  | 'refused'
  | 'not_found'
  | 'malformed'
  | 'stopped'

const envelope = z.object({ success: z.literal(true), data: z.record(z.string(), z.unknown()) })
const failed = (fault: BirdeyeFault): BirdeyeAnswer => ({ data: null, fault })

/**
 * A client of the Birdeye API that keeps to the rate of its plan: all callers share one instance. It bounds the time and size of
 * each answer and does not cache.
 */
export class BirdeyeClient {
  readonly requestsPerSecond: number
  readonly #options: BirdeyeClientOptions
  readonly #baseUrl: string
  readonly #limit = pLimit(PROVIDER_CONCURRENCY)
  readonly #intervalMs: number
  /** The earliest time of the next request, on the monotonic clock. */
  #nextAtMs = 0
  /** Resolves when all requests that are waiting have started. */
  #queue = Promise.resolve()

  constructor(options: BirdeyeClientOptions) {
    const { requestsPerSecond, baseUrl } = options
    const isAllowed = requestsPerSecond > 0 && requestsPerSecond <= PROVIDER_REQUESTS_PER_SECOND_MAX
    assert(isAllowed, `a plan allows up to ${PROVIDER_REQUESTS_PER_SECOND_MAX} requests a second`)
    this.#options = options
    this.#baseUrl = baseUrl.replace(/\/+$/, '')
    this.requestsPerSecond = requestsPerSecond
    this.#intervalMs = 1_000 / requestsPerSecond
  }

  /**
   * Sends `GET path?address=...`. Resolves with a fault when there is no usable answer; does not reject.
   * @param signal ends the request, or its wait for its turn.
   */
  get(path: string, address: string, signal: AbortSignal): Promise<BirdeyeAnswer> {
    return this.#limit(async () => {
      await this.#waitForTurn(signal)
      if (signal.aborted) return failed('stopped')
      return this.#request(`${this.#baseUrl}${path}?address=${encodeURIComponent(address)}`, signal)
    })
  }

  /** Requests take turns in the order in which they were asked for. */
  #waitForTurn(signal: AbortSignal): Promise<void> {
    this.#queue = this.#queue.then(() => this.#waitForRate(signal))
    return this.#queue
  }

  async #waitForRate(signal: AbortSignal): Promise<void> {
    for (;;) {
      const nowMs = performance.now()
      if (nowMs >= this.#nextAtMs) {
        // A timer that fires late must not lower the rate.
        const lateMs = nowMs - this.#nextAtMs
        this.#nextAtMs = nowMs + this.#intervalMs - (lateMs < this.#intervalMs ? lateMs : 0)
        return
      }
      if (signal.aborted) return
      await wait(this.#nextAtMs - nowMs, signal)
    }
  }

  async #request(url: string, signal: AbortSignal): Promise<BirdeyeAnswer> {
    const timeout = AbortSignal.timeout(this.#options.timeoutMs ?? PROVIDER_TIMEOUT_MS)
    try {
      const response = await fetch(url, {
        headers: { 'X-API-KEY': this.#options.apiKey, 'x-chain': 'solana', accept: 'application/json' },
        signal: AbortSignal.any([timeout, signal]),
        redirect: 'manual',
      })
      const body = await readBoundedText(response)
      return body === null ? failed('malformed') : this.#toAnswer(response, body)
    } catch {
      return failed(signal.aborted ? 'stopped' : timeout.aborted ? 'timeout' : 'unreachable')
    }
  }

  #toAnswer(response: Response, body: string): BirdeyeAnswer {
    if (response.status === 429) {
      this.#pause(response.headers.get('retry-after'))
      return failed('rate_limited')
    }
    if (response.status === 404) return failed('not_found')
    if (!response.ok) return failed('refused')
    const data = parseEnvelope(body)
    return data === null ? failed('malformed') : { data, fault: null }
  }

  #pause(retryAfter: string | null): void {
    const retryAfterMs = Number(retryAfter ?? Number.NaN) * 1_000
    const pauseMs = retryAfterMs > 0 ? Math.min(retryAfterMs, PROVIDER_PAUSE_MS_MAX) : PROVIDER_PAUSE_MS
    this.#nextAtMs = Math.max(this.#nextAtMs, performance.now() + pauseMs)
  }
}

/** The body as text; null where it is larger than `PROVIDER_ANSWER_BYTES_MAX`. */
async function readBoundedText(response: Response): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > PROVIDER_ANSWER_BYTES_MAX) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The `data` of an answer's envelope; null where the text is not an envelope of Birdeye. */
export function parseEnvelope(text: string): Record<string, unknown> | null {
  try {
    return safeParse(envelope, JSON.parse(text)).data?.data ?? null
  } catch {
    return null
  }
}
