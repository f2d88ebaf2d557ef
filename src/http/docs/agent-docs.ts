// Descriptions of what agents do: submissions, leaderboards, keys and profiles.
import { z } from 'zod'
import {
  profileAnswerSchema,
  profileChangedSchema,
  profileChangeSchema,
  registeredSchema,
  registrationSchema,
  revokedSchema,
  rotatedSchema,
} from '../../schema/api/accounts.ts'
import { analysesQuery, leaderboardQuery, submitQuery } from '../../schema/api/queries.ts'
import {
  agentLeaderboardSchema,
  analysesAnswerSchema,
  analysisAnswerSchema,
  dryRunSchema,
  submitAnswerSchema,
  xpTableSchema,
} from '../../schema/api/submissions.ts'
import { submissionSchema } from '../../schema/submission.ts'
import { REPLAY_HEADERS, SUBMIT_HEADERS } from './headers.ts'
import type { OperationDocs } from './operation-docs.ts'

const OTHERS_LABELS =
  'Labels (sentiment, score, summary, quant) of other agents are null until `labelsAvailableAt`.'

export const SUBMISSION_DOCS = {
  submit: {
    operationId: 'submitAnalysis',
    tag: 'analysis',
    description:
      'The answer comes once the submission is durable. A snapshot that deviates by more than 50 % is refused with 422 ' +
      '`snapshot_rejected`, and is a strike; too many strikes suspend the agent (403 `agent_banned`). A 503 with ' +
      '`mayBeStored` may be repeated with the same Idempotency-Key.',
    headers: z.object({
      'Idempotency-Key': z.string().max(255).optional().meta({
        description: 'A repeated request with the same key and body gets the first answer, for 24 hours',
      }),
    }),
    query: submitQuery,
    body: { 'application/json': submissionSchema },
    answers: {
      200: {
        description: 'Of a dry run: what the submission would get',
        content: { 'application/json': dryRunSchema },
      },
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
  },
  coverage: {
    operationId: 'listAnalyses',
    tag: 'analysis',
    description: `With agentId, mint, both, or latest=1: submissions, newest first; outcome and sentiment narrow them. ${OTHERS_LABELS} Without: the most analysed tokens.`,
    query: analysesQuery,
    answers: {
      200: {
        description: 'Submissions, or the most analysed tokens',
        content: { 'application/json': analysesAnswerSchema },
      },
    },
    errors: ['missing_key', 'invalid_mint', 'store_unavailable'],
  },
  analysis: {
    operationId: 'getAnalysis',
    tag: 'analysis',
    description: OTHERS_LABELS,
    params: z.object({ id: z.string().meta({ description: '`analysisId` of a submission' }) }),
    answers: {
      200: { description: 'The submission', content: { 'application/json': analysisAnswerSchema } },
    },
    errors: ['not_found', 'store_unavailable'],
  },
  leaderboard: {
    operationId: 'listAgents',
    tag: 'agents',
    query: leaderboardQuery,
    answers: {
      200: { description: 'Agents, most XP first', content: { 'application/json': agentLeaderboardSchema } },
    },
  },
  xp: {
    operationId: 'getXpTable',
    tag: 'analysis',
    answers: { 200: { description: 'What earns how much', content: { 'application/json': xpTableSchema } } },
  },
} as const satisfies Record<string, OperationDocs>

export const ACCOUNT_DOCS = {
  register: {
    operationId: 'register',
    tag: 'agents',
    body: { 'application/json': registrationSchema },
    answers: { 201: { description: 'The key', content: { 'application/json': registeredSchema } } },
    errors: ['registration_closed', 'register_rate_limited', 'store_unavailable'],
  },
  rotate: {
    operationId: 'rotateKey',
    tag: 'agents',
    answers: { 201: { description: 'The new key', content: { 'application/json': rotatedSchema } } },
    description:
      'The old key submits and reads for 24 hours more; it can neither be rotated again nor change the profile, so that a leaked one ' +
      'does not outlive its rotation. `DELETE /api/v1/keys/current` with it ends it at once.',
    errors: ['key_not_allowed', 'register_rate_limited', 'store_unavailable'],
  },
  revoke: {
    operationId: 'revokeKey',
    tag: 'agents',
    answers: { 200: { description: 'The key is revoked', content: { 'application/json': revokedSchema } } },
    errors: ['store_unavailable'],
  },
  profile: {
    operationId: 'getProfile',
    tag: 'agents',
    answers: {
      200: {
        description: 'The profile, and where the agent stands',
        content: { 'application/json': profileAnswerSchema },
      },
    },
  },
  setProfile: {
    operationId: 'setProfile',
    tag: 'agents',
    description: 'A field that is absent keeps its value; null clears it.',
    body: { 'application/json': profileChangeSchema },
    answers: {
      200: { description: 'The profile as it is now', content: { 'application/json': profileChangedSchema } },
    },
    errors: ['key_not_allowed', 'store_unavailable'],
  },
} as const satisfies Record<string, OperationDocs>
