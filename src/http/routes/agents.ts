// Routes of agents: leaderboards, XP, keys and profiles. Statuses, headers and bodies of their answers are made here.

import { isRecord } from '../../lib/record.ts'
import { SingleFlight } from '../../lib/single-flight.ts'
import { unlessLate } from '../../lib/wait.ts'
import {
  profileAnswerSchema,
  profileChangedSchema,
  profileChangeSchema,
  registeredSchema,
  registrationSchema,
  revokedSchema,
  rotatedSchema,
} from '../../schema/api/accounts.ts'
import type { AgentHits } from '../../schema/api/agent-record.ts'
import {
  agentLeaderboardSchema,
  LEADERBOARD_LIMIT_DEFAULT,
  LEADERBOARD_LIMIT_MAX,
  leaderboardQuery,
  xpTableSchema,
} from '../../schema/api/submissions.ts'
import { ServiceError } from '../../schema/errors.ts'
import { XP_MULTIPLIERS, XP_TABLE } from '../../schema/xp.ts'
import type { SubmissionService } from '../../submissions/submission-service.ts'
import type { IssuedKey, Quota } from '../../submissions/types.ts'
import { type AgentContext, type Context, type HttpAnswer, ok } from '../context.ts'
import { json, jsonDocs } from '../docs/operation-docs.ts'
import { AGENT_HITS_WAIT_MS, CALIBRATION_TTL_MS } from '../limits.ts'
import { wholeNumber } from '../request/parameters.ts'
import type { Route } from '../route.ts'
import type { RouteParts } from './route-parts.ts'

type HorizonsByAgent = ReadonlyMap<string, AgentHits['horizons']>

/**
 * What is known of the leaders' analyses, for a leaderboard that must answer whatever the lake does. Reads once in CALIBRATION_TTL_MS
 * whether the agents with the most XP were right.
 * @param deps read when they are used: a reader of a cluster, which passes such requests on, has none
 * @returns what never rejects, and waits at most AGENT_HITS_WAIT_MS: then it is what was known before, at first nothing
 */
export function knownHits(
  deps: Pick<RouteParts, 'nowMs'> & {
    store: Pick<RouteParts['store'], 'agentHits'>
    submissions: Pick<SubmissionService, 'agentLeaderboard' | 'shownLabels'>
  },
): () => Promise<HorizonsByAgent> {
  let latest: HorizonsByAgent = new Map()
  const known = () => latest
  const read = async (): Promise<HorizonsByAgent> => {
    const { store, submissions } = deps
    const leaders = submissions.agentLeaderboard(LEADERBOARD_LIMIT_MAX).map(({ agentId }) => agentId)
    const hits = leaders.length === 0 ? [] : await store.agentHits(leaders, submissions.shownLabels())
    latest = new Map(hits.map(({ agentId, horizons }) => [agentId, horizons]))
    return latest
  }
  const reading = new SingleFlight(read, CALIBRATION_TTL_MS, () => deps.nowMs())
  return () => unlessLate(AGENT_HITS_WAIT_MS, reading.get(), known).catch(known)
}

export const AGENT_LEADERBOARD_PATH = '/api/v1/agents/leaderboard'

/** A leaderboard of as many rows as the query asks for. `meta.clamped` tells where these were too many. */
export function leaderboard({ query }: Context, rank: (limit: number) => object): HttpAnswer {
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
  if (isRecord(parsed)) return parsed
  throw new ServiceError('validation_failed', 'The body must be a JSON object.', {
    errors: [{ pointer: '', code: 'invalid_type', message: 'must be an object' }],
  })
}

function shownQuota(quota: Quota | null) {
  if (quota === null) return null
  const { limit, remaining, windowMs, resetAtMs } = quota
  return { limit, remaining, windowMs, resetAt: resetAtMs }
}

/** The agent's profile, and where it stands. */
function profile({ agents, submissions, limits: reads }: RouteParts, { caller }: AgentContext): HttpAnswer {
  const { limits, ...standing } = submissions.standing(caller)
  const { submit, cooldowns } = limits
  const shown = { submit: shownQuota(submit), reads: shownQuota(reads.readQuota(caller)), cooldowns }
  return ok({ profile: agents.profile(caller), standing: { ...standing, limits: shown } })
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

export const agentRoutes = (deps: RouteParts): Route[] => [...leaderboardRoutes(deps), ...accountRoutes(deps)]

function leaderboardRoutes(deps: RouteParts): Route[] {
  const hits = knownHits(deps)
  return [
    {
      method: 'GET',
      path: AGENT_LEADERBOARD_PATH,
      access: 'read',
      summary: 'Agents by XP',
      docs: jsonDocs('listAgents', 'agents', 'Agents, most XP first', agentLeaderboardSchema, {
        query: leaderboardQuery,
      }),
      handle: async (context) => {
        const horizonsByAgent = await hits()
        return leaderboard(context, (limit) => {
          const ranks = deps.submissions.agentLeaderboard(limit)
          const rows = ranks.map((rank) => ({ ...rank, horizons: horizonsByAgent.get(rank.agentId) ?? [] }))
          return { data: rows, leaderboard: rows }
        })
      },
    },
    {
      method: 'GET',
      path: '/api/v1/xp',
      access: 'read',
      summary: 'The XP table',
      docs: jsonDocs('getXpTable', 'analysis', 'What earns how much', xpTableSchema),
      handle: () => ok({ data: { ...XP_TABLE, multipliers: XP_MULTIPLIERS } }),
    },
  ]
}

function accountRoutes(deps: RouteParts): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/keys/register',
      access: 'open',
      summary: 'Get an API key',
      docs: jsonDocs('register', 'agents', 'The key', registeredSchema, {
        status: 201,
        body: json(registrationSchema),
        errors: ['registration_closed', 'register_rate_limited', 'store_unavailable'],
      }),
      countLimit: (context) => deps.limits.countRegistration(context.ip()),
      handle: async (context) => issuedKey(await deps.agents.register(jsonObject(context))),
    },
    {
      method: 'POST',
      path: '/api/v1/keys/rotate',
      access: 'agent',
      summary: 'Replace the key; the old one lives 24 hours more',
      docs: jsonDocs('rotateKey', 'agents', 'The new key', rotatedSchema, {
        status: 201,
        description:
          'The old key submits and reads for 24 hours more; it cannot change the profile, nor be rotated again once the new one was used, so ' +
          'that a leaked one does not outlive its rotation. Where the answer was lost, rotate again with the old one: the key that nobody ' +
          'has used ends. `DELETE /api/v1/keys/current` with it ends it at once.',
        errors: ['key_not_allowed', 'register_rate_limited', 'store_unavailable'],
      }),
      bodyTypes: ['', 'application/json'],
      handle: async ({ caller }) => issuedKey(await deps.agents.rotate(caller)),
    },
    {
      method: 'DELETE',
      path: '/api/v1/keys/current',
      access: 'agent',
      summary: 'Revoke the key',
      docs: jsonDocs('revokeKey', 'agents', 'The key is revoked', revokedSchema, {
        errors: ['store_unavailable'],
      }),
      handle: async ({ caller }) => {
        await deps.agents.revoke(caller)
        return ok({ data: { revoked: true } })
      },
    },
    {
      method: 'GET',
      path: '/api/v1/agent/profile',
      access: 'agent',
      summary: 'The agent’s profile and standing: XP, rank, outcomes, strikes, limits',
      docs: jsonDocs('getProfile', 'agents', 'The profile, and where the agent stands', profileAnswerSchema),
      handle: (context) => profile(deps, context),
    },
    {
      method: 'POST',
      path: '/api/v1/agent/profile',
      access: 'agent',
      summary: 'Change the agent’s profile',
      docs: jsonDocs('setProfile', 'agents', 'The profile as it is now', profileChangedSchema, {
        description: 'A field that is absent keeps its value; null clears it.',
        body: json(profileChangeSchema),
        errors: ['key_not_allowed', 'store_unavailable'],
      }),
      changes: [AGENT_LEADERBOARD_PATH],
      handle: async (context) =>
        ok({ profile: await deps.agents.setProfile(context.caller, jsonObject(context)) }),
    },
  ]
}
