// In: keys, registrations and the operator's word. Out: who is asking, and whether it may submit. Every change is a
// row of an append-only table, durable before it is answered; the state here is what those rows add up to, in the order in
// which they were written. Whatever lasts for a time ends by the monotonic clock. Never keeps a key: only its SHA-256.
import { ulid } from 'ulid'
import { z } from 'zod'
import { type Clock, type Instant, readClock, toMonotonicDeadlineMs, toMonotonicMs } from '../../lib/clock.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { DAY_MS } from '../../lib/time.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { Row, Write } from '../../schema/tables.ts'
import { AGENT_TYPES, type AgentType } from '../../schema/vocabulary.ts'
import {
  AGENTS_MAX,
  KEYS_REMEMBERED_MAX,
  ROTATED_KEY_LIFE_MS,
  ROTATIONS_PER_DAY_MAX,
  SUBMIT_RATE_MAX,
} from '../limits.ts'
import { createRateLimiter } from '../rate-limits/rate-limit.ts'
import type { Agent, AgentStatus, Agents, Answer, Caller, Profile, SubmissionStore } from '../types.ts'
import { fieldError } from '../validate.ts'
import { displayPrefix, hashKey, isKey, makeKey, type RandomBytes } from './api-keys.ts'
import { Bans, banned, type PendingSuspension } from './bans.ts'

const text = (lengthMax: number) => z.string().trim().max(lengthMax)
const registerSchema = z.object({ name: text(64).min(1), description: text(500).nullish() })
/** What the operator may say besides. */
const operatorSchema = registerSchema.extend({ type: z.enum(AGENT_TYPES).default('agent') })
const profileSchema = z.object({
  name: text(64).min(1).optional(),
  description: text(500).nullish(),
  avatarUrl: text(500).nullish(),
  twitterHandle: text(64).nullish(),
  website: text(500).nullish(),
})

interface Key {
  hash: string
  prefix: string
  createdAtMs: number
  /** From here on it is revoked, as it was told, wall time; Infinity while nobody has said so. */
  expiresAtMs: number
  /** The same on the monotonic clock. */
  deadlineMs: number
}

interface AgentRecord {
  agent: Agent
  keys: Key[]
  profile: Profile | null
  bans: Bans
  /** Resolves when the change of its profile under way is decided: one follows from the other. */
  profileChange: Promise<unknown>
}

/** What the submission service keeps of an agent besides its keys. */
export interface AgentRegistry extends Agents {
  /** Throws `agent_banned` while the agent may not submit. */
  checkBan(caller: Caller): void
  /** Times of earlier suspensions on the monotonic clock, for the strike rules. */
  suspensions(agentId: string): readonly number[]
  /** Suspends an agent at once, `untilMs` null for good, with the rows that make it durable. */
  suspend(agentId: string, untilMs: number | null, now: Instant): PendingSuspension & { writes: Write[] }
  name(agentId: string): string
}

export interface AgentRegistryOptions {
  recovered: { agents: Row[]; agentKeys: Row[]; agentEvents: Row[] }
  store: SubmissionStore
  clock: Clock
  randomBytes: RandomBytes
  /** Submissions a minute that a key is told of; 0: no limit. */
  submitRateMax?: number
  /** Of new identities; without it the machine’s own. Uniform in [0, 1). */
  random?: () => number
  registrationOpen: boolean
}

const unauthorized = (code: 'missing_key' | 'invalid_key' | 'revoked_key', sentence: string) =>
  new ServiceError(code, sentence, {}, { 'WWW-Authenticate': 'Bearer' })

export function createAgentRegistry({
  recovered,
  store,
  clock,
  randomBytes,
  submitRateMax = SUBMIT_RATE_MAX,
  random,
  registrationOpen,
}: AgentRegistryOptions): AgentRegistry {
  const records = new Map<string, AgentRecord>()
  const keys = new Map<string, { key: Key; record: AgentRecord }>()
  const rotations = createRateLimiter(ROTATIONS_PER_DAY_MAX, DAY_MS)
  /** Registrations on their way to the store. */
  let registering = 0

  /** A key is known before it is durable, so that revoking all keys revokes it too: nobody has it yet. */
  function addKey(record: AgentRecord, key: Key): void {
    record.keys.push(key)
    keys.set(key.hash, { key, record })
  }

  function dropKey(record: AgentRecord, key: Key): void {
    record.keys = record.keys.filter((each) => each !== key)
    keys.delete(key.hash)
  }

  function forgetOldestKeys(record: AgentRecord): void {
    for (const key of record.keys.slice(0, -KEYS_REMEMBERED_MAX)) dropKey(record, key)
  }

  function expireKey(hash: string, fromMs: number, atMs: number, now: Instant): void {
    const key = keys.get(hash)?.key
    const deadlineMs = toMonotonicDeadlineMs(fromMs, atMs, now)
    if (key === undefined || key.deadlineMs <= deadlineMs) return
    key.expiresAtMs = atMs
    key.deadlineMs = deadlineMs
  }

  /** One row of agent_events made true; what the store recovers and what happens now take the same way. */
  function applyEvent(
    record: AgentRecord,
    kind: string,
    atMs: number,
    data: Record<string, unknown>,
    now: Instant,
  ): void {
    if (kind === 'profile') record.profile = data as unknown as Profile
    if (kind === 'key_expires') expireKey(data.keyHash as string, atMs, data.atMs as number, now)
    if (kind === 'suspended') record.bans.suspend(atMs, data.untilMs as number | null, now)
    if (kind === 'banned') record.bans.ban(atMs, data.untilMs as number | null, now)
    if (kind === 'unbanned') record.bans.lift()
  }

  const startedAt = readClock(clock)
  for (const row of recovered.agents) {
    const agent: Agent = {
      agentId: row.agent_id as string,
      name: row.name as string,
      description: row.description as string | null,
      type: row.type as Agent['type'],
      createdAtMs: row.created_at as number,
    }
    records.set(agent.agentId, newRecord(agent))
  }
  for (const row of recovered.agentKeys) {
    const record = records.get(row.agent_id as string)
    if (record === undefined) continue
    const createdAtMs = row.created_at as number
    // The first key came with the registration; each further one was a rotation.
    if (record.keys.length > 0) rotations.take(record.agent.agentId, toMonotonicMs(createdAtMs, startedAt))
    addKey(record, {
      ...IN_FORCE,
      hash: row.key_hash as string,
      prefix: row.key_prefix as string,
      createdAtMs,
    })
    forgetOldestKeys(record)
  }
  for (const row of recovered.agentEvents) {
    const record = records.get(row.agent_id as string)
    if (record !== undefined)
      applyEvent(record, row.kind as string, row.at as number, JSON.parse(row.data as string), startedAt)
  }

  const eventRow = (agentId: string, kind: string, atMs: number, data: Record<string, unknown>): Write => ({
    table: 'agent_events',
    row: { agent_id: agentId, at: atMs, kind, data: JSON.stringify(data) },
  })

  async function appendEvent(
    record: AgentRecord,
    kind: string,
    data: Record<string, unknown>,
  ): Promise<void> {
    const now = readClock(clock)
    await store.commit([eventRow(record.agent.agentId, kind, now.wallMs, data)])
    applyEvent(record, kind, now.wallMs, data, now)
  }

  function recordOf(agentId: string): AgentRecord {
    const record = records.get(agentId)
    if (record === undefined)
      throw new ServiceError('not_found', `There is no agent ${agentId.slice(0, 64)}.`)
    return record
  }

  /** A new key of an agent and its row. */
  function newKey(record: AgentRecord, createdAtMs: number): { text: string; key: Key; write: Write } {
    const text = makeKey(randomBytes)
    const key: Key = { ...IN_FORCE, hash: hashKey(text), prefix: displayPrefix(text), createdAtMs }
    const row = {
      key_hash: key.hash,
      key_prefix: key.prefix,
      agent_id: record.agent.agentId,
      created_at: createdAtMs,
    }
    return { text, key, write: { table: 'agent_keys', row } }
  }

  const keyAnswer = (key: string, type: AgentType, more: Record<string, unknown> = {}): Answer => ({
    status: 201,
    body: {
      ok: true,
      // Null, as elsewhere what does not exist: 0 would say that nothing may be submitted.
      data: { key, type, rateLimit: submitRateMax === 0 ? null : submitRateMax, ...more },
      important: 'Store this key now: it is shown once, and only its hash is kept.',
    },
    headers: { 'Cache-Control': 'no-store' },
  })

  async function register(sent: z.infer<typeof operatorSchema>): Promise<Answer> {
    const { name, description = null, type } = sent
    const nowMs = clock.now()
    const agent: Agent = {
      agentId: `ag_${ulid(nowMs, random)}`,
      name,
      description,
      type,
      createdAtMs: nowMs,
    }
    const record = newRecord(agent)
    const { text, key, write } = newKey(record, nowMs)
    const row = { agent_id: agent.agentId, name, description, type, created_at: nowMs }
    await store.commit([{ table: 'agents', row }, write])
    records.set(agent.agentId, record)
    addKey(record, key)
    return keyAnswer(text, type, { agentId: agent.agentId })
  }

  async function rotate(record: AgentRecord, keyHash: string, now: Instant): Promise<Answer> {
    const { agentId, type } = record.agent
    const { text, key, write } = newKey(record, now.wallMs)
    const expiry = { keyHash, atMs: now.wallMs + ROTATED_KEY_LIFE_MS }
    addKey(record, key)
    try {
      await store.commit([write, eventRow(agentId, 'key_expires', now.wallMs, expiry)])
    } catch (error) {
      dropKey(record, key)
      throw error
    }
    forgetOldestKeys(record)
    applyEvent(record, 'key_expires', now.wallMs, expiry, now)
    return keyAnswer(text, type, { oldKeyExpiresAt: expiry.atMs })
  }

  async function changeProfile(record: AgentRecord, sent: z.infer<typeof profileSchema>): Promise<Profile> {
    const { agent, profile: before } = record
    const nowMs = clock.now()
    const keep = (
      field: 'description' | 'avatarUrl' | 'twitterHandle' | 'website',
      otherwise: string | null,
    ) => (sent[field] === undefined ? (before?.[field] ?? otherwise) : sent[field])
    const profile: Profile = {
      name: sent.name ?? before?.name ?? agent.name,
      description: keep('description', agent.description),
      avatarUrl: keep('avatarUrl', null),
      twitterHandle: keep('twitterHandle', null),
      website: keep('website', null),
      createdAt: before?.createdAt ?? nowMs,
      updatedAt: nowMs,
    }
    await appendEvent(record, 'profile', { ...profile })
    return profile
  }

  return {
    authenticate(text) {
      if (text === '')
        throw unauthorized('missing_key', 'An API key is required: Authorization: Bearer <API_KEY>.')
      const entry = keys.get(hashKey(text))
      if (entry === undefined) {
        const isWhole = isKey(text)
        throw unauthorized(
          'invalid_key',
          isWhole ? 'The API key is not known.' : 'The API key is mistyped or not a key of this service.',
        )
      }
      if (clock.monotonicMs() >= entry.key.deadlineMs)
        throw unauthorized('revoked_key', 'The API key was revoked.')
      return { agent: entry.record.agent, keyHash: entry.key.hash }
    },

    async register(body, byOperator = false) {
      if (!(registrationOpen || byOperator) || records.size + registering >= AGENTS_MAX)
        throw new ServiceError('registration_closed', 'Registration is closed: ask the operator for a key.')
      const sent = byOperator
        ? parse(operatorSchema, body)
        : { ...parse(registerSchema, body), type: 'agent' as const }
      registering++
      try {
        return await register(sent)
      } finally {
        registering--
      }
    },

    async rotate({ agent, keyHash }) {
      const record = recordOf(agent.agentId)
      const now = readClock(clock)
      const state = rotations.state(agent.agentId, now.monotonicMs)
      if (!state.allowed) throw rotatedTooOften(state.resetMs)
      rotations.take(agent.agentId, now.monotonicMs)
      try {
        return await rotate(record, keyHash, now)
      } catch (error) {
        rotations.release(agent.agentId, now.monotonicMs)
        throw error
      }
    },

    async revoke({ agent, keyHash }) {
      await appendEvent(recordOf(agent.agentId), 'key_expires', { keyHash, atMs: clock.now() })
      return { status: 200, body: { ok: true, data: { revoked: true } } }
    },

    profile: ({ agent }) => recordOf(agent.agentId).profile,

    async setProfile({ agent }, body) {
      const record = recordOf(agent.agentId)
      const sent = parse(profileSchema, body)
      const change = record.profileChange.then(() => changeProfile(record, sent))
      record.profileChange = change.catch(() => {})
      return change
    },

    list: () => {
      const now = readClock(clock)
      return [...records.values()].map((record) => statusOf(record, now))
    },

    async revokeKeys(agentId, prefix) {
      const record = recordOf(agentId)
      const now = readClock(clock)
      const { wallMs: atMs, monotonicMs } = now
      const expiries = record.keys
        .filter((key) => key.deadlineMs > monotonicMs && (prefix === null || key.prefix === prefix))
        .map(({ hash }) => ({ keyHash: hash, atMs }))
      await store.commit(expiries.map((expiry) => eventRow(agentId, 'key_expires', atMs, expiry)))
      for (const expiry of expiries) applyEvent(record, 'key_expires', atMs, expiry, now)
      return expiries.length
    },

    ban: (agentId, untilMs, reason) => appendEvent(recordOf(agentId), 'banned', { untilMs, reason }),
    unban: (agentId) => appendEvent(recordOf(agentId), 'unbanned', {}),

    checkBan({ agent }) {
      const now = readClock(clock)
      const untilMs = recordOf(agent.agentId).bans.untilMs(now)
      if (untilMs !== null) throw banned(untilMs, now.wallMs)
    },
    suspensions: (agentId) => recordOf(agentId).bans.suspendedAtMs,
    suspend(agentId, untilMs, now) {
      const pending = recordOf(agentId).bans.beginSuspension(untilMs, now)
      const data = { untilMs, reason: 'rejected submissions' }
      return { writes: [eventRow(agentId, 'suspended', now.wallMs, data)], ...pending }
    },
    name: (agentId) => records.get(agentId)?.profile?.name ?? records.get(agentId)?.agent.name ?? agentId,
  }
}

const IN_FORCE = { expiresAtMs: Number.POSITIVE_INFINITY, deadlineMs: Number.POSITIVE_INFINITY }

const newRecord = (agent: Agent): AgentRecord => ({
  agent,
  keys: [],
  profile: null,
  bans: new Bans(),
  profileChange: Promise.resolve(),
})

const rotatedTooOften = (retryAfterMs: number): ServiceError =>
  new ServiceError(
    'register_rate_limited',
    `This agent’s key was rotated ${ROTATIONS_PER_DAY_MAX} times within a day.`,
    { limit: ROTATIONS_PER_DAY_MAX, retryAfterMs },
    { 'Retry-After': `${Math.ceil(retryAfterMs / 1_000)}` },
  )

function statusOf({ agent, keys, bans }: AgentRecord, now: Instant): AgentStatus {
  const untilMs = bans.untilMs(now)
  return {
    ...agent,
    keys: keys.map(({ prefix, createdAtMs, expiresAtMs }) => ({
      prefix,
      createdAtMs,
      expiresAtMs: Number.isFinite(expiresAtMs) ? expiresAtMs : null,
    })),
    bannedUntilMs: untilMs === Number.POSITIVE_INFINITY ? null : untilMs,
    banned: untilMs !== null,
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.infer<Schema> {
  const result = safeParse(schema, body)
  if (result.success) return result.data
  const errors = result.error.issues.map((issue) => fieldError(issue, body))
  throw new ServiceError('validation_failed', `${errors[0].pointer || 'The body'} ${errors[0].message}.`, {
    errors,
  })
}
