// The schemas that the API description names, and lines of them.
import { z } from 'zod'
import { profileSchema } from '../../schema/api/accounts.ts'
import { agentStatusSchema } from '../../schema/api/admin.ts'
import { barLineSchema, longBarSchema } from '../../schema/api/bars.ts'
import { fieldErrorSchema, problemSchema } from '../../schema/api/problem.ts'
import {
  chosenStreamRowSchema,
  streamLineSchema,
  streamMessageSchema,
  streamRequestSchema,
  streamRowSchema,
} from '../../schema/api/stream.ts'
import {
  agentRankSchema,
  analysisSchema,
  coverageRowSchema,
  enrichedSchema,
} from '../../schema/api/submissions.ts'
import { barSchema } from '../../schema/bar.ts'
import { chosenDataPointSchema, dataPointSchema } from '../../schema/datapoint.ts'
import { ingestRecordSchema } from '../../schema/event.ts'
import { chosenRowSchema, marketItemSchema } from '../../schema/market-item.ts'
import { quantSchema, submissionSchema } from '../../schema/submission.ts'

/** By name. Wherever one of these is used, the description refers to its name. */
export const COMPONENTS = {
  Submission: submissionSchema,
  Quant: quantSchema,
  Analysis: analysisSchema,
  Enriched: enrichedSchema,
  DataPoint: dataPointSchema,
  ChosenDataPoint: chosenDataPointSchema,
  MarketItem: marketItemSchema,
  ChosenItem: chosenRowSchema,
  Bar: barSchema,
  LongBar: longBarSchema,
  BarLine: barLineSchema,
  CoverageRow: coverageRowSchema,
  AgentRank: agentRankSchema,
  AgentStatus: agentStatusSchema,
  Profile: profileSchema,
  Problem: problemSchema,
  FieldError: fieldErrorSchema,
  StreamRow: streamRowSchema,
  ChosenStreamRow: chosenStreamRowSchema,
  StreamLine: streamLineSchema,
  StreamMessage: streamMessageSchema,
  StreamRequest: streamRequestSchema,
} as const satisfies Record<string, z.ZodType>

/** Named by an id of its own: its transforms have no form as an answer, which the list above would need. */
export const ingestRecord = ingestRecordSchema.meta({
  id: 'IngestRecord',
  examples: [{ type: 'solPrice', ts: 1_772_000_000_000, usd: 140 }],
})

export type ComponentName = keyof typeof COMPONENTS | 'IngestRecord'

export const refTo = (name: ComponentName) => ({ $ref: `#/components/schemas/${name}` })

/** A text of lines, each of which is a component as JSON. */
export const linesOf = (name: ComponentName, description: string) =>
  z.string().meta({ description, contentMediaType: 'application/json', contentSchema: refTo(name) })
