// Sends requests: key, time limit, bounded answers, errors of one class, and which failures are tried again.
import { readText } from './body.ts'
import { errorOfAnswer, MintlakeError } from './errors.ts'
import {
  ANSWER_BYTES_MAX,
  LIMIT_WAIT_MS_MAX,
  REQUEST_MS_MAX,
  RETRIES_MAX,
  RETRY_AFTER_MS_MAX,
  TIME_WAIT_MS_MAX,
} from './limits.ts'
import { BACKOFF, type BackoffBounds, backoffMs, Deadline, wait } from './waiting.ts'

/** What every call may be given. */
export interface CallOptions {
  /** Ends the call, which rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Time limit of each request of the call, ms. */
  timeoutMs?: number | undefined
  /** Waits until a rate limit allows the call, in all up to `limitWaitMsMax`, instead of rejecting. */
  waitForLimits?: boolean | undefined
}

/** What is null or undefined is not sent: programs that do not check types, and models, leave out with either. */
export type QueryValues = Readonly<Record<string, string | number | null | undefined>>

export interface Request {
  method: 'GET' | 'POST'
  path: string
  query?: QueryValues
  body?: object
  headers?: Readonly<Record<string, string>>
  /**
   * What is tried again. `any`: every failure that may pass, for requests that may be carried out twice. `refused`: only answers
   * that say that nothing was done.
   */
  retry: 'any' | 'refused'
}

/** A request as it is sent in each attempt. */
export interface Prepared {
  url: string
  init: RequestInit
}

export interface ClientOptions {
  /** Where the server is, for example `http://127.0.0.1:8080`; may have a path, for a server behind a proxy. */
  baseUrl: string
  /** API key. Without one (an empty one is none) only public reads are possible, at a lower limit. */
  key?: string | undefined
  /** Another `fetch`. */
  fetch?: typeof fetch | undefined
  /** Time limit of a request, its whole answer included; for streams of the headers. 15 000 ms unless given. */
  timeoutMs?: number | undefined
  /** Whether calls wait until a rate limit allows them. Each call may say otherwise. */
  waitForLimits?: boolean | undefined
  /** How long one call waits for rate limits in all; 150 000 ms unless given. */
  limitWaitMsMax?: number | undefined
  /** Retries of one call after failures that may pass; 4 unless given. */
  retriesMax?: number | undefined
  /** The first and the longest wait between attempts; 250 and 10 000 ms unless given. */
  backoff?: BackoffBounds | undefined
}

const defaultsOf = ({
  baseUrl,
  key,
  // Browsers allow fetch to be called as a member of the window only.
  fetch: request = (input, init) => globalThis.fetch(input, init),
  timeoutMs = REQUEST_MS_MAX,
  waitForLimits = false,
  limitWaitMsMax = LIMIT_WAIT_MS_MAX,
  retriesMax = RETRIES_MAX,
  backoff = BACKOFF,
}: ClientOptions) => {
  const { origin, pathname } = new URL(baseUrl)
  return {
    baseUrl: `${origin}${pathname}`.replace(/\/+$/, ''),
    key,
    fetch: request,
    timeoutMs,
    waitForLimits,
    limitWaitMsMax,
    retriesMax,
    backoff,
  }
}
type TransportOptions = ReturnType<typeof defaultsOf>

/** Failures of a proxy before the server, which pass like those of the network. */
const GATEWAY_STATUSES = [502, 503, 504]
const PASSING_CODES = ['network_error', 'timeout', 'idempotency_in_flight', 'body_timeout']

/** Whether the failure may pass without any change of the request. */
export function mayPass({ code, status, problem }: MintlakeError, retry: Request['retry']): boolean {
  if (retry === 'refused') return status === 503 && problem !== null && problem.mayBeStored !== true
  return PASSING_CODES.includes(code) || GATEWAY_STATUSES.includes(status ?? 0)
}

/** Decides after each failure of one call whether it is tried again, and when. */
class RetryPlan {
  readonly #options: TransportOptions
  readonly #waitsForLimits: boolean
  #failures = 0
  #limitWaitMsLeft: number

  constructor(options: TransportOptions, call: CallOptions) {
    this.#options = options
    this.#waitsForLimits = call.waitForLimits ?? options.waitForLimits
    this.#limitWaitMsLeft = options.limitWaitMsMax
  }

  /**
   * How long to wait until a rate limit allows the call, ms, by the server's time; null: it is not to be waited for. It is a little
   * more than the server says, so that one that says 0 is not asked without pause; in market time always the same, as all is there.
   */
  limitMs({ retryAfterMs, status }: MintlakeError, isMarketTime: boolean): number | null {
    if (status !== 429 || !this.#waitsForLimits || retryAfterMs === null) return null
    if (retryAfterMs > this.#limitWaitMsLeft) return null
    const moreMs = isMarketTime ? 1 : backoffMs(1, { minMs: 10, maxMs: this.#options.backoff.minMs })
    const waitMs = retryAfterMs + moreMs
    this.#limitWaitMsLeft -= waitMs
    return waitMs
  }

  /** The wait before the next attempt after any other failure, ms; null: the call has failed. */
  delayMs(error: MintlakeError, retry: Request['retry']): number | null {
    const { retryAfterMs } = error
    if (!mayPass(error, retry) || this.#failures >= this.#options.retriesMax) return null
    if (retryAfterMs !== null && retryAfterMs > RETRY_AFTER_MS_MAX) return null
    this.#failures++
    return Math.max(retryAfterMs ?? 0, backoffMs(this.#failures, this.#options.backoff))
  }
}

export class Transport {
  readonly options: TransportOptions
  /** Market time of the latest answer, Unix ms, where the market waits and limits count by it: in a backtest. */
  marketMs: number | null = null
  /** Whether the server has answered that its limits follow the clock. */
  isLive = false

  /** @throws TypeError for a base URL that is none. */
  constructor(options: ClientOptions) {
    this.options = defaultsOf(options)
  }

  /**
   * The JSON object of a successful answer, after as many attempts as the plan allows, each with its own time limit. That it is of type
   * `Answer` is not checked: the server's tests hold its answers to the schemas that the type comes from.
   * @throws MintlakeError, the reason of the signal, or TypeError for what cannot be sent.
   */
  async json<Answer extends object>(request: Request, call: CallOptions = {}): Promise<Answer> {
    const prepared = this.prepare(request)
    const plan = new RetryPlan(this.options, call)
    for (;;) {
      const deadline = new Deadline(call.timeoutMs ?? this.options.timeoutMs, call.signal)
      let waiting: (() => Promise<void>) | null = null
      try {
        const response = await this.#send(prepared, deadline)
        return parseObject(await readText(response, ANSWER_BYTES_MAX, deadline.signal))
      } catch (error) {
        const failure = failureOf(error, deadline, this.options.baseUrl)
        waiting =
          failure instanceof MintlakeError ? this.#plan(plan, failure, request.retry, call.signal) : null
        if (waiting === null) throw failure
      } finally {
        deadline.end()
      }
      await waiting()
    }
  }

  /**
   * Opens a body to read from; `deadline` limits the time until its headers are there. The caller ends the deadline.
   * @throws MintlakeError, or the reason of the signal.
   */
  async open(prepared: Prepared, deadline: Deadline): Promise<ReadableStream<Uint8Array>> {
    try {
      const { body } = await this.#send(prepared, deadline)
      if (body !== null) return body
    } catch (error) {
      throw failureOf(error, deadline, this.options.baseUrl)
    }
    throw new MintlakeError('invalid_response', 'The answer has no body')
  }

  /** What to wait for before the next attempt; null: the call has failed. */
  #plan(
    plan: RetryPlan,
    failure: MintlakeError,
    retry: Request['retry'],
    signal: AbortSignal | undefined,
  ): (() => Promise<void>) | null {
    const limitMs = plan.limitMs(failure, this.marketMs !== null)
    if (limitMs !== null) return () => this.pause(limitMs, signal)
    const delayMs = plan.delayMs(failure, retry)
    return delayMs === null ? null : () => wait(delayMs, signal)
  }

  /** Waits by the time that the server's limits count by: where the market waits, until that has come so far. */
  async pause(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.marketMs === null) return wait(ms, signal)
    const until = Math.ceil(this.marketMs + ms)
    const request: Request = { method: 'GET', path: '/api/v1/time', query: { until }, retry: 'any' }
    while (this.marketMs !== null && this.marketMs < until)
      await this.json(request, { signal, timeoutMs: TIME_WAIT_MS_MAX })
  }

  /** What is sent, made before any attempt: what cannot be made would fail in each. @throws TypeError for what cannot be sent. */
  prepare({ method, path, query = {}, body, headers }: Omit<Request, 'retry'>): Prepared {
    const { baseUrl, key } = this.options
    const sent = {
      ...(key && { Authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    }
    // It throws where one holds a character that no header can.
    new Headers(sent)
    const url = `${baseUrl}${path}${queryText(query)}`
    return { url, init: { method, headers: sent, ...(body !== undefined && { body: JSON.stringify(body) }) } }
  }

  /** One request. @returns a response of status 2xx, its body unread. */
  async #send({ url, init }: Prepared, { signal }: Deadline): Promise<Response> {
    // A key is for one server, and a redirected POST would become a GET.
    const response = await this.options.fetch(url, { ...init, redirect: 'error', signal })
    const marketTime = response.headers.get('X-Market-Time')
    // An error may be that of a proxy, which knows nothing of the time.
    if (response.ok || marketTime !== null) {
      // A market that is replayed without steps has a time of its own too, but no rule follows it.
      this.isLive = !response.headers.has('X-Market-Waits')
      this.marketMs = this.isLive ? null : Number(marketTime)
    }
    if (response.ok) return response
    throw errorOfAnswer(
      response.status,
      response.headers,
      parseJson(await readText(response, ANSWER_BYTES_MAX, signal)),
    )
  }
}

/** What a failed attempt is reported as. */
function failureOf(error: unknown, deadline: Deadline, baseUrl: string): unknown {
  if (deadline.isOver)
    return new MintlakeError('timeout', 'The server did not answer in time', { cause: error })
  if (deadline.signal.aborted) return deadline.signal.reason
  if (error instanceof MintlakeError) return error
  return new MintlakeError('network_error', `No answer from ${baseUrl}: ${reasonOf(error)}`, { cause: error })
}

/** Node says in the cause of fetch's error what happened, browsers nowhere. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message
}

/** `?name=value…`, without values that are null or undefined. */
function queryText(query: QueryValues): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null) parameters.append(name, `${value}`)
  return parameters.size === 0 ? '' : `?${parameters}`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The JSON object in `text`, which is not checked to be of type `Answer`. @throws MintlakeError `invalid_response`. */
export function parseObject<Answer extends object>(text: string): Answer {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Answer
  throw new MintlakeError('invalid_response', 'The address answered with something other than a JSON object')
}
