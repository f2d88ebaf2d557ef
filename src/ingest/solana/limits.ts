// Bounds of the feed from the chain. Every number of an endpoint is checked against one of these.
import { assert } from '../../lib/assert.ts'

/** A larger answer over HTTP is not read. A block of mainnet is some megabytes. */
export const RPC_ANSWER_BYTES_MAX = 64 * 1024 * 1024
/** Without a byte for this long a call has failed. An answer that goes on coming, as a block does on a slow line, has six times as long. */
export const RPC_TIMEOUT_MS = 10_000
/** Calls in flight at once. */
export const RPC_CONCURRENCY = 8
/** Calls that wait for their turn; one more is refused at once. */
export const RPC_WAITING_MAX = 10_000
/** The pause after an answer 429: this long, or what Retry-After says up to the maximum. */
export const RPC_PAUSE_MS = 1_000
export const RPC_PAUSE_MS_MAX = 60_000
export const RPC_PER_SECOND_DEFAULT = 8
export const RPC_PER_SECOND_MAX = 10_000
export const ENDPOINTS_MAX = 16
/** A notification is some kilobytes: its log has 10 000 bytes at most. A larger frame ends the connection. */
export const FRAME_BYTES_MAX = 1024 * 1024
/** Without a slot for this long a connection counts as dead, however open its socket. */
export const PULSE_MS_MAX = 5_000
/** Without a log of one program for this long, while slots come, its subscription counts as dead. */
export const LOGS_SILENCE_MS_MAX = 60_000
/** Subscriptions that are unanswered after this long end the connection. */
export const SUBSCRIBE_MS_MAX = 10_000
/** Lines of one log, and inner instructions of one transaction, that are looked at. */
export const LOG_LINES_MAX = 4_096
export const INNER_INSTRUCTIONS_MAX = 4_096
/** Transactions remembered to detect repeated notifications. At the maximum the one seen longest ago is forgotten. */
export const TRANSACTIONS_SEEN_MAX = 200_000
/** Curves whose reserves are remembered, to order their trades. */
export const CURVES_MAX = 200_000
/** How long a trade waits for the one before it on its curve, and how many wait at most: beyond it the oldest goes on. */
export const PREDECESSOR_MS_MAX = 2_000
export const PREDECESSORS_WAITING_MAX = 20_000
/** A trade of a token that is held and has been silent waits no longer when it is this old: the market takes none that is 5 s late. One
 *  that has traded within this time is not silent for it (10 s) before the wait is over. */
export const WAITING_AGE_MS_MAX = 3_500
export const SILENT_AFTER_MS = 7_000
/** Pools and mints that are known. At the maximum the one used longest ago is asked for again. */
export const POOLS_MAX = 100_000
export const MINTS_MAX = 200_000
/** Accounts that wait to be asked for; one more is not had, and asked for again when it is next needed. */
export const ACCOUNTS_WAITING_MAX = 50_000
/** Accounts of one call. */
export const ACCOUNTS_PER_CALL = 100
/** Swaps that wait until their pool is known; one more is dropped, which is counted. So many trades on curves wait for the decimals of
 *  their quote; one more goes on without its amounts. */
export const SWAPS_WAITING_MAX = 20_000
/** How long accounts are collected before they are asked for, and how often an account is asked for that could not be had. */
export const ACCOUNTS_COLLECT_MS = 200
export const ACCOUNT_ATTEMPTS_MAX = 3
/** The same where the node does not know an account yet that an event has named: for as long as the event is not too late. */
export const ACCOUNT_BEHIND_ATTEMPTS_MAX = 10
/** Transactions with a truncated log that are fetched or wait for it; one more is given up, which is counted and told. */
export const FETCHES_WAITING_MAX = 2_000
/** How often a transaction is asked for that the endpoint does not have yet, and the wait between. */
export const FETCH_ATTEMPTS_MAX = 8
export const FETCH_RETRY_MS = 500
/** Transactions that are asked for at once: several that nobody has hold up those behind them no longer than one. So many ask no oftener
 *  than the default rate of requests allows. */
export const FETCH_CONCURRENCY = 3
/** Calls in flight at once that give way to all others. */
export const RPC_SPARE_CONCURRENCY = 4
/** How long an endpoint is not asked for a method that it has refused, and after how many answers 429 in a row to such a call it counts
 *  as refused. */
export const METHOD_REFUSED_MS = 1_800_000
export const METHOD_BUSY_MAX = 3
/** How old may be what the chain says of a token before it is asked for again: where somebody reads the token or submits, where it is one
 *  of the hottest, and where it is traded. */
export const ENRICH_ACCOUNTS_FRESH_MS = { asked: 600_000, hot: 900_000, traded: 1_800_000 } as const
export const ENRICH_HOLDERS_FRESH_MS = { asked: 300_000, hot: 600_000, traded: 1_800_000 } as const
/** The hottest tokens that are asked about before others: the first pages of the list. */
export const ENRICH_HOTTEST = 200
/** Tokens whose holders are asked for at once: with what a call takes it is as many as share its hundred accounts. */
export const ENRICH_HOLDERS_CONCURRENCY = 4
/** What could not be had is asked for again after this long, so many times. */
export const ENRICH_RETRY_MS = 30_000
export const ENRICH_ATTEMPTS_MAX = 4
export const ENRICH_TICK_MS = 5_000
/** Tokens that wait, of each urgency; one more displaces the one of its urgency that was wanted longest ago, which is counted, and asked
 *  about when it is wanted again. */
export const ENRICH_WAITING_MAX = 4_096
/** Tokens whose answers' ages are remembered. At the maximum the one wanted longest ago is asked for again. */
export const ENRICH_KNOWN_MAX = 100_000
/** Accounts of one answer of getTokenLargestAccounts. */
export const LARGEST_ACCOUNTS_MAX = 20
/** Apart by more than this share, the two prices of SOL are not believed. */
export const SOL_PRICES_APART_MAX = 0.02
/** A price of SOL that is older counts for nothing, in the comparison and for trades. */
export const SOL_PRICE_AGE_MS_MAX = 600_000
/** Pyth's own uncertainty beyond this share of the price: it is not believed. */
export const SOL_PRICE_CONFIDENCE_MAX = 0.05
/** An event whose time is further ahead of the clock is refused. */
export const EVENT_AHEAD_MS_MAX = 600_000
/** Bytes of an event that could not be read which a log line shows. */
export const SAMPLE_BYTES_MAX = 1_024
/** All answers of a tape that is played; one that is written ends before them. */
export const TAPE_ANSWERS_BYTES_MAX = 512 * 1024 * 1024
/** A tape ends where so much of it waits to be compressed and written. */
export const TAPE_WAITING_BYTES_MAX = 64 * 1024 * 1024
/** How long an outage may be that is made up for, and how long that may take at most. */
export const HEAL_MS_DEFAULT = 600_000
export const HEAL_MS_MAX = 3_600_000
/** A block takes this long on average. */
export const SLOT_MS = 400
/** How far before the newest slot that was taken a feed begins to make up for what it missed: what was still on its way when the connection
 *  ended, or waited for its predecessor, its pool or the rest of its log when the process did. What was taken does not count twice. */
export const HEAL_BACK_SLOTS = 25
/** So much later than the newest event a missed one may have happened when a connection ends. */
export const IN_FLIGHT_MS = 3_000
/** Slots of one request for the list of blocks, and signatures of one request. More takes several. */
export const BLOCK_RANGE_SLOTS = 10_000
export const SIGNATURES_PER_CALL = 1_000
/** Blocks and transactions that are asked for ahead of the one whose turn it is. */
export const HEAL_AHEAD = 4
/** Requests by which the transactions of one block are had that is refused. On mainnet that is not enough: it is told as missing. */
export const HEAL_ALONE_REQUESTS_MAX = 32
/** The longest pause between attempts to reach an endpoint while what was missed is fetched. */
export const HEAL_RETRY_MS_MAX = 5_000
/** How long an endpoint that does not answer is waited for where all others have refused what is asked. */
export const HEAL_AWAY_MS_MAX = 20_000
/** How long the list of blocks may take to reach a connection's first slots: what it does not list by then counts as refused. */
export const HEAL_PROOF_MS_MAX = 20_000
/** How long a connection's first slots are waited for; and what is left of the time for taking what was held back meanwhile. */
export const HEAL_TAKE_MS = 30_000
/** How long a gap waits for what was asked about its events before it ends: what is answered later may be late, and is told as refused. */
export const SETTLE_MS_MAX = 10_000
/** What comes meanwhile is held back up to this size; beyond it the oldest is fetched too. */
export const HELD_BYTES_MAX = 64 * 1024 * 1024
/** Transactions that were held back or fetched of which so many are taken before other work has its turn. */
export const TAKE_SLICE = 64
/** How often the progress is logged. */
export const HEAL_PROGRESS_MS = 5_000
/** Without a slot for this long events may be missing, though the connection may still go on: until a slot comes no bar closes. */
export const PAUSE_MS = 2_000
/** Intervals that could not be had, which the status of the feed shows: the newest. */
export const STAYS_SHOWN_MAX = 16

assert(
  FETCH_CONCURRENCY + HEAL_AHEAD < RPC_CONCURRENCY,
  'prices and pools find a place while transactions and the past do not come',
)
