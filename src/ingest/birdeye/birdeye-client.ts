import pLimit from 'p-limit'
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { readBoundedText } from '../../lib/text/bounded-text.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import {
  PROVIDER_ANSWER_BYTES_MAX,
  PROVIDER_CONCURRENCY,
  PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_MS_MAX,
  PROVIDER_TIMEOUT_MS,
} from '../limits.ts'
import { RequestPace } from '../request-pace.ts'
import { readRetryAfterMs } from '../retry-after.ts'
import { withinTime } from '../wait.ts'

export interface BirdeyeClientOptions {
  apiKey: string
  baseUrl: string
  /** What the plan allows. */
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
/** Whether Birdeye has answered, with data or by saying that it has none. */
export const isAnswered = ({ fault }: BirdeyeAnswer): boolean => fault === null || fault === 'not_found'
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
  readonly #pace: RequestPace

  constructor(options: BirdeyeClientOptions) {
    const { requestsPerSecond, baseUrl } = options
    this.#options = options
    this.#baseUrl = baseUrl.replace(/\/+$/, '')
    this.requestsPerSecond = requestsPerSecond
    this.#pace = new RequestPace(requestsPerSecond)
  }

  /**
   * Sends `GET path?address=...`. Resolves with a fault when there is no usable answer; does not reject.
   * @param signal ends the request, or its wait for its turn.
   */
  get(path: string, address: string, signal: AbortSignal): Promise<BirdeyeAnswer> {
    return this.#limit(async () => {
      await this.#pace.turn(signal)
      if (signal.aborted) return failed('stopped')
      return this.#request(`${this.#baseUrl}${path}?address=${encodeURIComponent(address)}`, signal)
    })
  }

  #request(url: string, signal: AbortSignal): Promise<BirdeyeAnswer> {
    const { timeoutMs = PROVIDER_TIMEOUT_MS } = this.#options
    return withinTime(timeoutMs, signal, (ending) => this.#ask(url, ending, signal))
  }

  async #ask(url: string, ending: AbortSignal, signal: AbortSignal): Promise<BirdeyeAnswer> {
    try {
      const response = await fetch(url, {
        headers: { 'X-API-KEY': this.#options.apiKey, 'x-chain': 'solana', accept: 'application/json' },
        signal: ending,
        redirect: 'manual',
      })
      if (!response.ok) return this.#toFault(response)
      const body = await readBoundedText(response, PROVIDER_ANSWER_BYTES_MAX)
      const data = body === null ? null : parseEnvelope(body)
      return data === null ? failed('malformed') : { data, fault: null }
    } catch {
      return failed(signal.aborted ? 'stopped' : ending.aborted ? 'timeout' : 'unreachable')
    }
  }

  /** Decides by the status alone: a body that does not end must hide no pause that Birdeye asks for, and keep no connection. */
  #toFault({ status, headers, body }: Response): BirdeyeAnswer {
    body?.cancel().catch(() => {})
    const retryAfterMs = readRetryAfterMs(headers.get('retry-after'), headers.get('date'))
    const pauseMs = retryAfterMs ?? (status === 429 ? PROVIDER_PAUSE_MS : 0)
    if (status === 429 || status === 503) this.#pace.pause(Math.min(pauseMs, PROVIDER_PAUSE_MS_MAX))
    return failed(status === 429 ? 'rate_limited' : status === 404 ? 'not_found' : 'refused')
  }
}

/** The `data` of an answer's envelope; null where the text is not an envelope of Birdeye. */
export const parseEnvelope = (text: string): Record<string, unknown> | null =>
  safeParse(envelope, parseJson(text)).data?.data ?? null
