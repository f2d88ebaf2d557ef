// In: submissions, registrations and what agents ask of themselves. Out: the submission service's answers. Never judges.

import { ServiceError } from '../../schema/errors.ts'
import { XP_MULTIPLIERS, XP_TABLE } from '../../schema/xp.ts'
import type { Agents, SubmissionService } from '../../submissions/types.ts'
import type { Context, HttpAnswer } from '../context.ts'
import { LEADERBOARD_LIMIT_DEFAULT, LEADERBOARD_LIMIT_MAX } from '../limits.ts'
import { wholeNumber } from '../request/parameters.ts'
import type { Route } from '../route.ts'
import { MARKET_PATH } from './market.ts'

export interface AgentDeps {
  agents: Agents
  submissions: SubmissionService
  /** Counts a registration from an address, or throws 429. */
  countRegistration(ip: string): Record<string, string>
}

/** A board of as many rows as are asked for; says so where there are fewer. */
function leaderboardOf(
  { query }: Context,
  leaderboard: (limit: number) => Record<string, unknown>,
): HttpAnswer {
  const bounds = { min: 1, max: LEADERBOARD_LIMIT_MAX, otherwise: LEADERBOARD_LIMIT_DEFAULT }
  const { value, clamped } = wholeNumber(query, 'limit', bounds)
  const meta = clamped && { meta: { clamped: { limit: LEADERBOARD_LIMIT_MAX } } }
  return { status: 200, body: { ...leaderboard(value), ...meta } }
}

/** A small JSON object from a body, or `invalid_json`. */
export function jsonObject({ body }: Context): Record<string, unknown> {
  let parsed: unknown
  try {
    parsed = body.length === 0 ? {} : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new ServiceError('invalid_json', 'The body is not valid JSON in UTF-8.')
  }
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
    return parsed as Record<string, unknown>
  throw new ServiceError('validation_failed', 'The body must be a JSON object.', {
    errors: [{ pointer: '', code: 'invalid_type', message: 'must be an object' }],
  })
}

const ok = (body: Record<string, unknown>): HttpAnswer => ({ status: 200, body: { ok: true, ...body } })

export function agentRoutes({ agents, submissions, countRegistration }: AgentDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/analysis/submit',
      access: 'agent',
      summary: 'Submit an analysis and earn XP',
      changes: [MARKET_PATH, '/api/v1/analysis', '/api/v1/agents/leaderboard'],
      handle: ({ caller, body, headers }) =>
        submissions.submit(caller, { body, idempotencyKey: headers.idempotencyKey || null }),
    },
    {
      method: 'GET',
      path: '/api/v1/analysis',
      access: 'read',
      summary: 'Coverage: the most analysed tokens',
      handle: (context) => leaderboardOf(context, submissions.leaderboard),
    },
    {
      method: 'GET',
      path: '/api/v1/analysis/{id}',
      access: 'read',
      summary: 'One analysis',
      handle: async ({ id }) => {
        const data = await submissions.analysis(id)
        if (data === null) throw new ServiceError('not_found', `There is no analysis ${id.slice(0, 64)}.`)
        return ok({ data })
      },
    },
    {
      method: 'GET',
      path: '/api/v1/agents/leaderboard',
      access: 'read',
      summary: 'Agents by XP',
      handle: (context) => leaderboardOf(context, submissions.agentLeaderboard),
    },
    {
      method: 'GET',
      path: '/api/v1/xp',
      access: 'read',
      summary: 'The XP table',
      handle: () => ok({ data: { ...XP_TABLE, multipliers: XP_MULTIPLIERS } }),
    },
    {
      method: 'POST',
      path: '/api/v1/keys/register',
      access: 'open',
      summary: 'Get an API key',
      countLimit: (context) => countRegistration(context.ip()),
      handle: (context) => agents.register(jsonObject(context)),
    },
    {
      method: 'POST',
      path: '/api/v1/keys/rotate',
      access: 'agent',
      summary: 'Replace the key; the old one lives 24 hours more',
      bodyTypes: ['', 'application/json'],
      handle: ({ caller }) => agents.rotate(caller),
    },
    {
      method: 'DELETE',
      path: '/api/v1/keys/current',
      access: 'agent',
      summary: 'Revoke the key',
      handle: ({ caller }) => agents.revoke(caller),
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
      changes: ['/api/v1/agents/leaderboard'],
      handle: async (context) =>
        ok({ profile: await agents.setProfile(context.caller, jsonObject(context)) }),
    },
  ]
}
