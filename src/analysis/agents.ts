// In: keys, registrations and the operator's word. Out: who is asking, and whether it may submit. Every change is a
// row of an append-only table, durable before it is answered; the state here is what those rows add up to.
// Never keeps a key: only its SHA-256.
import { ulid } from 'ulid'
import { z } from 'zod'
import type { Clock } from '../lib/clock.ts'
import { safeParse } from '../lib/safe-parse.ts'
import { ServiceError } from '../schema/errors.ts'
import type { Row, Write } from '../schema/tables.ts'
import { AGENT_TYPES, type AgentType } from '../schema/vocabulary.ts'
import { displayPrefix, hashKey, isKey, makeKey, type RandomBytes } from './keys.ts'
import {
  AGENTS_MAX,
  KEYS_REMEMBERED_MAX,
  ROTATED_KEY_LIFE_MS,
  ROTATIONS_PER_DAY_MAX,
  SUBMIT_RATE_MAX,
} from './limits.ts'
import type { Agent, AgentStatus, Agents, Answer, Caller, Ledger, Profile } from './types.ts'
import { fieldError } from './validate.ts'

const DAY_MS = 86_400_000
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
  /** From here on it is revoked; Infinity while it is in force. */
  expiresAtMs: number
}

interface AgentRecord {
  agent: Agent
  keys: Key[]
  profile: Profile | null
  /** Infinity: for good. */
  bannedUntilMs: number
  suspendedAtMs: number[]
}

/** What the judge keeps of an agent besides its keys. */
export interface AgentBook extends Agents {
  /** Throws `agent_banned` while the agent may not submit. */
  checkBan(caller: Caller): void
  /** Times of earlier suspensions, for the strike rules. */
  suspensions(agentId: string): readonly number[]
  /** The rows that suspend or ban an agent; `apply` makes them true here, `undo` takes that back. */
  sanction(agentId: string, untilMs: number, atMs: number): { writes: Write[]; apply(): void; undo(): void }
  name(agentId: string): string
}

export interface AgentOptions {
  recovered: { agents: Row[]; agentKeys: Row[]; agentEvents: Row[] }
  ledger: Ledger
  clock: Clock
  randomBytes: RandomBytes
  /** Of new identities; without it the machine’s own. Uniform in [0, 1). */
  random?: () => number
  registrationOpen: boolean
}

const unauthorized = (code: 'missing_key' | 'invalid_key' | 'revoked_key', sentence: string) =>
  new ServiceError(code, sentence, {}, { 'WWW-Authenticate': 'Bearer' })

export function createAgents({
  recovered,
  ledger,
  clock,
  randomBytes,
  random,
  registrationOpen,
}: AgentOptions): AgentBook {
  const records = new Map<string, AgentRecord>()
  const keys = new Map<string, { key: Key; record: AgentRecord }>()

  function addAgent(agent: Agent): AgentRecord {
    const record: AgentRecord = { agent, keys: [], profile: null, bannedUntilMs: 0, suspendedAtMs: [] }
    records.set(agent.agentId, record)
    return record
  }

  function addKey(record: AgentRecord, key: Key): void {
    record.keys.push(key)
    keys.set(key.hash, { key, record })
    if (record.keys.length > KEYS_REMEMBERED_MAX) keys.delete(record.keys.shift()!.hash)
  }

  /** One row of agent_events made true; what the store recovers and what happens now take the same way. */
  function applyEvent(record: AgentRecord, kind: string, atMs: number, data: Record<string, unknown>): void {
    if (kind === 'profile') record.profile = data as unknown as Profile
    if (kind === 'key_expires') {
      const entry = keys.get(data.keyHash as string)
      if (entry !== undefined) entry.key.expiresAtMs = Math.min(entry.key.expiresAtMs, data.atMs as number)
    }
    if (kind === 'suspended') {
      record.bannedUntilMs = data.untilMs as number
      record.suspendedAtMs = [...record.suspendedAtMs, atMs]
    }
    if (kind === 'banned') record.bannedUntilMs = (data.untilMs as number | null) ?? Number.POSITIVE_INFINITY
    if (kind === 'unbanned') {
      record.bannedUntilMs = 0
      record.suspendedAtMs = []
    }
  }

  for (const row of recovered.agents) {
    addAgent({
      agentId: row.agent_id as string,
      name: row.name as string,
      description: row.description as string | null,
      type: row.type as Agent['type'],
      createdAtMs: row.created_at as number,
    })
  }
  for (const row of recovered.agentKeys) {
    const record = records.get(row.agent_id as string)
    if (record === undefined) continue
    addKey(record, {
      hash: row.key_hash as string,
      prefix: row.key_prefix as string,
      createdAtMs: row.created_at as number,
      expiresAtMs: Number.POSITIVE_INFINITY,
    })
  }
  for (const row of recovered.agentEvents) {
    const record = records.get(row.agent_id as string)
    if (record !== undefined)
      applyEvent(record, row.kind as string, row.at as number, JSON.parse(row.data as string))
  }

  const eventRow = (agentId: string, kind: string, atMs: number, data: Record<string, unknown>): Write => ({
    table: 'agent_events',
    row: { agent_id: agentId, at: atMs, kind, data: JSON.stringify(data) },
  })

  async function happen(record: AgentRecord, kind: string, data: Record<string, unknown>): Promise<void> {
    const atMs = clock.now()
    await ledger.commit([eventRow(record.agent.agentId, kind, atMs, data)])
    applyEvent(record, kind, atMs, data)
  }

  function recordOf(agentId: string): AgentRecord {
    const record = records.get(agentId)
    if (record === undefined)
      throw new ServiceError('not_found', `There is no agent ${agentId.slice(0, 64)}.`)
    return record
  }

  /** A new key of an agent: its row, and what makes it known once that row is durable. */
  function newKey(record: AgentRecord): { text: string; write: Write; apply(): void } {
    const text = makeKey(randomBytes)
    const key: Key = {
      hash: hashKey(text),
      prefix: displayPrefix(text),
      createdAtMs: clock.now(),
      expiresAtMs: Number.POSITIVE_INFINITY,
    }
    const row = {
      key_hash: key.hash,
      key_prefix: key.prefix,
      agent_id: record.agent.agentId,
      created_at: key.createdAtMs,
    }
    return { text, write: { table: 'agent_keys', row }, apply: () => addKey(record, key) }
  }

  const keyAnswer = (key: string, type: AgentType, more: Record<string, unknown> = {}): Answer => ({
    status: 201,
    body: {
      ok: true,
      data: { key, type, rateLimit: SUBMIT_RATE_MAX, ...more },
      important: 'Store this key now: it is shown once, and only its hash is kept.',
    },
    headers: { 'Cache-Control': 'no-store' },
  })

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
      if (clock.now() >= entry.key.expiresAtMs) throw unauthorized('revoked_key', 'The API key was revoked.')
      return { agent: entry.record.agent, keyHash: entry.key.hash }
    },

    async register(body, byOperator = false) {
      if (!(registrationOpen || byOperator) || records.size >= AGENTS_MAX)
        throw new ServiceError('registration_closed', 'Registration is closed: ask the operator for a key.')
      const { name, description, type } = byOperator
        ? parse(operatorSchema, body)
        : { ...parse(registerSchema, body), type: 'agent' as const }
      const nowMs = clock.now()
      const agent: Agent = {
        agentId: `ag_${ulid(nowMs, random)}`,
        name,
        description: description ?? null,
        type,
        createdAtMs: nowMs,
      }
      const record: AgentRecord = { agent, keys: [], profile: null, bannedUntilMs: 0, suspendedAtMs: [] }
      const key = newKey(record)
      const row = {
        agent_id: agent.agentId,
        name,
        description: agent.description,
        type: agent.type,
        created_at: nowMs,
      }
      await ledger.commit([{ table: 'agents', row }, key.write])
      records.set(agent.agentId, record)
      key.apply()
      return keyAnswer(key.text, type, { agentId: agent.agentId })
    },

    async rotate({ agent, keyHash }) {
      const record = recordOf(agent.agentId)
      const nowMs = clock.now()
      if (record.keys.filter((key) => nowMs - key.createdAtMs < DAY_MS).length > ROTATIONS_PER_DAY_MAX) {
        const headers = { 'Retry-After': `${DAY_MS / 1_000}` }
        throw new ServiceError(
          'register_rate_limited',
          'This key was rotated too often within a day.',
          { limit: ROTATIONS_PER_DAY_MAX, retryAfterMs: DAY_MS },
          headers,
        )
      }
      const key = newKey(record)
      const expiry = { keyHash, atMs: nowMs + ROTATED_KEY_LIFE_MS }
      await ledger.commit([key.write, eventRow(agent.agentId, 'key_expires', nowMs, expiry)])
      key.apply()
      applyEvent(record, 'key_expires', nowMs, expiry)
      return keyAnswer(key.text, agent.type, { oldKeyExpiresAt: expiry.atMs })
    },

    async revoke({ agent, keyHash }) {
      await happen(recordOf(agent.agentId), 'key_expires', { keyHash, atMs: clock.now() })
      return { status: 200, body: { ok: true, data: { revoked: true } } }
    },

    profile: ({ agent }) => recordOf(agent.agentId).profile,

    async setProfile({ agent }, body) {
      const record = recordOf(agent.agentId)
      const sent = parse(profileSchema, body)
      const nowMs = clock.now()
      const before = record.profile
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
      await happen(record, 'profile', { ...profile })
      return profile
    },

    list: () => [...records.values()].map(status),

    async revokeKeys(agentId, prefix) {
      const record = recordOf(agentId)
      const atMs = clock.now()
      const expiries = record.keys
        .filter((key) => key.expiresAtMs > atMs && (prefix === null || key.prefix === prefix))
        .map(({ hash }) => ({ keyHash: hash, atMs }))
      await ledger.commit(expiries.map((expiry) => eventRow(agentId, 'key_expires', atMs, expiry)))
      for (const expiry of expiries) applyEvent(record, 'key_expires', atMs, expiry)
      return expiries.length
    },

    ban: (agentId, untilMs, reason) => happen(recordOf(agentId), 'banned', { untilMs, reason }),
    unban: (agentId) => happen(recordOf(agentId), 'unbanned', {}),

    checkBan({ agent }) {
      const { bannedUntilMs } = recordOf(agent.agentId)
      const nowMs = clock.now()
      if (nowMs < bannedUntilMs) throw banned(bannedUntilMs, nowMs)
    },
    suspensions: (agentId) => recordOf(agentId).suspendedAtMs,
    sanction(agentId, untilMs, atMs) {
      const record = recordOf(agentId)
      const forGood = untilMs === Number.POSITIVE_INFINITY
      const kind = forGood ? 'banned' : 'suspended'
      const data = { untilMs: forGood ? null : untilMs, reason: 'rejected submissions' }
      const { bannedUntilMs, suspendedAtMs } = record
      return {
        writes: [eventRow(agentId, kind, atMs, data)],
        apply: () => applyEvent(record, kind, atMs, data),
        undo: () => Object.assign(record, { bannedUntilMs, suspendedAtMs }),
      }
    },
    name: (agentId) => records.get(agentId)?.profile?.name ?? records.get(agentId)?.agent.name ?? agentId,
  }
}

/** The answer to a submission of an agent that may not submit; `bannedUntil` null means for good. */
export function banned(
  untilMs: number,
  nowMs: number,
  sentence?: string,
  extra: Record<string, unknown> = {},
): ServiceError {
  const forGood = untilMs === Number.POSITIVE_INFINITY
  const words =
    sentence ??
    (forGood ? 'This agent is banned.' : `This agent is suspended until ${new Date(untilMs).toISOString()}.`)
  const headers: Record<string, string> = forGood
    ? {}
    : { 'Retry-After': `${Math.ceil((untilMs - nowMs) / 1_000)}` }
  return new ServiceError('agent_banned', words, { bannedUntil: forGood ? null : untilMs, ...extra }, headers)
}

function status({ agent, keys, bannedUntilMs }: AgentRecord): AgentStatus {
  const forGood = bannedUntilMs === Number.POSITIVE_INFINITY
  return {
    ...agent,
    keys: keys.map(({ prefix, createdAtMs, expiresAtMs }) => ({
      prefix,
      createdAtMs,
      expiresAtMs: Number.isFinite(expiresAtMs) ? expiresAtMs : null,
    })),
    bannedUntilMs: bannedUntilMs === 0 || forGood ? null : bannedUntilMs,
    banned: bannedUntilMs !== 0,
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
