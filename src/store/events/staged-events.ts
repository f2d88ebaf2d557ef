// Recorded events on their way into files of the lake: rows of two tables in a scratch database. Trades are priced here, as the
// engine priced them.
import type { DuckDBConnection } from '@duckdb/node-api'
import { QUOTE_COLUMNS } from '../../journal/batch/batch-layout.ts'
import type { EventBatch, RecordedEvent, TradeColumns } from '../../journal/event-batch.ts'
import { quotedWorth, soldWorth, type TradeWorth } from '../../market/events/trade-price.ts'
import { TIME_MS_MAX } from '../../schema/bounds.ts'
import { type Column, LAKE_SCHEMA_VERSION, TABLES } from '../../schema/tables.ts'
import { ColumnAppender } from '../duckdb/column-appender.ts'
import { duckdb } from '../duckdb/duckdb.ts'
import { identifier, type LakeTable } from '../duckdb/sql.ts'
import type { SeqRange } from '../lake/lake-files.ts'
import type { EventTableName } from './event-retention.ts'

/** Columns of one kind of rows. NaN stands for a number that is not known; all columns are of one length. */
type StagedColumns = Record<string, Float64Array | Uint8Array | readonly (string | null)[]>

/** The staged columns of a table: the lake's, but for those that are the same in all rows. */
const stagedOf = (name: EventTableName): readonly Column[] =>
  TABLES[name].columns.filter((column) => column.name !== 'known_at' && column.name !== 'schema_version')

/** All other columns are numbers: times as Unix ms, a side as 1 where it is `buy`. */
const isText = ({ name, type }: Column): boolean => type === 'VARCHAR' && name !== 'side'

const stagedName = (name: EventTableName): string => `${name}_staged`

function createSql(name: EventTableName): string {
  const columns = stagedOf(name).map(
    (column) => `${identifier(column.name)} ${isText(column) ? 'VARCHAR' : 'DOUBLE'}`,
  )
  return `CREATE OR REPLACE TABLE ${stagedName(name)} (${columns.join(', ')})`
}

/** SQL of one column of the lake, from a staged row. */
function cellSql({ name, type, nullable }: Column, knownMs: number): string {
  if (name === 'known_at') return `epoch_ms(${knownMs})`
  if (name === 'simulated') return 'CASE simulated WHEN 1 THEN true WHEN 0 THEN false END'
  if (name === 'schema_version') return `${LAKE_SCHEMA_VERSION}::INTEGER`
  if (name === 'side') return `CASE WHEN side = 1 THEN 'buy' ELSE 'sell' END`
  if (type === 'TIMESTAMP') return `epoch_ms(${identifier(name)}::BIGINT)`
  if (type === 'BIGINT' || type === 'INTEGER')
    return nullable ? `nullif(${identifier(name)}, 'NaN'::DOUBLE)::${type}` : `${identifier(name)}::${type}`
  return type === 'DOUBLE' && nullable ? `nullif(${identifier(name)}, 'NaN'::DOUBLE)` : identifier(name)
}

/** SQL of the staged rows with these numbers, as rows of the lake in their order. */
export function selectStagedEvents(name: EventTableName, { first, last }: SeqRange, knownMs: number): string {
  const table: LakeTable = TABLES[name]
  const cells = table.columns.map((column) => `${cellSql(column, knownMs)} AS ${identifier(column.name)}`)
  return `SELECT ${cells.join(', ')} FROM ${stagedName(name)} WHERE event_no BETWEEN ${first} AND ${last}`
}

/** Empties a staged table, or creates it, and opens it. */
async function openStaged(connection: DuckDBConnection, name: EventTableName): Promise<ColumnAppender> {
  await connection.run(createSql(name))
  const types = stagedOf(name).map((column) => (isText(column) ? duckdb.VARCHAR : duckdb.DOUBLE))
  return ColumnAppender.open(connection, stagedName(name), types)
}

/** The columns of a staged table, in its order. */
const inOrder = (name: EventTableName, columns: StagedColumns) =>
  stagedOf(name).map((column) => columns[column.name])

/** An event that fits no row, which is a bug of this program. */
export interface UnfitEvent {
  table: EventTableName
  eventNo: number
  atMs: number
  /** As JSON. */
  text: string
}

const toNumber = (isSimulated: boolean | null): number =>
  isSimulated === null ? Number.NaN : Number(isSimulated)

const isTime = (ms: number): boolean => Number.isInteger(ms) && Math.abs(ms) <= TIME_MS_MAX

/** As the engine priced it. */
function worthOf(trades: TradeColumns, row: number): TradeWorth {
  const { tokenAmount, solAmount, priceUsd, vSol, vTokens, solPriceUsd, quotes } = trades
  const quoteMint = quotes?.quoteMint[row] ?? null
  if (quotes === null || quoteMint === null)
    return soldWorth(
      ...([tokenAmount[row], solAmount[row], vSol[row]] as const),
      ...([vTokens[row], priceUsd[row], solPriceUsd[row]] as const),
    )
  const quote = { quoteMint, quoteAmount: quotes.quoteAmount[row], vQuote: quotes.vQuote[row] }
  return quotedWorth(tokenAmount[row], quote, vTokens[row], priceUsd[row], solPriceUsd[row])
}

/** The columns of the table, from the columns of the journal. */
function tradeColumns(
  trades: TradeColumns,
  simulated: Float64Array,
): StagedColumns & { price_usd: Float64Array } {
  const { count, tokenAmount, solAmount, priceUsd: sentUsd, vSol, vTokens, solPriceUsd, quotes } = trades
  const [priceUsd, priceSol, volumeUsd] = [0, 1, 2].map(() => new Float64Array(count))
  for (let row = 0; row < count; row++) {
    const worth = worthOf(trades, row)
    priceUsd[row] = worth.priceUsd
    priceSol[row] = worth.priceSol
    volumeUsd[row] = worth.volumeUsd
  }
  const unknown = new Float64Array(quotes === null ? count : 0).fill(Number.NaN)
  const quoted = QUOTE_COLUMNS.map((name) => quotes?.[name] ?? unknown)
  const [quote_amount, v_quote, quote_reserve, curve_tokens, slot, event_index] = quoted
  return {
    quote_amount,
    v_quote,
    quote_reserve,
    curve_tokens,
    slot,
    event_index,
    quote_mint: quotes?.quoteMint ?? new Array<null>(count).fill(null),
    event_no: trades.eventNo,
    at: trades.atMs,
    received_at: trades.receivedAtMs,
    ts: trades.tsMs,
    side: trades.isBuy,
    token_amount: tokenAmount,
    sol_amount: solAmount,
    price_usd: priceUsd,
    price_sol: priceSol,
    volume_usd: volumeUsd,
    v_sol: vSol,
    v_tokens: vTokens,
    reported_price_usd: sentUsd,
    sol_price_usd: solPriceUsd,
    simulated,
    mint: trades.mint,
    wallet: trades.wallet,
    tx: trades.tx,
    feed: trades.feed,
  }
}

/** The same of events that are no trades, each with its raw event as JSON. */
const eventColumns = (events: readonly RecordedEvent[], simulated: Float64Array): StagedColumns => ({
  simulated,
  event_no: Float64Array.from(events, ({ eventNo }) => eventNo),
  at: Float64Array.from(events, ({ atMs }) => atMs),
  received_at: Float64Array.from(events, ({ receivedAtMs }) => receivedAtMs),
  ts: Float64Array.from(events, ({ event }) => event.ts),
  kind: events.map(({ event }) => event.type),
  mint: events.map(({ event }) => ('mint' in event ? event.mint : null)),
  feed: events.map(({ feed }) => feed),
  data: events.map(({ event }) => JSON.stringify(event)),
})

/** The staged rows of one slice. */
export class StagedEvents {
  readonly #trades: ColumnAppender
  readonly #events: ColumnAppender
  /** Events that fit no row; they are left out. */
  readonly unfit: UnfitEvent[] = []
  /** Whether the market is simulated in the run of the last event; null: not known. */
  isSimulated: boolean | null

  /** Empties the tables in the database of `connection`, or creates them. `close` must be called. */
  static async create(connection: DuckDBConnection, isSimulated: boolean | null): Promise<StagedEvents> {
    const trades = await openStaged(connection, 'trades')
    return new StagedEvents(trades, await openStaged(connection, 'events'), isSimulated)
  }

  constructor(trades: ColumnAppender, events: ColumnAppender, isSimulated: boolean | null) {
    this.#trades = trades
    this.#events = events
    this.isSimulated = isSimulated
  }

  /** Adds the events of a batch with this number or a higher one. */
  add({ trades, events }: EventBatch, firstNo: number): void {
    const runs = events.filter(({ event, eventNo }) => event.type === 'run' && eventNo >= firstNo)
    this.#addTrades(trades, firstNo, this.#simulatedOf(trades.eventNo, runs))
    const wanted = events.filter(({ eventNo }) => eventNo >= firstNo)
    this.#addEvents(
      wanted,
      this.#simulatedOf(
        wanted.map(({ eventNo }) => eventNo),
        runs,
      ),
    )
    const last = runs.at(-1)
    if (last?.event.type === 'run') this.isSimulated = last.event.header.simulated
  }

  /** For each of these numbers 1 where the market was simulated, 0 where not, NaN where it is not known. @param runs that begin */
  #simulatedOf(numbers: ArrayLike<number>, runs: readonly RecordedEvent[]): Float64Array {
    const values = new Float64Array(numbers.length).fill(toNumber(this.isSimulated))
    for (const { event, eventNo } of runs) {
      if (event.type !== 'run') continue
      for (let row = 0; row < numbers.length; row++)
        if (numbers[row] >= eventNo) values[row] = toNumber(event.header.simulated)
    }
    return values
  }

  #addTrades(trades: TradeColumns, firstNo: number, simulated: Float64Array): void {
    const priced = tradeColumns(trades, simulated)
    let from = 0
    while (from < trades.count && trades.eventNo[from] < firstNo) from++
    this.#append(this.#trades, inOrder('trades', priced), from, trades.count, (row) =>
      isWholeTrade(trades, priced.price_usd, row) ? null : toUnfitTrade(trades, row),
    )
  }

  #addEvents(events: readonly RecordedEvent[], simulated: Float64Array): void {
    const columns = inOrder('events', eventColumns(events, simulated))
    this.#append(this.#events, columns, 0, events.length, (row) => toUnfitEvent(events[row]))
  }

  /** Unfit rows are left out by appending what lies between them. @param findUnfit null: the row fits */
  #append(
    appender: ColumnAppender,
    columns: ReturnType<typeof inOrder>,
    first: number,
    count: number,
    findUnfit: (row: number) => UnfitEvent | null,
  ): void {
    let from = first
    for (let row = first; row < count; row++) {
      const unfit = findUnfit(row)
      if (unfit === null) continue
      this.unfit.push(unfit)
      appender.append(columns, from, row)
      from = row + 1
    }
    appender.append(columns, from, count)
  }

  /** How many events of a window fit no row. */
  countUnfit(table: EventTableName, { first, last }: SeqRange): number {
    return this.unfit.filter((each) => each.table === table && each.eventNo >= first && each.eventNo <= last)
      .length
  }

  /** Makes all rows visible to queries. */
  flush(): void {
    this.#trades.flush()
    this.#events.flush()
  }

  close(): void {
    this.#trades.close()
    this.#events.close()
  }
}

/** Whether the columns of a trade that are never NULL have values. */
const isWholeTrade = (trades: TradeColumns, priceUsd: Float64Array, row: number): boolean =>
  isTime(trades.atMs[row]) &&
  isTime(trades.receivedAtMs[row]) &&
  isTime(trades.tsMs[row]) &&
  (Number.isFinite(priceUsd[row] * trades.tokenAmount[row]) ||
    // The engine takes trades without a price only of quotes that it cannot price.
    (Number.isNaN(priceUsd[row]) && trades.quotes !== null && trades.quotes.quoteMint[row] !== null))

/** Null: the event fits its row. */
function toUnfitEvent(recorded: RecordedEvent): UnfitEvent | null {
  const { eventNo, atMs, receivedAtMs, event } = recorded
  if (isTime(atMs) && isTime(receivedAtMs) && isTime(event.ts)) return null
  return { table: 'events', eventNo, atMs, text: JSON.stringify(recorded) }
}

function toUnfitTrade(trades: TradeColumns, row: number): UnfitEvent {
  const { quotes, ...columns } = trades
  const cells = Object.entries({ ...columns, ...quotes }).map(([name, column]) => [
    name,
    typeof column === 'number' ? column : column[row],
  ])
  const [eventNo, atMs] = [trades.eventNo[row], trades.atMs[row]]
  return { table: 'trades', eventNo, atMs, text: JSON.stringify(Object.fromEntries(cells)) }
}
