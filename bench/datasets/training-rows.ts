// Synthetic rows of `training` from a seed: tokens and agents follow Zipf's law, values spread over orders of magnitude, and
// three in ten carry a snapshot sent by the client. Their columns have the order in which the submission service writes them.
import { ENRICHED_FIELDS, SNAPSHOT_FIELDS } from '../../src/schema/datapoint.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { type Cell, type Row, SNAPSHOT_COLUMNS, TABLES, type Write } from '../../src/schema/tables.ts'
import {
  HOLDER_CONCENTRATIONS,
  LIQUIDITY_DEPTHS,
  RISK_FACTORS,
  RISK_LEVELS,
  SENTIMENTS,
  TREND_DIRECTIONS,
  VOLUME_PROFILES,
} from '../../src/schema/vocabulary.ts'
import { random } from './random.ts'

/** Ten million rows a day. */
export const ROWS_PER_SECOND = 10_000_000 / 86_400
/** Noon, so that a day of rows spreads over two dates. */
export const START_MS = Date.UTC(2026, 4, 1, 12)
const TOKENS = 20_000
const AGENTS = 500

export interface Crowd {
  tokens: number
  agents: number
}
const OWN_VALUES_SHARE = 0.3
const UNKNOWN_SHARE = 0.1
const PHRASES = [
  'volume rises while the ten largest wallets hold still',
  'the curve is half way and buyers outnumber sellers',
  'the creator sold a third of the supply within minutes',
  'liquidity is shallow for a market of this size',
  'holders grow by the hour and no wallet stands out',
  'trades repeat between a handful of fresh wallets',
  'the chart copies a token that died last week',
  'the price holds above its last hour’s mean',
]
const COUNTS = new Set(['holderCount', 'buys24h', 'sells24h'])

const typeOf = new Map<string, string>(TABLES.training.columns.map(({ name, type }) => [name, type]))

/** The rows of one accepted submission, as the submission service commits them. */
export function commitOf(row: Write['row']): Write[] {
  const { analysis_id, agent_id, submitted_at } = row
  const award = {
    entry_id: `xp ${analysis_id}`,
    agent_id,
    awarded_at: submitted_at,
    kind: 'analysis',
    xp: 17.5,
  }
  return [
    { table: 'training', row },
    { table: 'xp_ledger', row: { ...award, analysis_id } },
    { table: 'submit_attempts', row: { agent_id, at: submitted_at } },
  ]
}

export interface TrainingRows {
  /** The next row and its time. */
  next(): Row
  /** The token with the most rows, for queries about one token. */
  readonly mints: readonly string[]
}

export const tokenMints = (tokens = TOKENS): string[] =>
  Array.from({ length: tokens }, (_, index) => mintOfSymbol(`lake ${index}`))

export function trainingRows(
  seed = 1,
  { tokens, agents }: Crowd = { tokens: TOKENS, agents: AGENTS },
): TrainingRows {
  const uniform = random(seed)
  const mints = tokenMints(tokens)
  let index = 0

  const oneOf = <Value>(values: readonly Value[]): Value => values[Math.floor(uniform() * values.length)]
  /** Draws ranks with Zipf's law. */
  const rank = (count: number): number => Math.floor(count ** uniform()) - 1
  const amount = (low: number, high: number): number => low * (high / low) ** uniform()
  const enriched = (name: string): Cell => {
    if (uniform() < UNKNOWN_SHARE) return null
    const type = typeOf.get(name)
    if (type === 'BOOLEAN') return uniform() < 0.2
    return type === 'BIGINT' ? Math.floor(amount(1, 1e5)) : amount(0.01, 1e6)
  }

  function snapshot(row: Row, isOwn: boolean): void {
    for (const field of SNAPSHOT_FIELDS) {
      const { name, unit } = SNAPSHOT_COLUMNS[field]
      const spread = unit.startsWith('percent') ? 100 * uniform() : amount(1e-6, 1e6)
      const value = COUNTS.has(field) ? Math.floor(amount(1, 1e5)) : spread
      const deviation = uniform() * 5
      row[name] = value
      if (!isOwn) continue
      row[`submitted_${name}`] = value * (1 + deviation / 100)
      row[`dev_${name}`] = deviation
    }
  }

  function next(): Row {
    const at = START_MS + Math.floor((index / ROWS_PER_SECOND) * 1_000)
    const score = Math.floor(uniform() * 101)
    const isOwn = uniform() < OWN_VALUES_SHARE
    const row: Row = {
      analysis_id: `an_${String(index++).padStart(12, '0')}`,
      agent_id: `agent ${rank(agents)}`,
      mint: mints[rank(tokens)],
      submitted_at: at,
      snapshot_at: at - Math.floor(uniform() * 1_000),
      received_at: at,
      sentiment: oneOf(SENTIMENTS),
      score,
      summary: `Score ${score}: ${oneOf(PHRASES)}; ${oneOf(PHRASES)}, at ${Math.floor(uniform() * 1e6)} USD.`,
      outcome: isOwn ? 'validated' : 'unvalidated',
      validated: isOwn,
      deviation_pct: isOwn ? uniform() * 5 : 0,
      risk_level: oneOf(RISK_LEVELS),
      risk_factors: [oneOf(RISK_FACTORS), oneOf(RISK_FACTORS)],
      buy_pressure: Math.floor(uniform() * 101),
      volatility_score: Math.floor(uniform() * 101),
      liquidity_depth: oneOf(LIQUIDITY_DEPTHS),
      holder_concentration: oneOf(HOLDER_CONCENTRATIONS),
      trend_direction: oneOf(TREND_DIRECTIONS),
      volume_profile: oneOf(VOLUME_PROFILES),
    }
    snapshot(row, isOwn)
    for (const name of ENRICHED_FIELDS) {
      const value = enriched(name)
      if (value !== null) row[name] = value
    }
    return row
  }

  return { next, mints }
}
