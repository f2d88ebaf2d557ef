// In: an agent's Idempotency-Key and the hash of its body. Out: the first answer again, or that there is none yet.
// Only answers that made a record are remembered (201, and rejections): any other may be tried again under its key.
// At the maximum the oldest are forgotten. Never computes an answer.
import { BoundedMap } from '../../lib/bounded-map.ts'
import { ServiceError } from '../../schema/errors.ts'
import { IDEMPOTENCY_ANSWERS_MAX, IDEMPOTENCY_KEY_CHARACTERS_MAX, IDEMPOTENCY_TTL_MS } from '../limits.ts'

export interface Remembered {
  bodyHash: string
  status: number
  /** JSON of the first answer. */
  body: string
  /** On the monotonic clock. */
  atMs: number
}

export class IdempotencyCache {
  readonly #answers = new BoundedMap<string, Remembered>({ entriesMax: IDEMPOTENCY_ANSWERS_MAX })
  #inFlight = new Map<string, string>()

  /** The first answer, or null; throws when the key is malformed, in flight, or was used with another body. */
  find(agentId: string, key: string, bodyHash: string, nowMs: number): Remembered | null {
    if (key.length > IDEMPOTENCY_KEY_CHARACTERS_MAX) {
      const message = `must be at most ${IDEMPOTENCY_KEY_CHARACTERS_MAX} characters`
      throw new ServiceError('invalid_parameter', `Idempotency-Key ${message}.`, {
        errors: [{ pointer: '/Idempotency-Key', code: 'too_big', message }],
      })
    }
    const id = `${agentId} ${key}`
    const remembered = this.#answers.get(id)
    const hash = remembered?.bodyHash ?? this.#inFlight.get(id)
    if (hash === undefined || (remembered !== undefined && nowMs - remembered.atMs >= IDEMPOTENCY_TTL_MS))
      return null
    if (hash !== bodyHash)
      throw new ServiceError('idempotency_mismatch', 'This Idempotency-Key was used with another body.')
    if (remembered === undefined) {
      throw new ServiceError(
        'idempotency_in_flight',
        'A request with this Idempotency-Key is still being answered.',
        {},
        { 'Retry-After': '1' },
      )
    }
    return remembered
  }

  begin(agentId: string, key: string, bodyHash: string): void {
    this.#inFlight.set(`${agentId} ${key}`, bodyHash)
  }

  end(agentId: string, key: string): void {
    this.#inFlight.delete(`${agentId} ${key}`)
  }

  remember(agentId: string, key: string, answer: Remembered): void {
    this.#answers.set(`${agentId} ${key}`, answer)
    for (let { oldest } = this.#answers; oldest !== null; { oldest } = this.#answers) {
      if (answer.atMs - oldest.value.atMs < IDEMPOTENCY_TTL_MS) return
      this.#answers.delete(oldest.key)
    }
  }
}
