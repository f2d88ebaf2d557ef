// Routes of agents: submissions, leaderboards, keys and profiles. Statuses, headers and bodies of their answers are made here.
import { leaderboardQuery } from '../../schema/api/queries.ts'
import { ServiceError } from '../../schema/errors.ts'
import { XP_MULTIPLIERS, XP_TABLE } from '../../schema/xp.ts'
import type { Agents, IssuedKey, Submissions, SubmitResult } from '../../submissions/types.ts'
import type { Context, HttpAnswer } from '../context.ts'
import { LEADERBOARD_LIMIT_DEFAULT, LEADERBOARD_LIMIT_MAX } from '../limits.ts'
import { wholeNumber } from '../request/parameters.ts'
import { submitHeaders } from '../response/rate-limit-headers.ts'
import type { Route } from '../route.ts'
import { MARKET_PATH } from './market.ts'

export interface AgentDeps {
  agents: Agents
  submissions: Submissions
  /** Counts a registration from an address. Returns the headers of its limit, or throws 429. */
  countRegistration(ip: string): Record<string, string>
}

const ANALYSIS_PATH = '/api/v1/analysis'
const AGENT_LEADERBOARD_PATH = '/api/v1/agents/leaderboard'

const ok = (body: object): HttpAnswer => ({ status: 200, body: { ok: true, ...body } })

/** A leaderboard of as many rows as the query asks for. `meta.clamped` tells where these were too many. */
function leaderboard({ query }: Context, rank: (limit: number) => object): HttpAnswer {
  const bounds = { min: 1, max: LEADERBOARD_LIMIT_MAX, otherwise: LEADERBOARD_LIMIT_DEFAULT }
  const { value, clamped } = wholeNumber(query, 'limit', bounds)
  const meta = clamped && { meta: { clamped: { limit: LEADERBOARD_LIMIT_MAX } } }
  return ok({ ...rank(value), ...meta })
}

/** The body as a JSON object; an empty body is an empty object. Throws invalid_json, validation_failed. */
export function jsonObject({ body }: Context): Record<string, unknown> {
  let parsed: unknown
  try {
    parsed = body.length === 0 ? {} : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new ServiceError('invalid_json', 'The body is not valid JSON in UTF-8.')
  }
  if (isObject(parsed)) return parsed
  throw new ServiceError('validation_failed', 'The body must be a JSON object.', {
    errors: [{ pointer: '', code: 'invalid_type', message: 'must be an object' }],
  })
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The answer to an accepted submission. */
function accepted({ receipt, quota, isReplay }: SubmitResult): HttpAnswer {
  const headers = submitHeaders(quota, isReplay)
  headers.Location = `${ANALYSIS_PATH}/${receipt.analysisId}`
  return { status: 201, body: { ok: true, ...receipt }, headers }
}

/** The answer with a new key, which no cache may keep. */
export const issuedKey = (
  data: IssuedKey & ({ agentId: string } | { oldKeyExpiresAt: number }),
): HttpAnswer => ({
  status: 201,
  body: {
    ok: true,
    data,
    important: 'Store this key now: it is shown once, and only its hash is kept.',
  },
  headers: { 'Cache-Control': 'no-store' },
})

/** One analysis, or 404. */
async function findAnalysis(submissions: Submissions, id: string): Promise<HttpAnswer> {
  const data = await submissions.analysis(id)
  if (data === null) throw new ServiceError('not_found', `There is no analysis ${id.slice(0, 64)}.`)
  return ok({ data })
}

export const agentRoutes = (deps: AgentDeps): Route[] => [...submissionRoutes(deps), ...accountRoutes(deps)]

function submissionRoutes({ submissions }: AgentDeps): Route[] {
  return [
    {
      method: 'POST',
      path: `${ANALYSIS_PATH}/submit`,
      access: 'agent',
      summary: 'Submit an analysis and earn XP',
      changes: [MARKET_PATH, ANALYSIS_PATH, AGENT_LEADERBOARD_PATH],
      handle: async ({ caller, body, headers }) =>
        accepted(await submissions.submit(caller, { body, idempotencyKey: headers.idempotencyKey || null })),
    },
    {
      method: 'GET',
      path: ANALYSIS_PATH,
      access: 'read',
      summary: 'Coverage: the most analysed tokens',
      docs: { operationId: 'listCoverage', tag: 'analysis', query: leaderboardQuery, answers: {} },
      handle: (context) => leaderboard(context, (limit) => submissions.leaderboard(limit)),
    },
    {
      method: 'GET',
      path: `${ANALYSIS_PATH}/{id}`,
      access: 'read',
      summary: 'One analysis',
      handle: ({ id }) => findAnalysis(submissions, id),
    },
    {
      method: 'GET',
      path: AGENT_LEADERBOARD_PATH,
      access: 'read',
      summary: 'Agents by XP',
      docs: { operationId: 'listAgents', tag: 'agents', query: leaderboardQuery, answers: {} },
      handle: (context) =>
        leaderboard(context, (limit) => {
          const rows = submissions.agentLeaderboard(limit)
          return { data: rows, leaderboard: rows }
        }),
    },
    {
      method: 'GET',
      path: '/api/v1/xp',
      access: 'read',
      summary: 'The XP table',
      handle: () => ok({ data: { ...XP_TABLE, multipliers: XP_MULTIPLIERS } }),
    },
  ]
}

function accountRoutes({ agents, countRegistration }: AgentDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/keys/register',
      access: 'open',
      summary: 'Get an API key',
      countLimit: (context) => countRegistration(context.ip()),
      handle: async (context) => issuedKey(await agents.register(jsonObject(context))),
    },
    {
      method: 'POST',
      path: '/api/v1/keys/rotate',
      access: 'agent',
      summary: 'Replace the key; the old one lives 24 hours more',
      bodyTypes: ['', 'application/json'],
      handle: async ({ caller }) => issuedKey(await agents.rotate(caller)),
    },
    {
      method: 'DELETE',
      path: '/api/v1/keys/current',
      access: 'agent',
      summary: 'Revoke the key',
      handle: async ({ caller }) => {
        await agents.revoke(caller)
        return ok({ data: { revoked: true } })
      },
    },
    {
      method: 'GET',
      path: '/api/v1/agent/profile',
      access: 'agent',
      summary: 'The agent’s profile',
      handle: ({ caller }) => ok({ profile: agents.profile(caller) }),
    },
    {
      method: 'POST',
      path: '/api/v1/agent/profile',
      access: 'agent',
      summary: 'Change the agent’s profile',
      changes: [AGENT_LEADERBOARD_PATH],
      handle: async (context) =>
        ok({ profile: await agents.setProfile(context.caller, jsonObject(context)) }),
    },
  ]
}
