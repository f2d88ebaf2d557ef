// Reads of submissions: one of them, and lists by agent and mint.

import type { SubmissionKey } from '../../schema/api/submission-list.ts'
import { ServiceError } from '../../schema/errors.ts'
import { isAnalysisId } from '../../schema/submission.ts'
import type { Caller, Submissions } from '../../submissions/types.ts'
import type { HttpAnswer, Query, ReaderContext } from '../context.ts'
import { ANALYSES_LIMIT_DEFAULT, ANALYSES_LIMIT_MAX } from '../limits.ts'
import { checkMint, invalidParameter, readAll, wholeNumber } from '../request/parameters.ts'

const ME = 'me'
const AGENT_ID = /^[\w-]{1,64}$/

/** Whether the query asks for a list of submissions. */
export const asksForAnalyses = (query: Query): boolean =>
  [query.get('agentId'), query.get('mint')].some((value) => value !== null && value !== '')

/** One analysis, or 404. */
export async function findAnalysis(
  submissions: Submissions,
  { id, caller }: ReaderContext,
): Promise<HttpAnswer> {
  const data = await submissions.analysis(id, caller)
  if (data === null) throw new ServiceError('not_found', `There is no analysis ${id.slice(0, 64)}.`)
  return { status: 200, body: { ok: true, data } }
}

/** A page of the submissions of an agent, on a mint, or both, newest first. */
export async function listAnalyses(
  submissions: Submissions,
  { query, caller }: ReaderContext,
): Promise<HttpAnswer> {
  const bounds = { min: 1, max: ANALYSES_LIMIT_MAX, otherwise: ANALYSES_LIMIT_DEFAULT }
  const mint = query.get('mint') || null
  const { limit: limits, ...wanted } = readAll({
    limit: () => wholeNumber(query, 'limit', bounds),
    agentId: () => parseAgentId(query.get('agentId') || null, caller),
    mint: () => (mint === null ? null : checkMint(mint)),
    before: () => parseCursor(query.get('cursor') || null),
  })
  const { value: limit, clamped } = limits
  const { analyses, next, searchedToMs } = await submissions.analyses({ ...wanted, limit }, caller)
  const meta = {
    limit,
    nextCursor: next === null ? null : formatCursor(next),
    searchedTo: searchedToMs,
    ...(clamped && { clamped: { limit: ANALYSES_LIMIT_MAX } }),
  }
  return { status: 200, body: { ok: true, data: analyses, meta } }
}

function parseAgentId(sent: string | null, caller: Caller | null): string | null {
  if (sent === ME) {
    if (caller !== null) return caller.agent.agentId
    throw new ServiceError(
      'missing_key',
      'agentId=me needs a key: send Authorization: Bearer <API_KEY>.',
      {},
      { 'WWW-Authenticate': 'Bearer' },
    )
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
