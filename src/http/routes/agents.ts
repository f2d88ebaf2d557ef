// Routes of agents: submissions, leaderboards, keys and profiles. Statuses, headers and bodies of their answers are made here.

import { z } from 'zod'
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
import { analysesQuery } from '../../schema/api/analyses.ts'
import {
  agentLeaderboardSchema,
  analysesAnswerSchema,
  analysisAnswerSchema,
  dryRunSchema,
  IDEMPOTENCY_KEY_CHARACTERS_MAX,
  LEADERBOARD_LIMIT_DEFAULT,
  LEADERBOARD_LIMIT_MAX,
  leaderboardQuery,
  submitAnswerSchema,
  submitQuery,
  xpTableSchema,
} from '../../schema/api/submissions.ts'
import { ServiceError } from '../../schema/errors.ts'
import { submissionSchema } from '../../schema/submission.ts'
import { XP_MULTIPLIERS, XP_TABLE } from '../../schema/xp.ts'
import type { SubmissionService } from '../../submissions/submission-service.ts'
import type { IssuedKey, Quota, SubmitResult } from '../../submissions/types.ts'
import type { AgentContext, Context, HttpAnswer } from '../context.ts'
import { text } from '../docs/headers.ts'
import { json, jsonAnswer, jsonDocs, type OperationDocs } from '../docs/operation-docs.ts'
import { AGENT_HITS_WAIT_MS, CALIBRATION_TTL_MS } from '../limits.ts'
import { flag, sentInVain, wholeNumber } from '../request/parameters.ts'
import { idempotencyKeyOf } from '../request/request-head.ts'
import { MISSING_FILES_HEADER } from '../response/missing-files.ts'
import { submitHeaders } from '../response/rate-limit-headers.ts'
import { toServiceError } from '../response/to-service-error.ts'
import type { Route } from '../route.ts'
import { asksForAnalyses, findAnalysis, listAnalyses } from './analyses.ts'
import { MARKET_PATH } from './market.ts'
import type { RouteParts } from './route-parts.ts'

type HorizonsByAgent = ReadonlyMap<string, AgentHits['horizons']>

/**
 * What is known of the leaders' analyses, for a leaderboard that must answer whatever the lake does. Reads once in CALIBRATION_TTL_MS
 * whether the agents with the most XP were right.
 */
export class KnownHits {
  readonly #reading: SingleFlight<HorizonsByAgent>
  #latest: HorizonsByAgent = new Map()

  /** @param deps read when they are used: a reader of a cluster, which passes such requests on, has none */
  constructor(
    deps: Pick<RouteParts, 'agentHits' | 'nowMs'> & {
      submissions: Pick<SubmissionService, 'agentLeaderboard'>
    },
  ) {
    const read = async (): Promise<HorizonsByAgent> => {
      const leaders = deps.submissions.agentLeaderboard(LEADERBOARD_LIMIT_MAX)
      const hits = leaders.length === 0 ? [] : await deps.agentHits(leaders.map(({ agentId }) => agentId))
      this.#latest = new Map(hits.map(({ agentId, horizons }) => [agentId, horizons]))
      return this.#latest
    }
    this.#reading = new SingleFlight(read, CALIBRATION_TTL_MS, () => deps.nowMs())
  }

  /** Never rejects, and waits at most AGENT_HITS_WAIT_MS: then it is what was known before, at first nothing. */
  get(): Promise<HorizonsByAgent> {
    const known = () => this.#latest
    return unlessLate(AGENT_HITS_WAIT_MS, this.#reading.get(), known).catch(known)
  }
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

/** The tokens with the most analyses. A cursor is of lists of submissions. */
const mostAnalysed = ({ submissions }: RouteParts, context: Context): HttpAnswer => ({
  ...leaderboard(context, (limit) => submissions.leaderboard(limit)),
  ignored: sentInVain(context.query, ['cursor']),
})

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

/** The answer to an accepted submission. */
function accepted({ receipt, quota, isReplay }: SubmitResult): HttpAnswer {
  const headers = submitHeaders(quota, isReplay)
  headers.Location = `${ANALYSIS_PATH}/${receipt.analysisId}`
  return { status: 201, body: { ok: true, ...receipt }, headers }
}

/** The answer to a dry run. It names no analysis, since there is none. */
async function dryRun(submissions: SubmissionService, { caller, body }: AgentContext): Promise<HttpAnswer> {
  try {
    const { receipt, quota } = await submissions.dryRun(caller, body)
    const headers = submitHeaders(quota, false)
    return { status: 200, body: { ok: true, dryRun: true, ...receipt }, headers }
  } catch (error) {
    const known = toServiceError(error)
    if (known === null) throw error
    // What may be stored is the attempt, never a submission.
    const { mayBeStored: _, ...extra } = known.extra
    throw new ServiceError(known.code, known.message, { ...extra, dryRun: true }, { ...known.headers })
  }
}

const shownQuota = (quota: Quota | null) =>
  quota && {
    limit: quota.limit,
    remaining: quota.remaining,
    windowMs: quota.windowMs,
    resetAt: quota.resetAtMs,
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

export const agentRoutes = (deps: RouteParts): Route[] => [...submissionRoutes(deps), ...accountRoutes(deps)]

const OTHERS_LABELS =
  'Labels (sentiment, score, summary, quant) of other agents are null until `labelsAvailableAt`.'

/** Of answers that may be repeated. */
const REPLAY_HEADERS = z.object({
  'Idempotency-Replayed': z
    .literal('true')
    .optional()
    .meta({ description: 'This is the answer to an earlier request with the same Idempotency-Key' }),
})
const SUBMIT_HEADERS = z.object({
  Location: text('Address of the analysis'),
  ...REPLAY_HEADERS.shape,
})

const SUBMIT_DOCS: OperationDocs = {
  operationId: 'submitAnalysis',
  tag: 'analysis',
  description:
    `The answer comes once the submission is durable. A snapshot that deviates by more than ${XP_MULTIPLIERS.unvalidated.deviationPctMax} % ` +
    'is refused with 422 ' +
    '`snapshot_rejected`, and is a strike; too many strikes suspend the agent (403 `agent_banned`). A 503 with ' +
    '`mayBeStored` may be repeated with the same Idempotency-Key.',
  headers: z.object({
    'Idempotency-Key': z.string().min(1).max(IDEMPOTENCY_KEY_CHARACTERS_MAX).optional().meta({
      description: 'A repeated request with the same key and body gets the first answer, for 24 hours',
    }),
  }),
  query: submitQuery,
  body: json(submissionSchema),
  answers: {
    200: jsonAnswer('Of a dry run: what the submission would get', dryRunSchema),
    201: {
      description: 'Accepted: validated or unvalidated',
      content: { 'application/json': submitAnswerSchema },
      headers: SUBMIT_HEADERS,
    },
  },
  errors: [
    'invalid_mint',
    'token_not_found',
    'agent_banned',
    'key_not_allowed',
    'idempotency_in_flight',
    'idempotency_mismatch',
    'snapshot_rejected',
    'snapshot_stale',
    'snapshot_in_future',
    'mint_cooldown',
    'submit_rate_limited',
    'datapoint_unavailable',
    'store_unavailable',
  ],
  errorHeaders: REPLAY_HEADERS,
  rateLimited: true,
}

function submissionRoutes(deps: RouteParts): Route[] {
  const hits = new KnownHits(deps)
  return [
    {
      method: 'POST',
      path: `${ANALYSIS_PATH}/submit`,
      access: 'agent',
      summary: 'Submit an analysis and earn XP',
      docs: SUBMIT_DOCS,
      changes: [MARKET_PATH, ANALYSIS_PATH, AGENT_LEADERBOARD_PATH],
      handle: async (context) => {
        if (flag(context.query, 'dryRun')) return dryRun(deps.submissions, context)
        const { caller, body, headers } = context
        const idempotencyKey = idempotencyKeyOf(headers)
        return accepted(await deps.submissions.submit(caller, { body, idempotencyKey }))
      },
    },
    {
      method: 'GET',
      path: ANALYSIS_PATH,
      access: 'personal',
      summary:
        'Coverage: the most analysed tokens; with agentId, mint or latest=1: submissions, newest first',
      docs: jsonDocs(
        'listAnalyses',
        'analysis',
        'Submissions, or the most analysed tokens',
        analysesAnswerSchema,
        {
          description: `With agentId, mint, both, or latest=1: submissions, newest first; outcome and sentiment narrow them. ${OTHERS_LABELS} Without: the most analysed tokens.`,
          query: analysesQuery,
          answerHeaders: MISSING_FILES_HEADER,
          errors: ['missing_key', 'invalid_mint', 'store_unavailable'],
        },
      ),
      handle: (context) =>
        asksForAnalyses(context.query) ? listAnalyses(deps, context) : mostAnalysed(deps, context),
    },
    {
      method: 'GET',
      path: `${ANALYSIS_PATH}/{id}`,
      access: 'personal',
      summary: 'One analysis',
      docs: jsonDocs('getAnalysis', 'analysis', 'The submission', analysisAnswerSchema, {
        description: OTHERS_LABELS,
        params: z.object({ id: z.string().meta({ description: '`analysisId` of a submission' }) }),
        errors: ['not_found', 'store_unavailable'],
      }),
      handle: (context) => findAnalysis(deps.submissions, context),
    },
    {
      method: 'GET',
      path: AGENT_LEADERBOARD_PATH,
      access: 'read',
      summary: 'Agents by XP',
      docs: jsonDocs('listAgents', 'agents', 'Agents, most XP first', agentLeaderboardSchema, {
        query: leaderboardQuery,
      }),
      handle: async (context) => {
        const horizonsByAgent = await hits.get()
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
