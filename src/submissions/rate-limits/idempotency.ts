// Remembers the responses of requests with an Idempotency-Key. Only responses that made a record are remembered (accepted
// and rejected submissions): after any other response the same key may be tried again.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { SubmissionError } from '../errors.ts'
import { IDEMPOTENCY_KEY_CHARACTERS_MAX, IDEMPOTENCY_RESPONSES_MAX, IDEMPOTENCY_TTL_MS } from '../limits.ts'

const RETRY_AFTER_MS = 1_000

/** An Idempotency-Key of an agent, and what was sent with it. */
export interface IdempotentRequest {
  key: string
  /** SHA-256 of the body, hex. */
  bodyHash: string
}

export interface RememberedResponse {
  bodyHash: string
  /** As made by stored-response.ts. */
  json: string
  /** On the monotonic clock. */
  atMs: number
}

const cacheKey = (agentId: string, key: string): string => `${agentId} ${key}`

/** Bounded: at its maximum the oldest responses are dropped. */
export class IdempotencyCache {
  readonly #responses: BoundedMap<string, RememberedResponse>
  /** Body hashes of requests that are being processed. */
  readonly #inFlight = new Map<string, string>()

  /** @param onForgotten called for each response that is dropped before its time, since there are too many */
  constructor(onForgotten: () => void = () => {}) {
    this.#responses = new BoundedMap({ entriesMax: IDEMPOTENCY_RESPONSES_MAX, onEvict: onForgotten })
  }

  /** The first response, or null. Throws when the key is too long, in flight, or was used with another body. */
  find(agentId: string, { key, bodyHash }: IdempotentRequest, nowMs: number): RememberedResponse | null {
    if (key.length > IDEMPOTENCY_KEY_CHARACTERS_MAX) {
      const message = `must be at most ${IDEMPOTENCY_KEY_CHARACTERS_MAX} characters`
      throw new SubmissionError('invalid_parameter', `Idempotency-Key ${message}.`, {
        errors: [{ pointer: '/Idempotency-Key', code: 'too_big', message }],
      })
    }
    const id = cacheKey(agentId, key)
    const held = this.#responses.get(id)
    const response = held !== undefined && nowMs - held.atMs < IDEMPOTENCY_TTL_MS ? held : undefined
    const hash = response?.bodyHash ?? this.#inFlight.get(id)
    if (hash === undefined) return null
    if (hash !== bodyHash)
      throw new SubmissionError('idempotency_mismatch', 'This Idempotency-Key was used with another body.')
    if (response === undefined) {
      throw new SubmissionError(
        'idempotency_in_flight',
        'A request with this Idempotency-Key is still being answered.',
        {},
        { retryAfterMs: RETRY_AFTER_MS },
      )
    }
    return response
  }

  begin(agentId: string, { key, bodyHash }: IdempotentRequest): void {
    this.#inFlight.set(cacheKey(agentId, key), bodyHash)
  }

  end(agentId: string, { key }: IdempotentRequest): void {
    this.#inFlight.delete(cacheKey(agentId, key))
  }

  remember(agentId: string, key: string, response: RememberedResponse): void {
    for (let { oldest } = this.#responses; oldest !== null; { oldest } = this.#responses) {
      if (response.atMs - oldest.value.atMs < IDEMPOTENCY_TTL_MS) break
      this.#responses.delete(oldest.key)
    }
    this.#responses.set(cacheKey(agentId, key), response)
  }
}
