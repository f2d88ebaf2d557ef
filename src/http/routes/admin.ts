import { realpathSync } from 'node:fs'
import type { z } from 'zod'
import { operatorRegistrationSchema, registeredSchema } from '../../schema/api/accounts.ts'
import {
  agentListSchema,
  awardAnswerSchema,
  awardXpSchema,
  bannedSchema,
  banSchema,
  clockTrustedSchema,
  keysRevokedSchema,
  lakeRepairSchema,
  lakeRetiredSchema,
  NOTE_CHARACTERS_MAX,
  repairLakeSchema,
  revokeKeysSchema,
  stagedBackupSchema,
  unbanSchema,
} from '../../schema/api/admin.ts'
import { ServiceError } from '../../schema/errors.ts'
import type { AgentRegistry } from '../../submissions/accounts/agent-registry.ts'
import { parseBody } from '../../submissions/field-errors.ts'
import type { SubmissionService } from '../../submissions/submission-service.ts'
import { type Context, type HttpAnswer, type Method, okData } from '../context.ts'
import { json, jsonDocs } from '../docs/operation-docs.ts'
import type { PlainRoute, Route } from '../route.ts'
import { issuedKey, jsonObject } from './agents.ts'
import type { RouteParts } from './route-parts.ts'

/** What the operator may do, with the operator's key. */
export function adminRoutes(deps: RouteParts): Route[] {
  return [
    admin('GET', '/api/v1/admin/agents', 'Every agent, its keys and bans', {
      docs: adminDocs('listAllAgents', 'Every agent', agentListSchema),
      handle: () => okData(deps.agents.list()),
    }),
    admin(
      'POST',
      '/api/v1/admin/keys',
      'Make an agent or a researcher and its key, registration open or not: {name, description?, type?}',
      {
        docs: jsonDocs('makeKey', 'admin', 'The key', registeredSchema, {
          status: 201,
          body: json(operatorRegistrationSchema),
          errors: ['registration_closed', 'store_unavailable'],
        }),
        handle: async (context) => issuedKey(await deps.agents.register(jsonObject(context), true)),
      },
    ),
    admin(
      'POST',
      '/api/v1/admin/revoke',
      'Revoke an agent’s keys, or the one of that prefix: {agentId, prefix?}',
      {
        docs: adminDocs('revokeKeys', 'How many keys were revoked', keysRevokedSchema, revokeKeysSchema),
        handle: (context) => revokeKeys(deps.agents, context),
      },
    ),
    admin('POST', '/api/v1/admin/ban', 'Ban an agent: {agentId, untilMs?, reason}', {
      docs: adminDocs('banAgent', 'The agent is banned', bannedSchema, banSchema),
      handle: (context) => ban(deps.agents, context),
    }),
    admin('POST', '/api/v1/admin/unban', 'Lift a ban or suspension: {agentId}', {
      docs: adminDocs('unbanAgent', 'The agent may submit', bannedSchema, unbanSchema),
      handle: (context) => unban(deps.agents, context),
    }),
    admin(
      'POST',
      '/api/v1/admin/lake/repair',
      'Read every file of the lake, set damaged ones aside, and settle what is lost: {dataDir?}',
      {
        isLong: true,
        docs: adminDocs('repairLake', 'What was found', lakeRepairSchema, repairLakeSchema),
        handle: async (context) => {
          checkDataDir(deps, context)
          return okData(await deps.store.repairLake())
        },
      },
    ),
    admin(
      'POST',
      '/api/v1/admin/backup',
      'Copy the store within its data folder, for mintlake backup to take from: {dataDir?}',
      {
        isLong: true,
        watchesClient: true,
        docs: adminDocs(
          'stageBackup',
          'Where the copy is, and what it has',
          stagedBackupSchema,
          repairLakeSchema,
        ),
        handle: (context) => stageBackup(deps, context),
      },
    ),
    admin(
      'POST',
      '/api/v1/admin/lake/retire',
      'The clock is right: dates that are over their time leave the lake',
      {
        docs: adminDocs('retireLake', 'What left the lake', lakeRetiredSchema),
        handle: async () => okData(await deps.store.retireLake()),
      },
    ),
    admin(
      'POST',
      '/api/v1/admin/clock/trust',
      'The clock is right: market time is brought to it, and the market stays',
      {
        docs: adminDocs('trustClock', 'How far market time has moved', clockTrustedSchema),
        handle: async () => okData(await deps.trustClock()),
      },
    ),
    admin('POST', '/api/v1/admin/xp', 'Award XP: {agentId, kind, times?, note?}', {
      docs: adminDocs('awardXp', 'The award', awardAnswerSchema, awardXpSchema),
      handle: (context) => awardXp(deps.submissions, context),
    }),
  ]
}

const admin = (
  method: Method,
  path: string,
  summary: string,
  rest: Pick<PlainRoute, 'docs' | 'handle' | 'isLong' | 'watchesClient'>,
): Route => ({ method, path, summary, access: 'admin', ...rest })

const adminDocs = (operationId: string, description: string, answer: z.ZodType, body?: z.ZodType) =>
  jsonDocs(operationId, 'admin', description, answer, {
    ...(body && { body: json(body) }),
    errors: ['store_unavailable'],
  })

async function stageBackup(deps: RouteParts, context: Context): Promise<HttpAnswer> {
  const gone = new AbortController()
  context.onGone(() => gone.abort())
  checkDataDir(deps, context)
  return okData(await deps.store.stageBackup(gone.signal))
}

/** A request that names a data folder may have reached the wrong server. @throws ServiceError `invalid_parameter`. */
function checkDataDir({ dataDir }: RouteParts, context: Context): void {
  const { dataDir: named } = read(repairLakeSchema, context)
  const own = realpathSync(dataDir)
  if (named != null && named !== own)
    throw new ServiceError('invalid_parameter', `This server has the data folder ${own}, not ${named}.`)
}

async function revokeKeys(agents: AgentRegistry, context: Context): Promise<HttpAnswer> {
  const { agentId, prefix } = read(revokeKeysSchema, context)
  return okData({ revoked: await agents.revokeKeys(agentId, prefix ?? null) })
}

async function ban(agents: AgentRegistry, context: Context): Promise<HttpAnswer> {
  const { agentId, untilMs, reason = 'by the operator' } = read(banSchema, context)
  await agents.ban(agentId, untilMs ?? null, reason.slice(0, NOTE_CHARACTERS_MAX))
  return okData({ banned: true })
}

async function unban(agents: AgentRegistry, context: Context): Promise<HttpAnswer> {
  await agents.unban(read(unbanSchema, context).agentId)
  return okData({ banned: false })
}

async function awardXp(submissions: SubmissionService, context: Context): Promise<HttpAnswer> {
  const { agentId, kind, times = 1, note } = read(awardXpSchema, context)
  return okData(await submissions.award(agentId, kind, times, note?.slice(0, NOTE_CHARACTERS_MAX) ?? null))
}

/** The body of a request. Throws invalid_json, validation_failed. */
const read = <Schema extends z.ZodType>(schema: Schema, context: Context): z.output<Schema> =>
  parseBody(schema, jsonObject(context))
