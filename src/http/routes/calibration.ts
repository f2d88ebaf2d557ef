import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { SingleFlight } from '../../lib/single-flight.ts'
import { type AgentRecord, agentRecordAnswerSchema, agentRecordQuery } from '../../schema/api/agent-record.ts'
import {
  CALIBRATION_AGENTS_MIN,
  CALIBRATION_SUBMISSIONS_MIN,
  calibrationAnswerSchema,
} from '../../schema/api/calibration.ts'
import { ServiceError } from '../../schema/errors.ts'
import { okData } from '../context.ts'
import { jsonDocs } from '../docs/operation-docs.ts'
import { AGENT_RECORDS_CACHED_MAX, CALIBRATION_TTL_MS } from '../limits.ts'
import { invalidParameter } from '../request/parameters.ts'
import { MISSING_FILES_HEADER, missingFiles } from '../response/missing-files.ts'
import type { PersonalRoute, PlainRoute } from '../route.ts'
import type { RouteParts } from './route-parts.ts'
import { parseAgentId } from './submissions.ts'

/** What one computation gives serves all who ask for it meanwhile. */
const computed = <Value>(deps: RouteParts, compute: () => Promise<Value>): SingleFlight<Value> =>
  new SingleFlight(compute, CALIBRATION_TTL_MS, () => deps.nowMs())

export function calibrationRoute(deps: RouteParts): PlainRoute {
  const calibration = computed(deps, () => deps.store.calibration(deps.submissions.shownLabels()))
  return {
    method: 'GET',
    path: '/api/v1/calibration',
    access: 'read',
    summary: 'Sentiments and scores against what the price did afterwards',
    docs: jsonDocs(
      'getCalibration',
      'analysis',
      'Groups by sentiment and by score',
      calibrationAnswerSchema,
      {
        description:
          'Mean returns after accepted submissions of the last 30 days whose labels anybody may see, with 95 % intervals. A token counts once in each group. ' +
          `Groups of fewer than ${CALIBRATION_SUBMISSIONS_MIN} submissions or ${CALIBRATION_AGENTS_MIN} agents are left out. Computed once a minute.`,
        answerHeaders: MISSING_FILES_HEADER,
        errors: ['store_unavailable'],
      },
    ),
    handle: async () => ({
      ...okData(await calibration.get()),
      headers: missingFiles(deps, 'training', 'outcomes'),
    }),
  }
}

export function agentRecordRoute(deps: RouteParts): PersonalRoute {
  const records = new BoundedMap<string, SingleFlight<AgentRecord>>({ entriesMax: AGENT_RECORDS_CACHED_MAX })
  const compute = async (agentId: string): Promise<AgentRecord> => {
    const record = await deps.store.agentRecord(agentId, deps.submissions.shownLabels())
    return { ...record, name: deps.agents.name(agentId) }
  }
  const recordOf = (agentId: string): Promise<AgentRecord> => {
    if (!deps.agents.has(agentId)) throw new ServiceError('not_found', `There is no agent ${agentId}.`)
    const record = records.get(agentId) ?? computed(deps, () => compute(agentId))
    records.set(agentId, record)
    return record.get()
  }
  return {
    method: 'GET',
    path: '/api/v1/agents/record',
    access: 'personal',
    summary: 'What became of an agent’s analyses: hit rate, mean return, calibration, XP over time',
    docs: jsonDocs('getAgentRecord', 'agents', 'The record', agentRecordAnswerSchema, {
      description:
        'Of the last 30 days, and of submissions whose labels anybody may see. A bullish or bearish submission is a hit where the ' +
        'price went that way. Computed once a minute.',
      query: agentRecordQuery,
      answerHeaders: MISSING_FILES_HEADER,
      errors: ['missing_key', 'not_found', 'store_unavailable'],
    }),
    handle: async ({ query, caller }) => {
      const agentId = parseAgentId(query.get('agentId') || null, caller)
      if (agentId === null) throw invalidParameter('agentId', 'must be me or an agent')
      const headers = missingFiles(deps, 'training', 'rejections', 'outcomes', 'xp_ledger')
      return { ...okData(await recordOf(agentId)), headers }
    },
  }
}
