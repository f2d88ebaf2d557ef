// Agents with their keys, profiles and bans. Every change is a row of an append-only table, durable before it is answered.
// The state held here is the sum of those rows in the order in which they were written. Whatever lasts for a time ends by
// the monotonic clock.

import { ulid } from 'ulid'
import { type Clock, type Instant, readCautiously, readClock, toMonotonicMs } from '../../lib/clock.ts'
import { DAY_MS, unitHint } from '../../lib/time.ts'
import {
  operatorRegistrationSchema,
  profileChangeSchema,
  registrationSchema,
} from '../../schema/api/accounts.ts'
import type { RecoveredAgents } from '../../schema/recovered.ts'
import type { TableRow, TableWrite } from '../../schema/tables.ts'
import { AGENT_TYPES } from '../../schema/vocabulary.ts'
import { SubmissionError } from '../errors.ts'
import { parseBody } from '../field-errors.ts'
import { AGENTS_MAX, ROTATED_KEY_LIFE_MS, ROTATIONS_PER_DAY_MAX, SUBMIT_LIMITS } from '../limits.ts'
import { RateLimiter } from '../rate-limits/rate-limiter.ts'
import type { Account, Agent, AgentStatus, Caller, IssuedKey, Profile, SubmissionStore } from '../types.ts'
import { type AgentEvent, readEvent, writeEvent } from './agent-events.ts'
import type { RandomBytes } from './api-keys.ts'
import { Bans, bannedError } from './bans.ts'
import {
  checkCurrent,
  checkResting,
  type Key,
  KeyTable,
  makeAgentKey,
  newKey,
  whilePending,
} from './key-table.ts'
import { changedProfile, type ProfileChange, type Registration } from './profiles.ts'

export type OperatorSanction =
  | { kind: 'banned'; untilMs: number | null; reason: string }
  | { kind: 'unbanned' }

export interface AgentRegistryOptions {
  recovered: RecoveredAgents
  store: Pick<SubmissionStore, 'commit'>
  clock: Clock
  /** For keys: unpredictable bytes. */
  randomBytes: RandomBytes
  /** For identities: uniform in [0, 1). */
  random: () => number
  /** Submissions a minute, which agents are told with their key; 0: no limit. */
  submitRateMax?: number
  registrationOpen: boolean
  /** An agent, its keys or its profile have changed, and the change is durable. */
  onChanged?(agentId: string): void
  /** Called where the operator has banned or unbanned an agent. */
  onSanction?(agentId: string, sanction: OperatorSanction): void
}

interface AgentRecord {
  readonly agent: Agent
  profile: Profile | null
  readonly bans: Bans
  /** Resolves when the last profile change is decided. Changes of one profile run one after the other. */
  profileChange: Promise<unknown>
}

/** Agents, their keys and profiles. Every change is durable before its promise resolves. */
export class AgentRegistry {
  /** The moment by which stored times were judged. */
  readonly recoveredAt: Instant
  readonly #options: Omit<AgentRegistryOptions, 'recovered'>
  readonly #records = new Map<string, AgentRecord>()
  readonly #keys = new KeyTable()
  readonly #rotations = new RateLimiter(ROTATIONS_PER_DAY_MAX, DAY_MS)
  /** Registrations that the store has not acknowledged. */
  #registering = 0

  constructor({ recovered, ...options }: AgentRegistryOptions) {
    this.#options = options
    const firstMs = recovered.agents.reduce((least, row) => Math.min(least, row.created_at), Infinity)
    this.recoveredAt = readCautiously(options.clock, firstMs)
    this.#recover(recovered, this.recoveredAt)
  }

  /** Throws missing_key, invalid_key or revoked_key. */
  authenticate(text: string): Caller {
    const nowMs = this.#options.clock.monotonicMs()
    const key = this.#keys.authenticate(text, nowMs)
    if (!key.isUsed) this.#noteUse(key, nowMs)
    return { agent: key.agent, keyHash: key.hash }
  }

  /** Takes a body of unknown shape. Only the operator may set a type, or register while registration is closed. Throws
   *  validation_failed, registration_closed. */
  async register(
    body: Record<string, unknown>,
    byOperator = false,
  ): Promise<IssuedKey & { agentId: string }> {
    const isOpen = this.#options.registrationOpen || byOperator
    if (!isOpen || this.#records.size + this.#registering >= AGENTS_MAX)
      throw new SubmissionError('registration_closed', 'Registration is closed: ask the operator for a key.')
    const registration: Registration = byOperator
      ? parseBody(operatorRegistrationSchema, body)
      : { ...parseBody(registrationSchema, body), type: 'agent' }
    this.#registering++
    try {
      return await this.#register(registration)
    } finally {
      this.#registering--
    }
  }

  has(agentId: string): boolean {
    return this.#records.has(agentId)
  }

  /** Whether there is a researcher, with a valid key or without. */
  hasResearcher(): boolean {
    for (const { agent } of this.#records.values()) if (agent.type === 'researcher') return true
    return false
  }

  /**
   * Makes another key. The old one stays valid until `oldKeyExpiresAt`. Where the answer was lost, the old one does so again, and the
   * key that nobody has used ends. Throws key_not_allowed, register_rate_limited.
   */
  async rotate({ agent, keyHash }: Caller): Promise<IssuedKey & { oldKeyExpiresAt: number }> {
    const { agentId } = agent
    const now = readClock(this.#options.clock)
    const old = this.#knownKey(keyHash)
    const unused = this.#keys.unusedSuccessors(old)
    if (unused.length === 0) checkCurrent(old)
    else checkResting(old)
    const quota = this.#rotations.quota(agentId, now)
    if (quota?.remaining === 0) throw rotatedTooOften(quota.resetMs)
    this.#rotations.take(agentId, now.monotonicMs)
    try {
      return await whilePending([old, ...unused], () => this.#rotate(this.#record(agentId), old, unused, now))
    } catch (error) {
      this.#rotations.release(agentId, now.monotonicMs)
      throw error
    }
  }

  /** Ends the key that the caller used. */
  async revoke({ agent, keyHash }: Caller): Promise<void> {
    const atMs = this.#options.clock.now()
    const key = this.#knownKey(keyHash)
    await whilePending([key], () => this.#append(agent.agentId, endOf(key, atMs)))
  }

  profile({ agent }: Caller): Profile | null {
    return this.#record(agent.agentId).profile
  }

  async setProfile({ agent, keyHash }: Caller, body: Record<string, unknown>): Promise<Profile> {
    checkCurrent(this.#knownKey(keyHash))
    const record = this.#record(agent.agentId)
    const sent = parseBody(profileChangeSchema, body)
    const change = record.profileChange.then(() => this.#changeProfile(record, sent))
    record.profileChange = change.catch(() => {})
    return change
  }

  list(): AgentStatus[] {
    const now = readClock(this.#options.clock)
    return Array.from(this.#records.values(), ({ agent, bans }) =>
      agentStatus(agent, this.#keys.ofAgent(agent.agentId), bans.untilMs(now)),
    )
  }

  /** Ends all keys of an agent, or the one with that prefix. Returns how many were valid. */
  async revokeKeys(agentId: string, prefix: string | null): Promise<number> {
    this.checkExists(agentId)
    const now = readClock(this.#options.clock)
    const keys = this.#keys
      .ofAgent(agentId)
      .filter((key) => key.deadlineMs > now.monotonicMs && (prefix === null || key.prefix === prefix))
    await whilePending(keys, () => this.#append(agentId, ...keys.map((key) => endOf(key, now.wallMs))))
    return keys.length
  }

  /** `untilMs` null: for good. @throws SubmissionError `validation_failed` where it has passed */
  async ban(agentId: string, untilMs: number | null, reason: string): Promise<void> {
    if (untilMs !== null && untilMs <= this.#options.clock.now()) throw banIsOver(untilMs)
    await this.#append(agentId, { kind: 'banned', data: { untilMs, reason } })
    this.#options.onSanction?.(agentId, { kind: 'banned', untilMs, reason })
  }

  async unban(agentId: string): Promise<void> {
    await this.#append(agentId, { kind: 'unbanned', data: {} })
    this.#options.onSanction?.(agentId, { kind: 'unbanned' })
  }

  /** Throws `agent_banned` while the agent may not submit. */
  checkBan(agentId: string): void {
    const now = readClock(this.#options.clock)
    const untilMs = this.#record(agentId).bans.untilMs(now)
    if (untilMs !== null) throw bannedError(untilMs, now.wallMs)
  }

  /** Throws not_found. */
  checkExists(agentId: string): void {
    this.#record(agentId)
  }

  /** The agent's bans and suspensions. Throws not_found. */
  bans(agentId: string): Bans {
    return this.#record(agentId).bans
  }

  /** The name to show: the profile's, else the one that was registered, else the identity. */
  name(agentId: string): string {
    const record = this.#records.get(agentId)
    return record?.profile?.name ?? record?.agent.name ?? agentId
  }

  /** The identities of all agents. */
  agentIds(): Iterable<string> {
    return this.#records.keys()
  }

  /** Null: there is no such agent. */
  account(agentId: string): Account | null {
    const record = this.#records.get(agentId)
    if (record === undefined) return null
    const nowMs = this.#options.clock.monotonicMs()
    const keys = this.#keys.ofAgent(agentId).map((key) => ({
      // Nodes compare what they have as text: the order of the names is part of it.
      hash: key.hash,
      ...shownKey(key),
      endsInMs: Number.isFinite(key.deadlineMs) ? Math.round(key.deadlineMs - nowMs) : null,
      isUsed: !this.#keys.awaitsUse(key, nowMs),
    }))
    return { agent: record.agent, name: this.name(agentId), keys }
  }

  /** Throws revoked_key. */
  #knownKey(keyHash: string): Key {
    const key = this.#keys.get(keyHash)
    if (key === undefined) throw new SubmissionError('revoked_key', 'The API key was revoked.')
    return key
  }

  /** Once a key is used, the one that it replaced rotates no more. No request waits for that to be durable. */
  #noteUse(key: Key, nowMs: number): void {
    const isAwaited = this.#keys.awaitsUse(key, nowMs)
    key.isUsed = true
    if (!isAwaited) return
    this.#append(key.agent.agentId, { kind: 'key_used', data: { keyHash: key.hash } }).catch(() => {
      // Its next use says it again.
      key.isUsed = false
    })
  }

  #record(agentId: string): AgentRecord {
    const record = this.#records.get(agentId)
    if (record === undefined)
      throw new SubmissionError('not_found', `There is no agent ${agentId.slice(0, 64)}.`)
    return record
  }

  #recover({ agents, agentKeys, agentEvents }: RecoveredAgents, now: Instant): void {
    for (const row of agents) {
      const agent = readAgent(row)
      this.#records.set(agent.agentId, newRecord(agent))
    }
    for (const row of agentKeys) {
      const record = this.#records.get(row.agent_id)
      if (record === undefined) continue
      const { agentId } = record.agent
      // The first key came with the registration, each further one with a rotation.
      const isRotated = this.#keys.ofAgent(agentId).length > 0
      if (isRotated) this.#rotations.take(agentId, toMonotonicMs(row.created_at, now))
      this.#keys.add(newKey(record.agent, row.key_hash, row.key_prefix, row.created_at))
      this.#keys.dropOldest(agentId)
    }
    for (const row of agentEvents) {
      const record = this.#records.get(row.agent_id)
      if (record !== undefined) this.#apply(record, readEvent(row), row.at, now)
    }
  }

  async #register({
    name,
    description = null,
    type,
  }: Registration): Promise<IssuedKey & { agentId: string }> {
    const { clock, random, randomBytes, store } = this.#options
    const nowMs = clock.now()
    const agentId = `ag_${ulid(nowMs, random)}`
    const agent: Agent = { agentId, name, description, type, createdAtMs: nowMs }
    const { text, key, write } = makeAgentKey(agent, nowMs, randomBytes)
    const row = { agent_id: agentId, name, description, type, created_at: nowMs }
    const registration: TableWrite<'agents'> = { table: 'agents', row }
    await store.commit([registration, write])
    this.#records.set(agentId, newRecord(agent))
    this.#keys.add(key)
    this.#options.onChanged?.(agentId)
    return { ...this.#issued(text, agent), agentId }
  }

  async #rotate(
    record: AgentRecord,
    old: Key,
    unused: readonly Key[],
    now: Instant,
  ): Promise<IssuedKey & { oldKeyExpiresAt: number }> {
    const { agent } = record
    const { randomBytes, store } = this.#options
    const { text, key, write } = makeAgentKey(agent, now.wallMs, randomBytes)
    const events: AgentEvent[] = [
      { kind: 'key_unused', data: { keyHash: key.hash } },
      endOf(old, now.wallMs + ROTATED_KEY_LIFE_MS),
      ...unused
        .filter(({ deadlineMs }) => deadlineMs > now.monotonicMs)
        .map((each) => endOf(each, now.wallMs)),
    ]
    // Known before it is durable, so that revoking all keys meanwhile revokes it too. Nobody has its text yet.
    this.#keys.add(key)
    try {
      await store.commit([write, ...events.map((event) => writeEvent(agent.agentId, event, now.wallMs))])
    } catch (error) {
      this.#keys.drop(key)
      throw error
    }
    this.#keys.dropOldest(agent.agentId)
    for (const event of events) this.#apply(record, event, now.wallMs, now)
    this.#options.onChanged?.(agent.agentId)
    return { ...this.#issued(text, agent), oldKeyExpiresAt: old.expiresAtMs }
  }

  #issued(key: string, { type }: Agent): IssuedKey {
    const { submitRateMax = SUBMIT_LIMITS.rate } = this.#options
    return { key, type, rateLimit: submitRateMax === 0 ? null : submitRateMax }
  }

  async #changeProfile(record: AgentRecord, sent: ProfileChange): Promise<Profile> {
    const { agent } = record
    const profile = changedProfile(agent, record.profile, sent, this.#options.clock.now())
    await this.#append(agent.agentId, { kind: 'profile', data: profile })
    return profile
  }

  /** Makes events durable together, then true. */
  async #append(agentId: string, ...events: AgentEvent[]): Promise<void> {
    const record = this.#record(agentId)
    const now = readClock(this.#options.clock)
    await this.#options.store.commit(events.map((event) => writeEvent(agentId, event, now.wallMs)))
    for (const event of events) this.#apply(record, event, now.wallMs, now)
    this.#options.onChanged?.(agentId)
  }

  /** Applies a durable event of `atMs`, wall time: of this run, or recovered. */
  #apply(record: AgentRecord, { kind, data }: AgentEvent, atMs: number, now: Instant): void {
    switch (kind) {
      case 'profile':
        record.profile = data
        return
      case 'key_expires':
        this.#keys.expire(data.keyHash, atMs, data.atMs, now)
        return
      case 'key_unused':
      case 'key_used': {
        const key = this.#keys.get(data.keyHash)
        if (key !== undefined) key.isUsed = kind === 'key_used'
        return
      }
      case 'suspended':
        record.bans.suspend(atMs, data.untilMs, now)
        return
      case 'banned':
        record.bans.ban(atMs, data.untilMs, now)
        return
      case 'unbanned':
        record.bans.lift()
    }
  }
}

/** A key ends at `atMs`, wall time. */
const endOf = ({ hash }: Key, atMs: number): AgentEvent => ({
  kind: 'key_expires',
  data: { keyHash: hash, atMs },
})

const newRecord = (agent: Agent): AgentRecord => ({
  agent,
  profile: null,
  bans: new Bans(),
  profileChange: Promise.resolve(),
})

/** A type that this version does not know gets the least rights. */
const readAgent = (row: TableRow<'agents'>): Agent => ({
  agentId: row.agent_id,
  name: row.name,
  description: row.description,
  type: AGENT_TYPES.find((type) => type === row.type) ?? 'agent',
  createdAtMs: row.created_at,
})

/** `expiresAtMs` null: it does not end. */
const shownKey = ({ prefix, createdAtMs, expiresAtMs }: Key) => ({
  prefix,
  createdAtMs,
  expiresAtMs: Number.isFinite(expiresAtMs) ? expiresAtMs : null,
})

const agentStatus = (agent: Agent, keys: readonly Key[], bannedUntilMs: number | null): AgentStatus => ({
  ...agent,
  keys: keys.map(shownKey),
  bannedUntilMs: bannedUntilMs === Number.POSITIVE_INFINITY ? null : bannedUntilMs,
  banned: bannedUntilMs !== null,
})

const rotatedTooOften = (retryAfterMs: number): SubmissionError =>
  new SubmissionError(
    'register_rate_limited',
    `This agent’s key was rotated ${ROTATIONS_PER_DAY_MAX} times within a day.`,
    { limit: ROTATIONS_PER_DAY_MAX, retryAfterMs },
    { retryAfterMs },
  )

/** A ban until then would never be one. */
function banIsOver(untilMs: number): SubmissionError {
  const message = unitHint(untilMs) ?? 'must be later than now'
  const errors = [{ pointer: '/untilMs', code: 'too_small', message }]
  return new SubmissionError('validation_failed', `/untilMs ${message}.`, { errors })
}
