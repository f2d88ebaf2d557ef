// Descriptions of what feeds, operators, researchers and machines ask for.
import { z } from 'zod'
import { operatorRegistrationSchema, registeredSchema } from '../../schema/api/accounts.ts'
import {
  agentListSchema,
  awardAnswerSchema,
  awardXpSchema,
  bannedSchema,
  banSchema,
  clockTrustedSchema,
  keysRevokedSchema,
  lakeRepairSchema,
  lakeRetiredSchema,
  repairLakeSchema,
  revokeKeysSchema,
  stagedBackupSchema,
  unbanSchema,
} from '../../schema/api/admin.ts'
import { ingestAnswerSchema } from '../../schema/api/ingest.ts'
import { QUERY_FORMATS, queryAnswerSchema, querySchema } from '../../schema/api/lake.ts'
import { exportQuery, historyQuery } from '../../schema/api/queries.ts'
import { healthSchema, historySchema, readySchema } from '../../schema/api/status.ts'
import { submissionSchemaAnswerSchema } from '../../schema/api/submissions.ts'
import { MSGPACK_MEDIA_TYPES, NDJSON_MEDIA_TYPES } from '../../schema/media-types.ts'
import { ARROW_TYPE } from '../encode/items.ts'
import { ingestRecord, linesOf } from './components.ts'
import { EXPORT_HEADERS, QUERY_HEADERS } from './headers.ts'
import type { BodyDocs, OperationDocs, Tag } from './operation-docs.ts'

const json = (schema: z.ZodType): BodyDocs => ({ 'application/json': schema })
const textType = (type: string): BodyDocs => ({ [type]: z.string() })
const byType = (types: readonly string[], schema: z.ZodType): BodyDocs =>
  Object.fromEntries(types.map((type) => [type, schema]))

const admin = (
  operationId: string,
  description: string,
  answer: z.ZodType,
  body?: z.ZodType,
): OperationDocs => ({
  operationId,
  tag: 'admin',
  ...(body && { body: json(body) }),
  answers: { 200: { description, content: json(answer) } },
  errors: ['store_unavailable'],
})

export const ADMIN_DOCS = {
  agents: admin('listAllAgents', 'Every agent', agentListSchema),
  keys: {
    operationId: 'makeKey',
    tag: 'admin',
    body: json(operatorRegistrationSchema),
    answers: { 201: { description: 'The key', content: json(registeredSchema) } },
    errors: ['registration_closed', 'store_unavailable'],
  },
  revoke: admin('revokeKeys', 'How many keys were revoked', keysRevokedSchema, revokeKeysSchema),
  ban: admin('banAgent', 'The agent is banned', bannedSchema, banSchema),
  unban: admin('unbanAgent', 'The agent may submit', bannedSchema, unbanSchema),
  repairLake: admin('repairLake', 'What was found', lakeRepairSchema, repairLakeSchema),
  stageBackup: admin(
    'stageBackup',
    'Where the copy is, and what it has',
    stagedBackupSchema,
    repairLakeSchema,
  ),
  retireLake: admin('retireLake', 'What left the lake', lakeRetiredSchema),
  trustClock: admin('trustClock', 'How far market time has moved', clockTrustedSchema),
  awardXp: admin('awardXp', 'The award', awardAnswerSchema, awardXpSchema),
} as const satisfies Record<string, OperationDocs>

export const FEED_DOCS: OperationDocs = {
  operationId: 'pushEvents',
  tag: 'feeds',
  description:
    'A record that is refused does not affect its neighbours. The same address takes a WebSocket: each message is one record ' +
    'or an array of records, JSON as text or msgpack as bytes, and is answered with the same object. Whoever has missed data ' +
    'says so with `disconnect`, and `reconnect` when it has data again: silence, or the end of a WebSocket, tells nothing. Who can ' +
    'send what it has missed says until when with `healUntilMs` of the `disconnect`; sends it, oldest first, with the times of then; ' +
    'tells in `missing` of another `disconnect` what it knows by then it cannot; ' +
    'and says `reconnect` with `healed: true`, and in `missing` what it could not send: then nothing else is a gap.',
  body: {
    ...byType(NDJSON_MEDIA_TYPES, linesOf('IngestRecord', 'One record a line, as JSON')),
    ...byType(
      MSGPACK_MEDIA_TYPES,
      z.array(ingestRecord).meta({ description: 'An array of records, or records one after another' }),
    ),
  },
  answers: { 200: { description: 'What became of the records', content: json(ingestAnswerSchema) } },
  errors: ['validation_failed', 'invalid_json'],
}

export const EXPORT_DOCS: OperationDocs = {
  operationId: 'exportTraining',
  tag: 'lake',
  query: exportQuery,
  answers: {
    200: {
      description: 'A file of rows',
      content: { 'application/vnd.apache.parquet': null, [ARROW_TYPE]: null },
      headers: EXPORT_HEADERS,
    },
  },
  errors: ['not_acceptable', 'store_unavailable'],
  unversioned: true,
}

export const QUERY_DOCS: OperationDocs = {
  operationId: 'queryLake',
  tag: 'lake',
  description:
    'DuckDB’s SQL on the tables of the lake. SHOW TABLES and DESCRIBE training tell what there is. Nothing can be written, and no ' +
    'file but the lake’s can be read; paths of the lake on the server can be seen. A query may run for 30 seconds in a process of ' +
    'its own, with bounded memory. Two run at once, and a key may have three running or waiting. Temporary tables live as long as ' +
    'the query. Closing the connection ends it.',
  query: z.object({
    format: z.enum(QUERY_FORMATS).optional().meta({ description: '`json` unless told here or by Accept' }),
  }),
  body: json(querySchema),
  answers: {
    200: {
      description: 'The rows',
      content: { ...json(queryAnswerSchema), ...textType('text/csv') },
      headers: QUERY_HEADERS,
    },
  },
  errors: ['query_failed', 'query_too_costly', 'not_acceptable', 'overloaded', 'store_unavailable'],
}

export const STATUS_DOCS = {
  health: {
    operationId: 'getHealth',
    tag: 'status',
    answers: { 200: { description: 'The state of the server', content: json(healthSchema) } },
    unversioned: true,
  },
  history: {
    operationId: 'getHistory',
    tag: 'status',
    description:
      'Samples of a few metrics of the last hour, kept in memory; after a restart they begin anew.',
    query: historyQuery,
    answers: { 200: { description: 'Series, each with its limit', content: json(historySchema) } },
    unversioned: true,
  },
  ready: {
    operationId: 'getReadiness',
    tag: 'status',
    answers: { 200: { description: 'The server is ready', content: json(readySchema) } },
    errors: ['warming_up', 'draining'],
    unversioned: true,
  },
  metrics: {
    operationId: 'getMetrics',
    tag: 'status',
    answers: { 200: { description: 'Prometheus text', content: textType('text/plain') } },
    unversioned: true,
  },
} as const satisfies Record<string, OperationDocs>

const document = (operationId: string, description: string, content: BodyDocs, tag: Tag = 'documents') =>
  ({ operationId, tag, answers: { 200: { description, content } } }) satisfies OperationDocs

export const DOCUMENT_DOCS = {
  openapi: {
    ...document(
      'getOpenApi',
      'OpenAPI 3.1',
      json(z.looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) })),
    ),
    query: z.object({
      path: z.string().optional().meta({
        description: 'One path as it stands here, `{id}` included: only it, and the schemas that it needs',
      }),
    }),
  },
  llms: document('getLlmsTxt', 'What there is, with links', textType('text/plain')),
  skill: document('getSkill', 'All that an agent needs', textType('text/markdown')),
  streams: document('getStreams', 'Streams: lines, messages, resuming, bounds', textType('text/markdown')),
  submissionSchema: document(
    'getSubmissionSchema',
    'JSON Schema',
    json(submissionSchemaAnswerSchema),
    'analysis',
  ),
} as const satisfies Record<string, OperationDocs>
