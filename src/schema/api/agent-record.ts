// What became of an agent's analyses: whether it was right, by horizon, and its XP over time.
import { z } from 'zod'
import { EXAMPLE_AGENT_ID } from '../example.ts'
import { HORIZON_NAMES } from '../vocabulary.ts'
import { calibrationGroupSchema } from './calibration.ts'
import { okData, percent, unixMs, wholeCount } from './parts.ts'

/** GET /api/v1/agents/record */
export const agentRecordQuery = z.object({
  agentId: z.string().meta({ description: '`agentId` of an agent; `me`: the one whose key is sent' }),
})

export const agentHorizonSchema = z.object({
  horizon: z.enum(HORIZON_NAMES).meta({ description: 'Time after the submission' }),
  count: wholeCount('Bullish and bearish submissions whose outcome is known'),
  hits: wholeCount('Those after which the price went the way that they said'),
  meanPct: percent('Mean return in the direction that they said').nullable(),
})
/** Whether one of several agents was right. */
export interface AgentHits {
  agentId: string
  /** Those with a known outcome, shortest first. */
  horizons: z.infer<typeof agentHorizonSchema>[]
}

export const agentRecordSchema = z.object({
  agentId: z.string(),
  name: z.string(),
  asOfMs: unixMs('When it was computed, by the time that submissions have: in a replay the market’s'),
  sinceMs: unixMs('Of submissions since this time'),
  horizons: z.array(agentHorizonSchema).meta({ description: 'Those with a known outcome, shortest first' }),
  groups: z
    .array(z.object({ ...calibrationGroupSchema.shape, kind: z.enum(['sentiment', 'score']) }))
    .meta({ description: 'Calibration of this agent alone; groups are shown whatever their size' }),
  xp: z.array(z.object({ atMs: unixMs('Start of the interval'), xp: z.number() })).meta({
    description: 'Points earned in each interval that has any, oldest first',
  }),
  xpEveryMs: z.number().int().meta({ description: 'Length of these intervals', unit: 'ms' }),
})
export type AgentRecord = z.infer<typeof agentRecordSchema>

export const agentRecordAnswerSchema = okData(agentRecordSchema, {
  agentId: EXAMPLE_AGENT_ID,
  name: 'curve-watcher',
  asOfMs: 1_772_000_000_000,
  sinceMs: 1_769_400_000_000,
  horizons: [{ horizon: '1h', count: 40, hits: 23, meanPct: 1.8 }],
  groups: [
    {
      kind: 'sentiment',
      label: 'bullish',
      horizon: '1h',
      count: 30,
      tokens: 21,
      meanPct: 2.5,
      lowPct: -1.1,
      highPct: 6.1,
    },
  ],
  xp: [{ atMs: 1_771_977_600_000, xp: 50 }],
  xpEveryMs: 3_600_000,
})
