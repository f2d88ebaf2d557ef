// Reads of submissions: one of them, and lists by agent and mint.

import { ANALYSES_LIMIT_DEFAULT, ANALYSES_LIMIT_MAX } from '../../schema/api/analyses.ts'
import type { SubmissionKey } from '../../schema/api/submission-list.ts'
import { ServiceError } from '../../schema/errors.ts'
import { isAnalysisId } from '../../schema/submission.ts'
import { OUTCOMES, type Outcome, SENTIMENTS, type Sentiment } from '../../schema/vocabulary.ts'
import type { SubmissionService } from '../../submissions/submission-service.ts'
import type { AnalysisPage, Caller } from '../../submissions/types.ts'
import { type HttpAnswer, okData, type Query, type ReaderContext } from '../context.ts'
import { checkMint, flag, invalidParameter, oneOf, readAll, wholeNumber } from '../request/parameters.ts'
import { missingFiles } from '../response/missing-files.ts'
import type { RouteParts } from './route-parts.ts'

const ME = 'me'
const AGENT_ID = /^[\w-]{1,64}$/

/** What a list shows only: null is everything. */
interface Filter {
  outcome: Outcome | null
  sentiment: Sentiment | null
}

/** Whether the query asks for a list of submissions. */
export const asksForAnalyses = (query: Query): boolean =>
  flag(query, 'latest') ||
  ['agentId', 'mint', 'outcome', 'sentiment'].some((name) => (query.get(name) ?? '') !== '')

/** One analysis, or 404. */
export async function findAnalysis(
  submissions: SubmissionService,
  { id, caller }: ReaderContext,
): Promise<HttpAnswer> {
  const data = await submissions.analysis(id, caller)
  if (data === null) throw new ServiceError('not_found', `There is no analysis ${id.slice(0, 64)}.`)
  return okData(data)
}

/** A page of the submissions of an agent, on a mint, or of all, newest first. */
export async function listAnalyses(deps: RouteParts, { query, caller }: ReaderContext): Promise<HttpAnswer> {
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
