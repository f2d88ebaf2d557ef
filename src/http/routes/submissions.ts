// Submissions: sending one, one of them, and lists by agent and mint or of the most analysed tokens.

import { z } from 'zod'
import type { SubmissionKey } from '../../schema/api/submission-list.ts'
import {
  ANALYSES_LIMIT_DEFAULT,
  ANALYSES_LIMIT_MAX,
  analysesAnswerSchema,
  analysesQuery,
  analysisAnswerSchema,
  dryRunSchema,
  IDEMPOTENCY_KEY_CHARACTERS_MAX,
  submitAnswerSchema,
  submitQuery,
} from '../../schema/api/submissions.ts'
import { ServiceError } from '../../schema/errors.ts'
import { isAnalysisId, submissionSchema } from '../../schema/submission.ts'
import { OUTCOMES, type Outcome, SENTIMENTS, type Sentiment } from '../../schema/vocabulary.ts'
import { XP_MULTIPLIERS } from '../../schema/xp.ts'
import type { SubmissionService } from '../../submissions/submission-service.ts'
import type { AnalysisPage, Caller, SubmitResult } from '../../submissions/types.ts'
import {
  type AgentContext,
  type Context,
  type HttpAnswer,
  ok,
  okData,
  type Query,
  type ReaderContext,
} from '../context.ts'
import { text } from '../docs/headers.ts'
import { json, jsonAnswer, jsonDocs, type OperationDocs } from '../docs/operation-docs.ts'
import {
  checkMint,
  flag,
  invalidParameter,
  oneOf,
  readAll,
  sentInVain,
  wholeNumber,
} from '../request/parameters.ts'
import { idempotencyKeyOf } from '../request/request-head.ts'
import { MISSING_FILES_HEADER, missingFiles } from '../response/missing-files.ts'
import { submitHeaders } from '../response/rate-limit-headers.ts'
import { toServiceError } from '../response/to-service-error.ts'
import type { Route } from '../route.ts'
import { AGENT_LEADERBOARD_PATH, leaderboard } from './agents.ts'
import { MARKET_PATH } from './market.ts'
import type { RouteParts } from './route-parts.ts'

const ANALYSIS_PATH = '/api/v1/analysis'
const ME = 'me'
const AGENT_ID = /^[\w-]{1,64}$/

/** What a list shows only: null is everything. */
interface Filter {
  outcome: Outcome | null
  sentiment: Sentiment | null
}

/** Whether the query asks for a list of submissions. */
const asksForAnalyses = (query: Query): boolean =>
  flag(query, 'latest') ||
  ['agentId', 'mint', 'outcome', 'sentiment'].some((name) => (query.get(name) ?? '') !== '')

/** One analysis, or 404. */
async function findAnalysis(
  submissions: SubmissionService,
  { id, caller }: ReaderContext,
): Promise<HttpAnswer> {
  const data = await submissions.analysis(id, caller)
  if (data === null) throw new ServiceError('not_found', `There is no analysis ${id.slice(0, 64)}.`)
  return okData(data)
}

/** A page of the submissions of an agent, on a mint, or of all, newest first. */
async function listAnalyses(deps: RouteParts, { query, caller }: ReaderContext): Promise<HttpAnswer> {
  const bounds = { min: 1, max: ANALYSES_LIMIT_MAX, otherwise: ANALYSES_LIMIT_DEFAULT }
  const mint = query.get('mint') || null
  const {
    limit: limits,
    filter,
    ...wanted
  } = readAll({
    limit: () => wholeNumber(query, 'limit', bounds),
    agentId: () => parseAgentId(query.get('agentId') || null, caller),
    mint: () => (mint === null ? null : checkMint(mint)),
    before: () => parseCursor(query.get('cursor') || null),
    filter: () => ({
      outcome: oneOf(query, 'outcome', ['', ...OUTCOMES], '') || null,
      sentiment: oneOf(query, 'sentiment', ['', ...SENTIMENTS], '') || null,
    }),
  })
  const { value: limit, clamped } = limits
  const isFiltered = filter.outcome !== null || filter.sentiment !== null
  // What is filtered is searched further: a page may still be short, and the next one goes on.
  const searched = { ...wanted, limit: isFiltered ? ANALYSES_LIMIT_MAX : limit }
  const page = await deps.submissions.analyses(searched, caller)
  const { analyses, next, searchedToMs } = isFiltered ? filtered(page, filter, limit) : page
  const meta = {
    limit,
    nextCursor: next === null ? null : formatCursor(next),
    searchedTo: searchedToMs,
    ...(clamped && { clamped: { limit: ANALYSES_LIMIT_MAX } }),
  }
  const data = analyses.map((analysis) => ({
    ...analysis,
    agentName: deps.agents.name(analysis.agentId),
    symbol: deps.market.profile(analysis.mint)?.symbol ?? null,
  }))
  const headers = missingFiles(deps, 'training', 'rejections', 'xp_ledger', 'outcomes')
  return { ...okData(data, { meta }), headers }
}

/** Those of a page that a filter takes, as the reader sees them, `limit` at most; the next page begins behind the last of them. */
function filtered(page: AnalysisPage, { outcome, sentiment }: Filter, limit: number): AnalysisPage {
  const taken = page.analyses.filter(
    (analysis) =>
      (outcome === null || analysis.outcome === outcome) &&
      (sentiment === null || analysis.sentiment === sentiment),
  )
  const shown = taken.slice(0, limit)
  const last = shown.at(-1)
  if (taken.length <= limit || last === undefined) return { ...page, analyses: shown }
  const { createdAt: searchedToMs, analysisId } = last
  return { analyses: shown, next: { submittedAtMs: searchedToMs, analysisId }, searchedToMs }
}

/** The agent that `agentId` names; `me` is the caller. @throws ServiceError `missing_key`, `invalid_parameter`. */
export function parseAgentId(sent: string | null, caller: Caller | null): string | null {
  if (sent === ME) {
    if (caller !== null) return caller.agent.agentId
    throw new ServiceError('missing_key', 'agentId=me needs a key: send Authorization: Bearer <API_KEY>.')
  }
  if (sent !== null && !AGENT_ID.test(sent)) throw invalidParameter('agentId', 'is neither me nor an agent')
  return sent
}

const formatCursor = ({ submittedAtMs, analysisId }: SubmissionKey): string =>
  Buffer.from(`${submittedAtMs}.${analysisId}`).toString('base64url')

/** @throws ServiceError `invalid_parameter`. */
function parseCursor(sent: string | null): SubmissionKey | null {
  if (sent === null) return null
  const match = /^(\d{1,15})\.(\w*)$/.exec(Buffer.from(sent, 'base64url').toString('latin1'))
  const [, time = '', analysisId = ''] = match ?? []
  if (time === '' || !(analysisId === '' || isAnalysisId(analysisId)))
    throw invalidParameter('cursor', 'is not a cursor of this service')
  return { submittedAtMs: Number(time), analysisId }
}

/** The tokens with the most analyses. A cursor is of lists of submissions. */
const mostAnalysed = ({ submissions }: RouteParts, context: Context): HttpAnswer => ({
  ...leaderboard(context, (limit) => submissions.leaderboard(limit)),
  ignored: sentInVain(context.query, ['cursor']),
})

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
    return { ...ok({ dryRun: true, ...receipt }), headers: submitHeaders(quota, false) }
  } catch (error) {
    const known = toServiceError(error)
    if (known === null) throw error
    // What may be stored is the attempt, never a submission.
    const { mayBeStored: _, ...extra } = known.extra
    throw new ServiceError(known.code, known.message, { ...extra, dryRun: true }, { ...known.headers })
  }
}

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

export const submissionRoutes = (deps: RouteParts): Route[] => [
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
    summary: 'Coverage: the most analysed tokens; with agentId, mint or latest=1: submissions, newest first',
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
]
