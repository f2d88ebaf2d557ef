// The tables of recorded market events. Both together are the sequence from which the engine can be run again.
import { column, optional, schemaVersion } from './column.ts'

const eventNo = column(
  'event_no',
  'BIGINT',
  'Place in the sequence of recorded events, from 1: trades and events share one sequence without gaps',
)
const at = column(
  'at',
  'TIMESTAMP',
  'Market time at which the engine took it, UTC. Within a run it decreases with an event of kind rewind only. DuckDB reads a bare at as a keyword: write "at" or t.at',
)
const receivedAt = column(
  'received_at',
  'TIMESTAMP',
  'When the server received it, by its own clock, UTC. In a replay in recorded time it is market time',
)
const knownAt = column('known_at', 'TIMESTAMP', 'When the row reached the lake, UTC')
const feed = column('feed', 'VARCHAR', 'The feed that sent it')
const simulated = optional('simulated', 'BOOLEAN', 'The market was simulated; NULL: not known')

export const EVENT_TABLES = {
  trades: {
    name: 'trades',
    comment:
      'One trade that the engine took, as its source sent it and as the engine priced it. Trades that it refused are not recorded',
    lakeDateColumn: 'at',
    origin: 'journal',
    sortedBy: ['event_no'],
    columns: [
      eventNo,
      at,
      receivedAt,
      column('ts', 'TIMESTAMP', 'Time of the trade as its source says, UTC: that of its bar'),
      column('mint', 'VARCHAR', 'Token, base58'),
      column('side', 'VARCHAR', 'buy or sell'),
      column('token_amount', 'DOUBLE', 'Tokens traded, UI units, as sent'),
      optional('sol_amount', 'DOUBLE', 'SOL paid, as sent; NULL: not sent'),
      optional(
        'price_usd',
        'DOUBLE',
        'USD for one token, as the engine used it. NULL: its quote has no price in USD here',
      ),
      optional(
        'price_sol',
        'DOUBLE',
        'SOL for one token, as the engine used it: on pump.fun’s curve v_sol / v_tokens. NULL: not known',
      ),
      optional(
        'volume_usd',
        'DOUBLE',
        'What was paid, USD; without quote_amount price_usd times token_amount. NULL: as price_usd',
      ),
      optional('v_sol', 'DOUBLE', 'Virtual reserve of SOL after the trade, as sent; NULL: not sent'),
      optional('v_tokens', 'DOUBLE', 'Virtual reserve of tokens after the trade, as sent; NULL: not sent'),
      optional('wallet', 'VARCHAR', 'The trader, as sent; NULL: not sent'),
      optional('tx', 'VARCHAR', 'Signature of the transaction, as sent; NULL: not sent'),
      feed,
      optional(
        'reported_price_usd',
        'DOUBLE',
        'USD for one token, as sent. NULL: not sent, so price_usd is price_sol times sol_price_usd',
      ),
      optional('sol_price_usd', 'DOUBLE', 'The price of SOL in force, USD; NULL: none was known'),
      knownAt,
      simulated,
      schemaVersion,
      optional('quote_mint', 'VARCHAR', 'Mint of what was paid, as sent; NULL: not sent, which means SOL'),
      optional('quote_amount', 'DOUBLE', 'How much of it was paid, without fees, UI units; NULL: not sent'),
      optional('v_quote', 'DOUBLE', 'Virtual reserve of the quote after the trade, as sent; NULL: not sent'),
      optional(
        'quote_reserve',
        'DOUBLE',
        'What curve or pool holds of the quote after the trade; NULL: not sent',
      ),
      optional(
        'curve_tokens',
        'DOUBLE',
        'Tokens that the curve has left to sell after the trade; NULL: not sent',
      ),
      optional('slot', 'BIGINT', 'Number of the block; NULL: not from the chain'),
      optional(
        'event_index',
        'INTEGER',
        'Place among the events of its transaction: tx and event_index are its identity. NULL: not from the chain',
      ),
    ],
  },
  events: {
    name: 'events',
    comment:
      'One market event that is no trade, and that the engine took: launches, patches, prices of SOL, gaps, beginnings of runs',
    lakeDateColumn: 'at',
    origin: 'journal',
    sortedBy: ['event_no'],
    columns: [
      eventNo,
      at,
      receivedAt,
      column('ts', 'TIMESTAMP', 'Time of the event as its source says, UTC'),
      column(
        'kind',
        'VARCHAR',
        'token, patch, graduated, live, solPrice, analysisCount, disconnect, reconnect, gap, run or rewind; others may be added',
      ),
      optional('mint', 'VARCHAR', 'Token, base58; NULL: it concerns no single one'),
      feed,
      column('data', 'VARCHAR', 'The whole event as JSON, as it was sent'),
      knownAt,
      simulated,
      schemaVersion,
    ],
  },
} as const
