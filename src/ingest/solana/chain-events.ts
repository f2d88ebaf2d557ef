// From the events of transactions to events of the market: decoded, translated, each curve in its order, each pool by its token.
import type { MarketEvent, TradeEvent } from '../../schema/event.ts'
import type { Accounts, Mints } from './accounts.ts'
import { CurveOrder } from './curve-order.ts'
import { type DecodedEvent, readEvent } from './decode-event.ts'
import { SAMPLE_BYTES_MAX, SWAPS_WAITING_MAX } from './limits.ts'
import { Pools, type PoolsOptions } from './pools.ts'
import { CURVE_TOKEN_DECIMALS, quoteMintOf, toUnits } from './quotes.ts'
import type { RawEvent } from './transaction-events.ts'
import {
  type ChainPlace,
  type CurveStep,
  curveQuoteDecimals,
  eventTimeMs,
  saysWhatWasPaid,
  translateCreate,
  translateGraduated,
  translateReserves,
  translateSwap,
  translateTrade,
} from './translate.ts'

export type ChainEventsOptions = PoolsOptions

export interface ChainEventsHandlers {
  apply(event: MarketEvent): void
  /** An event of ours that could not be read: layouts have changed. */
  onUnreadable(name: string, place: ChainPlace, sample: string): void
  /** An event whose time cannot be, or is too far ahead of the clock of this machine. */
  onTimeInvalid(name: string, place: ChainPlace): void
}

/** A pool has no order but that of the block; its swaps come after what happened on the curve. */
const swapStep = (trade: TradeEvent): CurveStep => ({
  mint: trade.mint,
  before: null,
  after: null,
  events: [trade],
})

/** When a transaction was told. */
export interface Told {
  slot: number
  signature: string
  /** Of the wall clock, and of the monotonic one. */
  nowMs: number
  monotonicMs: number
  /** Whether the market may refuse it as late: nothing holds its bars open. */
  isLive: boolean
}

interface Arrival {
  monotonicMs: number
  /** How much later than it happened it was told; 0: that does not matter. */
  ageMs: number
}

/** Counts by the name of an event. */
type Counts = Record<string, number>
const countIn = (counts: Counts, name: string): void => {
  counts[name] = (counts[name] ?? 0) + 1
}

export class ChainEvents {
  readonly decoded: Counts = {}
  readonly unreadable: Counts = {}
  /** Events with bytes behind the last field that is known. */
  readonly longer: Counts = {}
  /** Discriminators of these programs that are none of ours. */
  unknown = 0
  readonly faults: Counts = {}
  /** Events whose time cannot be. */
  timeInvalid = 0
  /** Time of the newest event that was taken, Unix ms; 0: none was. */
  newestMs = 0
  readonly pools: Pools
  readonly order: CurveOrder
  /** Trades on curves whose quote is asked for. */
  #tradesWaiting = 0
  readonly #mints: Mints
  readonly #options: ChainEventsOptions
  readonly #handlers: ChainEventsHandlers

  constructor(accounts: Accounts, mints: Mints, options: ChainEventsOptions, handlers: ChainEventsHandlers) {
    this.#mints = mints
    this.#options = options
    this.#handlers = handlers
    this.pools = new Pools(accounts, mints, options)
    this.order = new CurveOrder((step) => this.#applyStep(step))
  }

  take(raw: RawEvent, { slot, signature, nowMs, monotonicMs, isLive }: Told): void {
    const place: ChainPlace = { slot, signature, index: raw.index }
    const reading = readEvent(raw.program, raw.bytes)
    const isCut =
      reading.kind === 'event' && reading.event.name === 'TradeEvent' && !saysWhatWasPaid(reading.event)
    if (reading.kind === 'unknown') {
      this.unknown++
      return
    }
    if (reading.kind === 'unreadable' || isCut) {
      const name = reading.kind === 'event' ? reading.event.name : reading.name
      countIn(this.unreadable, name)
      const sample = Buffer.from(raw.bytes.subarray(0, SAMPLE_BYTES_MAX)).toString('base64')
      this.#handlers.onUnreadable(name, place, sample)
      return
    }
    const { event } = reading
    countIn(this.decoded, event.name)
    if (event.leftOverBytes > 0) countIn(this.longer, event.name)
    const ts = eventTimeMs(event, nowMs)
    if (ts === null) {
      this.timeInvalid++
      this.#handlers.onTimeInvalid(event.name, place)
    } else {
      this.newestMs = Math.max(this.newestMs, ts)
      this.#translate(event, place, ts, { monotonicMs, ageMs: isLive ? nowMs - ts : 0 })
    }
  }

  /** The time of an event, Unix ms; null where it has none, or is none of ours. */
  timeOf({ program, bytes }: RawEvent, nowMs: number): number | null {
    const reading = readEvent(program, bytes)
    return reading.kind === 'event' && reading.event.has('timestamp')
      ? eventTimeMs(reading.event, nowMs)
      : null
  }

  #translate(event: DecodedEvent, place: ChainPlace, ts: number, arrival: Arrival): void {
    const addStep = (step: CurveStep) => this.#add(step, place.slot, arrival)
    switch (event.name) {
      case 'CreateEvent':
        this.#mints.setDecimals(event.text('mint') ?? '', CURVE_TOKEN_DECIMALS)
        addStep(this.#createStep(translateCreate(event, ts)))
        break
      case 'TradeEvent':
        this.#withQuoteDecimals(event, place.slot, (decimals) =>
          addStep(translateTrade(event, place, ts, decimals)),
        )
        break
      case 'UpdateMayhemVirtualParamsEvent':
        addStep(translateReserves(event))
        break
      case 'CompleteEvent':
        addStep(translateGraduated(event, ts))
        break
      case 'CompletePumpAmmMigrationEvent':
        this.#takeMigration(event, place.slot)
        addStep(translateGraduated(event, ts))
        break
      case 'CreatePoolEvent':
        this.#takePool(event, place.slot)
        break
      default:
        this.#takeSwap(event, place, ts, arrival)
    }
  }

  /** A trade of a token that the market does not hold is not late. */
  #add(step: CurveStep, slot: number, { monotonicMs, ageMs }: Arrival): void {
    this.order.add(step, slot, monotonicMs, this.#options.holds(step.mint) ? ageMs : 0)
  }

  /** A token of a run before that is told again: its curve is no longer as it began. */
  #createStep(step: CurveStep): CurveStep {
    const isRestored = !this.order.knows(step.mint) && this.#options.holds(step.mint)
    return isRestored ? { ...step, after: null } : step
  }

  /**
   * Of a quote that is no known one, its mint's account says the decimals: its trades wait for the answer, in their order. Where it could
   * not be had, or too many wait, the amounts are not known.
   */
  #withQuoteDecimals(event: DecodedEvent, slot: number, then: (decimals: number | null) => void): void {
    const quoteMint = quoteMintOf(event.text('quote_mint'))
    const decimals = curveQuoteDecimals(event) ?? this.#mints.decimals(quoteMint)
    if (decimals !== undefined || this.#tradesWaiting >= SWAPS_WAITING_MAX) {
      then(decimals ?? null)
      return
    }
    this.#tradesWaiting++
    this.#mints.want(quoteMint, slot, (mint) => {
      this.#tradesWaiting--
      then(mint?.decimals ?? null)
    })
  }

  #takeMigration(event: DecodedEvent, slot: number): void {
    const [mint, pool] = [event.text('mint') ?? '', event.text('pool') ?? '']
    this.#mints.setDecimals(mint, CURVE_TOKEN_DECIMALS)
    const quoteMint = quoteMintOf(event.text('quote_mint'))
    this.pools.set(pool, { baseMint: mint, quoteMint, creator: null }, slot)
  }

  #takePool(event: DecodedEvent, slot: number): void {
    const [baseMint, quoteMint] = [event.text('base_mint') ?? '', event.text('quote_mint') ?? '']
    this.#mints.setDecimals(baseMint, Number(event.integer('base_mint_decimals')))
    this.#mints.setDecimals(quoteMint, Number(event.integer('quote_mint_decimals')))
    const creator = event.text('creator') ?? ''
    this.pools.set(event.text('pool') ?? '', { baseMint, quoteMint, creator }, slot)
  }

  #takeSwap(event: DecodedEvent, place: ChainPlace, ts: number, arrival: Arrival): void {
    this.pools.with(event.text('pool') ?? '', place.slot, (pool) => {
      if (pool === null) countIn(this.faults, 'pool_not_wanted')
      else this.#add(swapStep(translateSwap(event, place, ts, pool)), place.slot, arrival)
    })
  }

  #applyStep({ mint, events, isMayhem = null }: CurveStep): void {
    for (const event of events)
      if (event.type === 'trade') this.#applyTrade(mint, event, isMayhem)
      else this.#handlers.apply(event)
  }

  /** Of a token that is new here and was not seen to be created, its account says the supply; none is made by what that says. */
  #applyTrade(mint: string, trade: TradeEvent, isMayhem: boolean | null): void {
    const isNew = !this.#options.holds(mint)
    this.#handlers.apply(trade)
    if (!isNew) return
    this.#mints.want(mint, trade.slot ?? 0, (account) => {
      if (account == null || !this.#options.holds(mint)) return
      const totalSupply = toUnits(account.supply, account.decimals)
      if (!(totalSupply > 0)) return
      const fields = isMayhem === null ? { totalSupply } : { totalSupply, isMayhem }
      this.#handlers.apply({ type: 'patch', mint, ts: trade.ts, fields })
    })
  }

  describe(): Record<string, unknown> {
    const { decoded, unreadable, longer, unknown, faults, pools, order } = this
    return {
      events: { ...decoded },
      unreadable: { ...unreadable },
      longerThanKnown: { ...longer },
      unknownDiscriminators: unknown,
      ignored: { ...faults },
      pools: { known: pools.size, swapsWaiting: pools.waiting, swapsDropped: pools.dropped },
      curves: { waiting: order.waiting + this.#tradesWaiting, unproven: order.unproven },
    }
  }

  /** A sentence where events of ours could not be read; null: all could. */
  get problem(): string | null {
    const names = Object.entries(this.unreadable).map(([name, count]) => `${count} ${name}`)
    return names.length === 0
      ? null
      : `Events of the chain could not be read, their layout may have changed: ${names.join(', ')}`
  }
}
