// In: what operators and machines ask of the server itself. Out: whether it lives, is ready, how it fares; feeds that
// push; the operator's word. Never shows a secret.

import { ServiceError } from '../../schema/errors.ts'
import { MSGPACK_MEDIA_TYPES, NDJSON_MEDIA_TYPES } from '../../schema/media-types.ts'
import type { LakeRepair } from '../../store/types.ts'
import type { Agents, Submissions } from '../../submissions/types.ts'
import type { HttpAnswer } from '../context.ts'
import { INGEST_BODY_BYTES_MAX, INGEST_BODY_MS_MAX } from '../limits.ts'
import type { Route } from '../route.ts'
import { issuedKey, jsonObject } from './agents.ts'

export interface OperationDeps {
  agents: Agents
  submissions: Submissions
  /** For /health: everything there is to say. */
  health(): Promise<Record<string, unknown>>
  /** Null when ready, else why not, in a sentence too. */
  notReady(): { code: 'warming_up' | 'draining'; sentence: string } | null
  /** For /readyz: where each feed stands. */
  feedStates(): Record<string, unknown>[]
  metrics(): Promise<{ text: string; contentType: string }>
  /** Has the lake of a data folder looked through and its losses settled; null: the server's own folder. */
  repairLake(dataDir: string | null): Promise<LakeRepair>
  /** The operator says that the clock is right. */
  retireLake(): Promise<{ files: number }>
  /** Applies pushed records. */
  ingest(body: Uint8Array, contentType: string): Promise<Record<string, unknown>>
}

/** What is true of this moment only. */
const NOW = { 'Cache-Control': 'no-store' }
const ok = (data: unknown): HttpAnswer => ({ status: 200, body: { ok: true, data } })

export function operationRoutes(deps: OperationDeps): Route[] {
  const { agents, submissions } = deps
  const admin = (method: Route['method'], path: string, summary: string, handle: Route['handle']): Route => ({
    method,
    path,
    summary,
    handle,
    access: 'admin',
  })
  return [
    {
      method: 'POST',
      path: '/api/v1/ingest',
      access: 'feed',
      summary: 'Push market events, NDJSON or msgpack',
      changes: [],
      bodyBytesMax: INGEST_BODY_BYTES_MAX,
      bodyMsMax: INGEST_BODY_MS_MAX,
      bodyTypes: [...NDJSON_MEDIA_TYPES, ...MSGPACK_MEDIA_TYPES],
      handle: async ({ body, headers }) => ({
        status: 200,
        body: { ok: true, ...(await deps.ingest(body, headers.contentType)) },
      }),
    },
    {
      method: 'GET',
      path: '/health',
      access: 'open',
      summary: 'Whether the server lives, and what feeds it',
      handle: async () => ({ status: 200, headers: NOW, body: { ok: true, ...(await deps.health()) } }),
    },
    {
      method: 'GET',
      path: '/readyz',
      access: 'open',
      summary: 'Whether the server is ready to serve',
      handle: () => {
        const [why, feeds] = [deps.notReady(), deps.feedStates()]
        if (why !== null) throw new ServiceError(why.code, why.sentence, { feeds }, { 'Retry-After': '1' })
        return { status: 200, headers: NOW, body: { ok: true, ready: true, feeds } }
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      access: 'open',
      summary: 'Metrics as Prometheus text',
      handle: async () => {
        const { text, contentType } = await deps.metrics()
        return { status: 200, headers: NOW, body: Buffer.from(text), contentType }
      },
    },
    admin('GET', '/api/v1/admin/agents', 'Every agent, its keys and bans', () => ok(agents.list())),
    admin(
      'POST',
      '/api/v1/admin/keys',
      'Make an agent or a researcher and its key, registration open or not: {name, description?, type?}',
      async (context) => issuedKey(await agents.register(jsonObject(context), true)),
    ),
    admin(
      'POST',
      '/api/v1/admin/revoke',
      'Revoke an agent’s keys, or the one of that prefix: {agentId, prefix?}',
      async (context) => {
        const { agentId, prefix } = jsonObject(context)
        const wanted = prefix === undefined || prefix === null ? null : text(prefix, 'prefix')
        return ok({ revoked: await agents.revokeKeys(text(agentId, 'agentId'), wanted) })
      },
    ),
    admin('POST', '/api/v1/admin/ban', 'Ban an agent: {agentId, untilMs?, reason}', async (context) => {
      const { agentId, untilMs, reason } = jsonObject(context)
      await agents.ban(
        text(agentId, 'agentId'),
        untilMs === undefined || untilMs === null ? null : moment(untilMs, 'untilMs'),
        typeof reason === 'string' ? reason.slice(0, 500) : 'by the operator',
      )
      return ok({ banned: true })
    }),
    admin('POST', '/api/v1/admin/unban', 'Lift a ban or suspension: {agentId}', async (context) => {
      await agents.unban(text(jsonObject(context).agentId, 'agentId'))
      return ok({ banned: false })
    }),
    admin(
      'POST',
      '/api/v1/admin/lake/repair',
      'Read every file of the lake, set damaged ones aside, and settle what is lost: {dataDir?}',
      async (context) => {
        const { dataDir } = jsonObject(context)
        const isSaid = dataDir !== undefined && dataDir !== null
        return ok(await deps.repairLake(isSaid ? text(dataDir, 'dataDir') : null))
      },
    ),
    admin(
      'POST',
      '/api/v1/admin/lake/retire',
      'The clock is right: dates that are over their time leave the lake',
      async () => ok(await deps.retireLake()),
    ),
    admin('POST', '/api/v1/admin/xp', 'Award XP: {agentId, kind, times?, note?}', async (context) => {
      const { agentId, kind, times, note } = jsonObject(context)
      return ok(
        await submissions.award(
          text(agentId, 'agentId'),
          text(kind, 'kind'),
          typeof times === 'number' ? times : 1,
          typeof note === 'string' ? note.slice(0, 500) : null,
        ),
      )
    }),
  ]
}

/** The last moment that a date can be. */
const TIME_MS_MAX = 8.64e15

/** A ban whose end is no time must not become one without an end. */
function moment(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= TIME_MS_MAX)
    return value
  const message = 'must be Unix milliseconds'
  throw new ServiceError('validation_failed', `/${name} ${message}.`, {
    errors: [{ pointer: `/${name}`, code: 'invalid_type', message }],
  })
}

function text(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new ServiceError('validation_failed', `/${name} is missing.`, {
    errors: [{ pointer: `/${name}`, code: 'required', message: 'is missing' }],
  })
}
