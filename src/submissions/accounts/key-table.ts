import { type Instant, toMonotonicDeadlineMs } from '../../lib/clock.ts'
import type { TableWrite } from '../../schema/tables.ts'
import { SubmissionError } from '../errors.ts'
import { KEYS_REMEMBERED_MAX } from '../limits.ts'
import type { Agent } from '../types.ts'
import { displayPrefix, hashKey, isKey, makeKey, type RandomBytes } from './api-keys.ts'

export interface Key {
  readonly agent: Agent
  readonly hash: string
  readonly prefix: string
  readonly createdAtMs: number
  /** When it stops being valid, as it was announced, wall time. Infinity: never. */
  expiresAtMs: number
  /** The same on the monotonic clock. */
  deadlineMs: number
  /** Rotations and revocations of it that are not durable yet. */
  pending: number
  /** Someone has its text and has shown it. Taken as given where no rotation said that it made the key. */
  isUsed: boolean
}

export const newKey = (agent: Agent, hash: string, prefix: string, createdAtMs: number): Key => ({
  agent,
  hash,
  prefix,
  createdAtMs,
  expiresAtMs: Number.POSITIVE_INFINITY,
  deadlineMs: Number.POSITIVE_INFINITY,
  pending: 0,
  isUsed: true,
})

/**
 * Throws key_not_allowed for a key that was rotated, or is being. It goes on submitting and reading until it ends, so that a program
 * that has it misses nothing, but the account is its successor's: whoever found the old one must not take it over.
 */
export function checkCurrent(key: Key): void {
  checkResting(key)
  const { expiresAtMs } = key
  if (Number.isFinite(expiresAtMs))
    throw new SubmissionError(
      'key_not_allowed',
      `This API key was rotated and ends at ${new Date(expiresAtMs).toISOString()}: use the key that replaced it. ` +
        'DELETE /api/v1/keys/current with the old one ends it at once.',
    )
}

/** Throws key_not_allowed while a key is being rotated or revoked: what is revoked must not leave a successor. */
export function checkResting({ pending }: Key): void {
  if (pending > 0) throw new SubmissionError('key_not_allowed', 'This API key is being rotated or revoked.')
}

/** Does `work`, which ends `keys` or fails; meanwhile they are not resting. */
export async function whilePending<Result>(
  keys: readonly Key[],
  work: () => Promise<Result>,
): Promise<Result> {
  for (const key of keys) key.pending++
  try {
    return await work()
  } finally {
    for (const key of keys) key.pending--
  }
}

/** Makes a key. @returns it with its text, which only the agent keeps, and the row that holds its hash */
export function makeAgentKey(agent: Agent, createdAtMs: number, randomBytes: RandomBytes) {
  const text = makeKey(randomBytes)
  const key = newKey(agent, hashKey(text), displayPrefix(text), createdAtMs)
  const row = {
    key_hash: key.hash,
    key_prefix: key.prefix,
    agent_id: agent.agentId,
    created_at: createdAtMs,
  }
  const write: TableWrite<'agent_keys'> = { table: 'agent_keys', row }
  return { text, key, write }
}

/** The keys of all agents, by hash and by agent. Of each agent the latest KEYS_REMEMBERED_MAX are known, revoked ones too. */
export class KeyTable {
  readonly #byHash = new Map<string, Key>()
  readonly #byAgent = new Map<string, Key[]>()

  /** In the order in which they were made. */
  ofAgent(agentId: string): readonly Key[] {
    return this.#byAgent.get(agentId) ?? []
  }

  /** The key of that text. Throws missing_key, invalid_key or revoked_key. */
  authenticate(text: string, nowMs: number): Key {
    if (text === '')
      throw new SubmissionError('missing_key', 'An API key is required: Authorization: Bearer <API_KEY>.')
    const key = this.#byHash.get(hashKey(text))
    if (key === undefined) {
      const sentence = isKey(text)
        ? 'The API key is not known.'
        : 'The API key is mistyped or not a key of this service.'
      throw new SubmissionError('invalid_key', sentence)
    }
    if (nowMs >= key.deadlineMs) throw new SubmissionError('revoked_key', 'The API key was revoked.')
    return key
  }

  /** Undefined: it is not known any more. */
  get(hash: string): Key | undefined {
    return this.#byHash.get(hash)
  }

  /** The keys that replaced one, where none of them was ever used; none where one was, or where there is none. */
  unusedSuccessors(key: Key): Key[] {
    const keys = this.ofAgent(key.agent.agentId)
    const successors = keys.slice(keys.indexOf(key) + 1)
    return successors.some(({ isUsed }) => isUsed) ? [] : successors
  }

  /** Whether it matters that a key is used for the first time: it replaced another one that is valid, and ends its rotations. */
  awaitsUse(key: Key, nowMs: number): boolean {
    if (key.isUsed) return false
    const keys = this.ofAgent(key.agent.agentId)
    return keys.slice(0, keys.indexOf(key)).some(({ deadlineMs }) => deadlineMs > nowMs)
  }

  add(key: Key): void {
    const { agentId } = key.agent
    const keys = this.#byAgent.get(agentId)
    if (keys === undefined) this.#byAgent.set(agentId, [key])
    else keys.push(key)
    this.#byHash.set(key.hash, key)
  }

  drop(key: Key): void {
    const keys = this.#byAgent.get(key.agent.agentId)
    const index = keys?.indexOf(key) ?? -1
    if (keys && index >= 0) keys.splice(index, 1)
    this.#byHash.delete(key.hash)
  }

  dropOldest(agentId: string): void {
    for (const key of this.ofAgent(agentId).slice(0, -KEYS_REMEMBERED_MAX)) this.drop(key)
  }

  /** Ends a key at `atMs`, as said at `fromMs`; both are wall times. A key that ends earlier keeps its end. */
  expire(hash: string, fromMs: number, atMs: number, now: Instant): void {
    const key = this.#byHash.get(hash)
    const deadlineMs = toMonotonicDeadlineMs(fromMs, atMs, now)
    if (key === undefined || key.deadlineMs <= deadlineMs) return
    key.expiresAtMs = atMs
    key.deadlineMs = deadlineMs
  }
}
