// In: one parsed frame of PumpPortal, of unknown shape. Out: the events it tells of, stamped with the time of receipt,
// because no frame bears a time of its own. Never connects, never remembers.
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { truncateText } from '../../lib/truncate-text.ts'
import { amount, positive, URI_CHARS_MAX, WORD_CHARS_MAX } from '../../schema/bounds.ts'
import type { MarketEvent, TradeEvent } from '../../schema/event.ts'
import { isMint } from '../../schema/mint.ts'

/** What a frame was: events, word from the server itself, or nothing that is known. */
export type FrameReading =
  | { kind: 'events'; key: string; mint: string; isLaunch: boolean; events: MarketEvent[] }
  | { kind: 'notice'; message: string }
  | { kind: 'error'; message: string }
  | { kind: 'unknown' }

const text = z.string().max(1_000)
const mint = z.string().refine(isMint)
const signature = z.string().min(1).max(128)
/** pump.fun's curve: both or none. Other pools name what lies in them instead. */
const reserves = {
  pool: text.nullish(),
  vSolInBondingCurve: positive.nullish(),
  vTokensInBondingCurve: positive.nullish(),
}
const createFrame = z.object({
  txType: z.literal('create'),
  signature,
  mint,
  traderPublicKey: text,
  initialBuy: amount.nullish(),
  solAmount: amount.nullish(),
  name: text.nullish(),
  symbol: text.nullish(),
  uri: text.nullish(),
  ...reserves,
})
const tradeFrame = z.object({
  txType: z.enum(['buy', 'sell']),
  signature,
  mint,
  traderPublicKey: text,
  tokenAmount: amount,
  solAmount: amount,
  ...reserves,
})
const migrateFrame = z.object({ txType: z.literal('migrate'), signature, mint, pool: text.nullish() })
const marketFrame = z.discriminatedUnion('txType', [createFrame, tradeFrame, migrateFrame])
const noticeFrame = z.object({ message: z.string() })
const errorFrame = z.object({ errors: z.unknown() })

type CreateFrame = z.infer<typeof createFrame>
type TradeFrame = z.infer<typeof tradeFrame>

const PUMP_POOL = 'pump'
const PUMP_SUPPLY = 1_000_000_000
const NOTICE_CHARS_MAX = 300

/** Virtual reserves count on pump.fun's own curve only. */
function curveOf(frame: CreateFrame | TradeFrame): Pick<TradeEvent, 'vSol' | 'vTokens'> {
  const { pool, vSolInBondingCurve: vSol, vTokensInBondingCurve: vTokens } = frame
  const isPump = pool == null || pool === PUMP_POOL
  return isPump && vSol != null && vTokens != null
    ? { vSol, vTokens }
    : { vSol: undefined, vTokens: undefined }
}

function tradeOf(
  frame: CreateFrame | TradeFrame,
  side: 'buy' | 'sell',
  tokenAmount: number,
  solAmount: number,
  ts: number,
): TradeEvent {
  return {
    type: 'trade',
    mint: frame.mint,
    ts,
    side,
    tokenAmount,
    priceUsd: undefined,
    solAmount,
    ...curveOf(frame),
    wallet: truncateText(frame.traderPublicKey, WORD_CHARS_MAX),
    tx: frame.signature,
  }
}

function createEvents(frame: CreateFrame, ts: number): MarketEvent[] {
  const name = frame.name || frame.symbol || frame.mint
  const token: MarketEvent = {
    type: 'token',
    mint: frame.mint,
    ts,
    name: truncateText(name, WORD_CHARS_MAX),
    symbol: truncateText(frame.symbol || name, WORD_CHARS_MAX),
    uri: frame.uri == null ? undefined : truncateText(frame.uri, URI_CHARS_MAX),
    creator: truncateText(frame.traderPublicKey, WORD_CHARS_MAX),
    totalSupply: frame.pool === PUMP_POOL ? PUMP_SUPPLY : undefined,
  }
  // The creator's own first purchase happens in the transaction of the launch.
  const { initialBuy, solAmount } = frame
  return initialBuy && solAmount ? [token, tradeOf(frame, 'buy', initialBuy, solAmount, ts)] : [token]
}

function eventsOf(frame: z.infer<typeof marketFrame>, ts: number): MarketEvent[] {
  switch (frame.txType) {
    case 'create':
      return createEvents(frame, ts)
    case 'migrate':
      return [
        {
          type: 'graduated',
          mint: frame.mint,
          ts,
          pool: frame.pool == null ? undefined : truncateText(frame.pool, WORD_CHARS_MAX),
        },
      ]
    default:
      return [tradeOf(frame, frame.txType, frame.tokenAmount, frame.solAmount, ts)]
  }
}

/** What the upstream says of an error, as text: it may say it in any shape. */
function shortText(value: unknown): string {
  if (typeof value === 'string') return value.slice(0, NOTICE_CHARS_MAX)
  try {
    return JSON.stringify(value).slice(0, NOTICE_CHARS_MAX)
  } catch {
    // Nested too deep to be written out.
    return `an unreadable ${Array.isArray(value) ? 'array' : typeof value}`
  }
}

/** What a frame says. `key` (signature and kind of transaction) tells a repeated frame from a new one. */
export function readFrame(frame: unknown, receivedAtMs: number): FrameReading {
  const market = safeParse(marketFrame, frame)
  if (market.success) {
    const { txType, signature: sign, mint: of } = market.data
    const events = eventsOf(market.data, receivedAtMs)
    return { kind: 'events', key: `${sign}:${txType}`, mint: of, isLaunch: txType === 'create', events }
  }
  const error = safeParse(errorFrame, frame)
  if (error.success && error.data.errors !== undefined) {
    return { kind: 'error', message: shortText(error.data.errors) }
  }
  const notice = safeParse(noticeFrame, frame)
  return notice.success
    ? { kind: 'notice', message: notice.data.message.slice(0, NOTICE_CHARS_MAX) }
    : { kind: 'unknown' }
}
