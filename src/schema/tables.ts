// Every table of the store and of the lake: column names, DuckDB types, units and meaning. The store's DDL, the Parquet
// schema, the data dictionary and the TypeScript types of rows all derive from TABLES.
import {
  ENRICHED,
  type EnrichedField,
  type Meaning,
  SNAPSHOT_FIELDS,
  type SnapshotField,
} from './features.ts'
import type { CellTypes, Column, ColumnType, Row, Table } from './table-types.ts'
import { column, optional, schemaVersion } from './tables/column.ts'
import { EVENT_TABLES } from './tables/event-tables.ts'
import { HORIZON_NAMES } from './vocabulary.ts'

export type { Cell, Column, ColumnType, Row, Table } from './table-types.ts'

/**
 * Written into every lake row. 2: training and rejections have `received_at`, training has the price that returns refer to.
 * 3: bars have `complete`; the tables trades and events. 4: trades have a quote, and where they stand on the chain.
 * 5: enriched fields say whose they are.
 */
export const LAKE_SCHEMA_VERSION = 5

/** The lake's name and unit of each compared snapshot field. */
export const SNAPSHOT_COLUMNS = {
  priceUsd: { name: 'price_usd', unit: 'USD' },
  marketCap: { name: 'market_cap', unit: 'USD' },
  volume24h: { name: 'volume_24h', unit: 'USD' },
  liquidity: { name: 'liquidity', unit: 'USD' },
  holderCount: { name: 'holder_count', unit: 'count' },
  top10HolderPct: { name: 'top10_holder_pct', unit: 'percent 0-100' },
  buys24h: { name: 'buys_24h', unit: 'count' },
  sells24h: { name: 'sells_24h', unit: 'count' },
  bondingProgress: { name: 'bonding_progress', unit: 'percent 0-100' },
} as const satisfies Record<SnapshotField, { name: string; unit: string }>

const snapshotColumns = <Prefix extends string>(prefix: Prefix, describe: (unit: string) => string) =>
  SNAPSHOT_FIELDS.map((field) => {
    const { name, unit } = SNAPSHOT_COLUMNS[field]
    return optional(`${prefix}${name}` as const, 'DOUBLE', describe(unit))
  })

const enriched = <Name extends EnrichedField, Type extends ColumnType>(name: Name, type: Type) => {
  const { description, unit }: Meaning = ENRICHED[name]
  const meaning = unit === undefined ? description : `${description}, ${unit}`
  return optional(name, type, `Feature, resolved by the server: ${meaning}`)
}

const enrichedColumns = [
  enriched('has_freeze_authority', 'BOOLEAN'),
  enriched('has_mint_authority', 'BOOLEAN'),
  enriched('transfer_fee_enabled', 'BOOLEAN'),
  enriched('is_mutable_metadata', 'BOOLEAN'),
  enriched('top10_holder_pct_onchain', 'DOUBLE'),
  enriched('unique_wallet_24h', 'BIGINT'),
  enriched('unique_wallet_1h', 'BIGINT'),
  enriched('buy_volume_24h_usd', 'DOUBLE'),
  enriched('sell_volume_24h_usd', 'DOUBLE'),
  optional(
    'enriched_source',
    'VARCHAR',
    'Whose the fields resolved by the server are: chain, birdeye, trades (what the server saw), simulated, or who pushed them; several are joined by +. NULL: none is known, or the row has a schema version below 5',
  ),
  optional('enriched_at', 'TIMESTAMP', 'When the oldest of them was resolved, UTC; NULL as enriched_source'),
]

const labelColumns = [
  column('sentiment', 'VARCHAR', 'Label: bullish, bearish or neutral'),
  column('score', 'DOUBLE', 'Label: conviction, 0-100'),
  column('summary', 'VARCHAR', 'The analysis in words, 50 to 2000 code points'),
]

const quantColumns = [
  column('risk_level', 'VARCHAR', 'Label: critical, high, medium or low'),
  column('risk_factors', 'VARCHAR[]', 'Label: 1 to 8 factors of the vocabulary'),
  column('buy_pressure', 'DOUBLE', 'Label: 0-100'),
  column('volatility_score', 'DOUBLE', 'Label: 0-100'),
  column('liquidity_depth', 'VARCHAR', 'Label: deep, moderate, shallow or dry'),
  column('holder_concentration', 'VARCHAR', 'Label: distributed, moderate, concentrated or whale_dominated'),
  column('trend_direction', 'VARCHAR', 'Label: up, down, sideways or reversal'),
  column('volume_profile', 'VARCHAR', 'Label: surging, rising, stable, declining or dead'),
]

const submissionColumns = [
  column('analysis_id', 'VARCHAR', 'Identity of the submission'),
  column('agent_id', 'VARCHAR', 'The agent that submitted'),
  column('mint', 'VARCHAR', 'Token, base58'),
  column('submitted_at', 'TIMESTAMP', 'When the server evaluated it, UTC; no feature is from later'),
  column('snapshot_at', 'TIMESTAMP', 'The moment whose DataPoint version was compared, UTC'),
  column('known_at', 'TIMESTAMP', 'When the row became durable in the store, UTC'),
  optional(
    'received_at',
    'TIMESTAMP',
    'When the server received it, by its own clock, UTC. In a replay in recorded time it differs from submitted_at',
  ),
  ...labelColumns,
  column('outcome', 'VARCHAR', 'validated, unvalidated or rejected'),
  column('validated', 'BOOLEAN', 'outcome is validated'),
  column('deviation_pct', 'DOUBLE', 'Largest deviation over the compared fields, percent'),
  ...snapshotColumns('', (unit) => `Feature: the server’s compared version, ${unit}`),
  ...quantColumns,
  ...enrichedColumns,
  ...snapshotColumns('submitted_', (unit) => `What the client sent, ${unit}; NULL where it sent nothing`),
  ...snapshotColumns('dev_', () => 'Deviation of what the client sent, percent; NULL where not compared'),
]

const priceAtSubmission = optional(
  'price_at_submission_usd',
  'DOUBLE',
  'The server’s price at submitted_at, USD: the base of the returns in outcomes. price_usd is the price at snapshot_at, up to five minutes earlier. NULL: no price was known, or the row has schema version 1',
)
const provenanceColumns = [
  optional('feed', 'VARCHAR', 'Feeds of the market, comma-separated; NULL: not known'),
  optional('simulated', 'BOOLEAN', 'The market was simulated; NULL: not known'),
]

/** Columns of `outcomes`, and of `outcomes_open`, which holds the submissions whose last horizon has not passed. */
const outcomeColumns = [
  column('analysis_id', 'VARCHAR', 'The submission, as in training'),
  column('mint', 'VARCHAR', 'Token, base58'),
  column('submitted_at', 'TIMESTAMP', 'As in training, UTC: where the horizons begin'),
  optional(
    'base_price_usd',
    'DOUBLE',
    'Base of the returns, USD: price_at_submission_usd of the training row (price_usd of a row of schema version 1), else the last close of the 24 hours before; NULL: no price was known',
  ),
  ...HORIZON_NAMES.map((name) =>
    optional(
      `fwd_ret_${name}` as const,
      'DOUBLE',
      `Price ${name} after submitted_at divided by base_price_usd, minus 1. The price is the close of the last 1m bar that ended between the two times; without such a bar it is the base. NULL: not labelled yet (see labelled_to), or no base`,
    ),
  ),
  optional(
    'fwd_max_drawdown_24h',
    'DOUBLE',
    'Largest fall from an earlier high within the 24 hours, as a fraction of that high, -1 to 0. Computed over the base and the closes of the 1m bars that ended in the 24 hours. NULL: not labelled yet, or no base',
  ),
  optional(
    'dead_24h',
    'BOOLEAN',
    'No trade in the last 6 of the 24 hours, or a price after 24h of at most 1 % of the base. NULL: not labelled yet',
  ),
  optional(
    'fwd_trades_24h',
    'BIGINT',
    'Trades in the 1m bars that ended in the 24 hours; NULL: not labelled yet',
  ),
  optional(
    'fwd_last_trade_24h',
    'TIMESTAMP',
    'Start of the last 1m bar that ended in the 24 hours, UTC; NULL: not labelled yet, or no trade',
  ),
  optional(
    'watched_minutes_24h',
    'INTEGER',
    'Minutes of the 24 hours in which any token of the market traded. Far fewer than 1440: the server did not watch all the time, so a token that seems dead may have traded unseen. NULL: not labelled yet',
  ),
  ...provenanceColumns,
]

export const TABLES = {
  training: {
    name: 'training',
    comment: 'One labelled example for each accepted submission',
    lakeDateColumn: 'submitted_at',
    columns: [...submissionColumns, priceAtSubmission, ...provenanceColumns, schemaVersion],
  },
  rejections: {
    name: 'rejections',
    comment: 'One rejected submission, for audit; never part of the training set',
    lakeDateColumn: 'submitted_at',
    columns: [
      ...submissionColumns,
      column('strikes', 'INTEGER', 'Strikes of the agent within 24 h, this one included'),
      schemaVersion,
    ],
  },
  xp_ledger: {
    name: 'xp_ledger',
    comment: 'One award of experience points; the sum per agent is its total',
    lakeDateColumn: 'awarded_at',
    columns: [
      column('entry_id', 'VARCHAR', 'Identity of the award'),
      column('agent_id', 'VARCHAR', 'The agent that earned it'),
      column('awarded_at', 'TIMESTAMP', 'UTC'),
      column('kind', 'VARCHAR', 'analysis, trade, chat, social or streaming'),
      column('xp', 'DOUBLE', 'Points; halves are exact'),
      optional('analysis_id', 'VARCHAR', 'The submission that earned it, for kind analysis'),
      optional('note', 'VARCHAR', 'The operator’s remark, for other kinds'),
      schemaVersion,
    ],
  },
  bars: {
    name: 'bars',
    comment:
      'One closed OHLC bar of a token, of every timeframe from 1m up. A bar is written once, even if it closes again after a restart',
    lakeDateColumn: 't',
    origin: 'market',
    columns: [
      column('mint', 'VARCHAR', 'Token, base58'),
      column('tf', 'VARCHAR', 'Timeframe: 1m, 5m, 15m, 1h, 4h or 1d'),
      column('t', 'TIMESTAMP', 'Inclusive start, UTC; intervals without a trade have no bar'),
      column('o', 'DOUBLE', 'First price, USD'),
      column('h', 'DOUBLE', 'Highest price, USD'),
      column('l', 'DOUBLE', 'Lowest price, USD'),
      column('c', 'DOUBLE', 'Last price, USD'),
      column('v', 'DOUBLE', 'Volume, USD'),
      column('n', 'BIGINT', 'Trades'),
      column('buy_v', 'DOUBLE', 'Volume of the buys among them, USD'),
      column('buys', 'BIGINT', 'Buys among them'),
      column('closed_at', 'TIMESTAMP', 'Market time at which the bar was known to be closed, UTC'),
      column(
        'watched_since',
        'TIMESTAMP',
        'Market time since which this run of the server had watched the token, UTC. A bar that starts earlier may lack trades. Later than the start of the run if the token was evicted and came back',
      ),
      column('known_at', 'TIMESTAMP', 'When the row reached the store, UTC'),
      ...provenanceColumns,
      optional(
        'complete',
        'BOOLEAN',
        'All trades of the interval were seen. False: a feed was away, the server was down, its clock leapt, or the token was not held during part of it. In a file: as known when the bar was written; the catalog’s view knows of gaps that were found later. NULL: not known, the row has schema version 1 or 2',
      ),
      schemaVersion,
    ],
  },
  tokens: {
    name: 'tokens',
    comment:
      'One version of a token’s profile; the latest by mint is valid. A restart may write the same version again. A token that is known by its trades alone has no row',
    lakeDateColumn: 'updated_at',
    origin: 'market',
    latestBy: ['mint'],
    // A flush gives all its versions of a token the same `known_at`.
    newestBy: ['known_at', 'updated_at'],
    keepsHistory: true,
    columns: [
      column('mint', 'VARCHAR', 'Token, base58'),
      column('name', 'VARCHAR', 'As its creator wrote it, like all texts here'),
      column('symbol', 'VARCHAR', 'Ticker'),
      optional('description', 'VARCHAR', 'Text'),
      optional('image_uri', 'VARCHAR', 'Address'),
      optional('creator', 'VARCHAR', 'Wallet'),
      optional('website', 'VARCHAR', 'Address'),
      optional('twitter', 'VARCHAR', 'Handle or address'),
      optional('telegram', 'VARCHAR', 'Address'),
      optional('total_supply', 'DOUBLE', 'UI tokens'),
      optional('created_at', 'TIMESTAMP', 'When the token was created, UTC'),
      column('graduated', 'BOOLEAN', 'The bonding curve is complete'),
      column('updated_at', 'TIMESTAMP', 'Market time of this version, UTC'),
      column('known_at', 'TIMESTAMP', 'When the row became durable in the store, UTC'),
      schemaVersion,
    ],
  },
  outcomes: {
    name: 'outcomes',
    comment:
      'The price after an accepted submission. One row for each horizon that has passed; the latest by analysis_id has all labels so far. A label never changes',
    lakeDateColumn: 'submitted_at',
    latestBy: ['analysis_id'],
    newestBy: ['label_available_at', 'known_at'],
    origin: 'store',
    columns: [
      ...outcomeColumns,
      column('labelled_to', 'VARCHAR', 'Longest horizon labelled so far: 5m, 15m, 1h, 6h or 24h'),
      column(
        'label_available_at',
        'TIMESTAMP',
        'submitted_at plus that horizon plus 60 s for its bars to close, UTC: no label of the row can be known earlier',
      ),
      column('known_at', 'TIMESTAMP', 'When the row became durable in the store, UTC'),
      schemaVersion,
    ],
  },
  ...EVENT_TABLES,
  outcomes_open: {
    name: 'outcomes_open',
    comment: 'An accepted submission whose last horizon has not passed, with its labels so far',
    lakeDateColumn: null,
    columns: [...outcomeColumns, column('horizons_done', 'INTEGER', 'How many horizons are labelled')],
  },
  agents: {
    name: 'agents',
    comment: 'One registered agent',
    lakeDateColumn: null,
    columns: [
      column('agent_id', 'VARCHAR', 'Identity'),
      column('name', 'VARCHAR', 'As registered'),
      optional('description', 'VARCHAR', 'As registered'),
      column('type', 'VARCHAR', 'agent or researcher'),
      column('created_at', 'TIMESTAMP', 'UTC'),
    ],
  },
  agent_keys: {
    name: 'agent_keys',
    comment: 'One API key; only its hash is kept',
    lakeDateColumn: null,
    columns: [
      column('key_hash', 'VARCHAR', 'SHA-256, hex'),
      column('key_prefix', 'VARCHAR', 'The first characters, for display'),
      column('agent_id', 'VARCHAR', 'The agent whose key it is'),
      column('created_at', 'TIMESTAMP', 'UTC'),
    ],
  },
  agent_events: {
    name: 'agent_events',
    comment: 'One change to an agent or a key after its creation; the latest of its kind is valid',
    lakeDateColumn: null,
    columns: [
      column('agent_id', 'VARCHAR', 'The agent that was changed'),
      column('at', 'TIMESTAMP', 'UTC'),
      column('kind', 'VARCHAR', 'profile, key_expires, key_unused, key_used, suspended, banned or unbanned'),
      column('data', 'VARCHAR', 'JSON; its members depend on the kind'),
    ],
  },
  submit_attempts: {
    name: 'submit_attempts',
    comment: 'One submission that counted against the submit rate; kept a few minutes',
    lakeDateColumn: null,
    columns: [column('agent_id', 'VARCHAR', 'The agent that submitted'), column('at', 'TIMESTAMP', 'UTC')],
  },
  idempotency: {
    name: 'idempotency',
    comment: 'One remembered response to a request with an Idempotency-Key; kept 24 hours',
    lakeDateColumn: null,
    columns: [
      column('agent_id', 'VARCHAR', 'The agent that submitted'),
      column('idempotency_key', 'VARCHAR', 'As sent'),
      column('body_hash', 'VARCHAR', 'SHA-256 of the body, hex'),
      column('status', 'INTEGER', 'HTTP status of the response'),
      column('body', 'VARCHAR', 'JSON of the response'),
      column('at', 'TIMESTAMP', 'UTC'),
    ],
  },
} as const satisfies Record<string, Table>

export type TableName = keyof typeof TABLES

type ColumnOf<Name extends TableName> = (typeof TABLES)[Name]['columns'][number]
type CellOf<C extends Column> = CellTypes[C['type']] | (C['nullable'] extends true ? null : never)
/** Columns that the store fills where a caller leaves them out. */
type FilledByStore = 'known_at' | 'schema_version'

/** A complete row of a table, as the store returns it. */
export type TableRow<Name extends TableName> = Name extends TableName
  ? { [C in ColumnOf<Name> as C['name']]: CellOf<C> }
  : never

/** A row to write. A column that is left out becomes null or is filled by the store. */
export type NewRow<Name extends TableName> = Name extends TableName
  ? {
      [C in ColumnOf<Name> as C['nullable'] extends true
        ? never
        : Exclude<C['name'], FilledByStore>]: CellOf<C>
    } & {
      [C in ColumnOf<Name> as C['nullable'] extends true ? C['name'] : C['name'] & FilledByStore]?: CellOf<C>
    }
  : never

/** A row to write, and its table. Rows of one `commit` become durable together or not at all. */
export interface Write {
  table: TableName
  row: Row
}

/** A write to a known table. */
export interface TableWrite<Name extends TableName> {
  table: Name
  row: NewRow<Name>
}

/** A row of an accepted or a rejected submission. */
export type SubmissionRow = TableRow<'training'> | TableRow<'rejections'>
