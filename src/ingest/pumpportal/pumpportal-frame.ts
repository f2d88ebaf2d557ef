// Reads PumpPortal's frames as market events. Events get the time of receipt, because frames carry no time of their own.
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import { CURVE_SUPPLY, obeysCurve } from '../../schema/bonding-curve.ts'
import { amount, positive, URI_CHARS_MAX, WORD_CHARS_MAX } from '../../schema/bounds.ts'
import type { MarketEvent, TradeEvent } from '../../schema/event.ts'
import { isMint } from '../../schema/mint.ts'
import { MARKET_QUOTES } from '../../schema/quote.ts'

/** `price_contradicted`: its market cap is not its price times the supply; `curve_unknown`: its reserves lie on no known curve. */
type FrameFault = 'price_contradicted' | 'curve_unknown'

type FrameFigures = Pick<TradeFrame, keyof typeof reserves>

const PUMP_POOL = 'pump'
const PUMP_AMM_POOL = 'pump-amm'
const MARKET_CAP_TOLERANCE = 0.02

const isPumpCurve = ({ pool }: FrameFigures): boolean => pool == null || pool === PUMP_POOL

/**
 * Why no price follows from a frame; null: none contradicts it. A frame does not say what its amounts are paid in, nor how many tokens
 * there are: one of another quote or supply would give a price or a market cap that is wrong by a hundred or by two.
 */
function frameFault(frame: FrameFigures): FrameFault | null {
  const { vSolInBondingCurve: vSol, vTokensInBondingCurve: vTokens, marketCapSol } = frame
  const { pool, tokensInPool, solInPool } = frame
  let spot: number | null = null
  if (isPumpCurve(frame) && vSol != null && vTokens != null) {
    if (!obeysCurve(vSol, vTokens)) return 'curve_unknown'
    spot = vSol / vTokens
  } else if (pool === PUMP_AMM_POOL && solInPool != null && tokensInPool != null)
    spot = solInPool / tokensInPool
  if (spot === null || marketCapSol == null) return null
  const expected = spot * CURVE_SUPPLY
  return Math.abs(marketCapSol - expected) > expected * MARKET_CAP_TOLERANCE ? 'price_contradicted' : null
}

/** The meaning of a frame: market events, a message of the server, or nothing known. */
export type ParsedFrame =
  | {
      kind: 'events'
      key: string
      mint: string
      isLaunch: boolean
      events: MarketEvent[]
      /** Why it says no trade, although it is one: its price would be wrong. */
      fault: FrameFault | null
    }
  | { kind: 'notice'; message: string }
  | { kind: 'error'; message: string }
  | { kind: 'unknown' }

const text = z.string().max(1_000)
const mint = z.string().refine(isMint)
const signature = z.string().min(1).max(128)
/** Both reserves on pump.fun's own curve; frames of other pools have other fields. */
const reserves = {
  pool: text.nullish(),
  vSolInBondingCurve: positive.nullish(),
  vTokensInBondingCurve: positive.nullish(),
  tokensInPool: positive.nullish(),
  solInPool: positive.nullish(),
  marketCapSol: amount.nullish(),
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

type MarketFrame = z.infer<typeof marketFrame>
type CreateFrame = z.infer<typeof createFrame>
type TradeFrame = z.infer<typeof tradeFrame>

const NOTICE_CHARS_MAX = 300

/**
 * The reserves after the trade, of pump.fun's own curve and pools. A pool's are told with the quote: its price is theirs, and not that
 * of a few of the smallest units, which is rounded.
 */
function reservesAfter(frame: CreateFrame | TradeFrame, solAmount: number): Partial<TradeEvent> {
  const { pool, vSolInBondingCurve: vSol, vTokensInBondingCurve: vTokens, tokensInPool, solInPool } = frame
  if (isPumpCurve(frame) && vSol != null && vTokens != null) return { vSol, vTokens }
  if (pool === PUMP_AMM_POOL && solInPool != null && tokensInPool != null)
    return {
      vSol: solInPool,
      vTokens: tokensInPool,
      quoteMint: MARKET_QUOTES.sol,
      quoteAmount: solAmount,
      vQuote: solInPool,
      quoteReserve: solInPool,
    }
  return { vSol: undefined, vTokens: undefined }
}

function toTrade(
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
    ...reservesAfter(frame, solAmount),
    wallet: truncateText(frame.traderPublicKey, WORD_CHARS_MAX),
    tx: frame.signature,
  }
}

function launchEvents(frame: CreateFrame, ts: number, fault: FrameFault | null): MarketEvent[] {
  const name = frame.name || frame.symbol || frame.mint
  const token: MarketEvent = {
    type: 'token',
    mint: frame.mint,
    ts,
    name: truncateText(name, WORD_CHARS_MAX),
    symbol: truncateText(frame.symbol || name, WORD_CHARS_MAX),
    uri: frame.uri == null ? undefined : truncateText(frame.uri, URI_CHARS_MAX),
    creator: truncateText(frame.traderPublicKey, WORD_CHARS_MAX),
    totalSupply: frame.pool === PUMP_POOL && fault === null ? CURVE_SUPPLY : undefined,
  }
  // The creator's first purchase is part of the launch transaction.
  const { initialBuy, solAmount } = frame
  return initialBuy && solAmount && fault === null
    ? [token, toTrade(frame, 'buy', initialBuy, solAmount, ts)]
    : [token]
}

function toEvents(frame: MarketFrame, ts: number, fault: FrameFault | null): MarketEvent[] {
  switch (frame.txType) {
    case 'create':
      return launchEvents(frame, ts, fault)
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
      return fault !== null ? [] : [toTrade(frame, frame.txType, frame.tokenAmount, frame.solAmount, ts)]
  }
}

/** An error value of any shape as a short text. */
function toShortText(value: unknown): string {
  if (typeof value === 'string') return value.slice(0, NOTICE_CHARS_MAX)
  try {
    return JSON.stringify(value).slice(0, NOTICE_CHARS_MAX)
  } catch {
    // Nested too deep for JSON.
    return `an unreadable ${Array.isArray(value) ? 'array' : typeof value}`
  }
}

/**
 * What a frame that comes twice has in common with itself, and with no other: a transaction may trade several tokens, for several
 * wallets, or one token several times, which leaves other reserves each time. At most some hundred characters.
 */
function keyOf(frame: MarketFrame): string {
  const parts = [frame.signature, frame.txType, frame.mint]
  if (frame.txType === 'create' || frame.txType === 'migrate') return parts.join(':')
  const { traderPublicKey, tokenAmount, solAmount, vTokensInBondingCurve, tokensInPool } = frame
  const wallet = truncateText(traderPublicKey, WORD_CHARS_MAX)
  return [...parts, wallet, tokenAmount, solAmount, vTokensInBondingCurve ?? tokensInPool].join(':')
}

/** Parses one frame. Its `key` identifies frames that come twice. */
export function parseFrame(frame: unknown, receivedAtMs: number): ParsedFrame {
  const market = safeParse(marketFrame, frame)
  if (market.success) {
    const { txType, mint: frameMint } = market.data
    const fault = market.data.txType === 'migrate' ? null : frameFault(market.data)
    const events = toEvents(market.data, receivedAtMs, fault)
    const key = keyOf(market.data)
    return { kind: 'events', key, mint: frameMint, isLaunch: txType === 'create', events, fault }
  }
  const error = safeParse(errorFrame, frame)
  if (error.success && error.data.errors !== undefined) {
    return { kind: 'error', message: toShortText(error.data.errors) }
  }
  const notice = safeParse(noticeFrame, frame)
  return notice.success
    ? { kind: 'notice', message: notice.data.message.slice(0, NOTICE_CHARS_MAX) }
    : { kind: 'unknown' }
}
