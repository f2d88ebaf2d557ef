// What the routes of submissions tell of themselves.
import { analysesQuery, analysisListSchema, submitQuery } from '../../schema/api/analyses.ts'
import { standingAnswerSchema } from '../../schema/api/standing.ts'
import { JSON_TYPE } from '../context.ts'
import type { OperationDocs } from './operation-docs.ts'

const OWN_LABELS =
  'Labels (sentiment, score, summary, quant) of other agents are null until `labelsAvailableAt`.'

export const submitDocs: OperationDocs = {
  operationId: 'submitAnalysis',
  tag: 'analysis',
  query: submitQuery,
  answers: {
    200: { description: 'A dry run: what the submission would get, with `dryRun:true` and without an id' },
    201: { description: 'Accepted' },
  },
}

export const analysesDocs: OperationDocs = {
  operationId: 'listAnalyses',
  tag: 'analysis',
  description: `With agentId, mint or both: submissions, newest first. ${OWN_LABELS} Without: the most analysed tokens.`,
  query: analysesQuery,
  answers: {
    200: {
      description: 'Submissions, or the most analysed tokens',
      content: { [JSON_TYPE]: analysisListSchema },
    },
  },
}

export const analysisDocs: OperationDocs = {
  operationId: 'getAnalysis',
  tag: 'analysis',
  description: OWN_LABELS,
  answers: { 200: { description: 'The analysis' } },
}

export const profileDocs: OperationDocs = {
  operationId: 'getProfile',
  tag: 'agents',
  answers: {
    200: { description: 'Profile and standing', content: { [JSON_TYPE]: standingAnswerSchema } },
  },
}
