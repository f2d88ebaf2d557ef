// One healing: fetches what was missed, by blocks or by signatures, and knows what of it was had, what stays missing and how far it is.
import { nextTurn } from '../../../lib/wait.ts'
import type { MissingPart } from '../../../schema/event.ts'
import type { SourceLink } from '../../source-link.ts'
import { ALWAYS_ROOM, type FeedLog, type Room } from '../../types.ts'
import { untilRoom } from '../../wait.ts'
import type { CurveOrder } from '../curve-order.ts'
import {
  HEAL_ALONE_REQUESTS_MAX,
  HEAL_PROGRESS_MS,
  HEAL_TAKE_MS,
  PREDECESSOR_MS_MAX,
  SLOT_MS,
  TAKE_SLICE,
} from '../limits.ts'
import type { ChainSource } from '../source.ts'
import type { RawEvent } from '../transaction-events.ts'
import { inOrder, takeBlocks } from './by-blocks.ts'
import { listSignatures } from './by-signatures.ts'
import type { ToldTransaction } from './held-notifications.ts'
import { History, type PastFault, type PastSignature } from './history.ts'
import { MissingParts, type MissingReason } from './missing-parts.ts'

export interface HealingOptions {
  source: ChainSource
  signal: AbortSignal
  /** What was taken waits for its predecessor there. */
  order: CurveOrder
  link: SourceLink
  log: FeedLog
  /** How long an outage may be, and how long fetching may take, ms; 0: nothing is fetched. */
  healMs: number
  /** How much of what comes meanwhile is held back. */
  heldBytesMax?: number | undefined
  room?: Room | undefined
  /** The road that notifications take too. */
  take(told: ToldTransaction): void
  isTaken(signature: string): boolean
  timeOf(event: RawEvent): number | null
  /** Resolves when all questions that what came has raised are answered. */
  settled(): Promise<void>
}

export const PREDECESSOR_SLOTS = Math.ceil(PREDECESSOR_MS_MAX / SLOT_MS)

export class Work {
  /** The last slot that was taken or is told as missing. */
  atSlot: number
  /** Events that were fetched. */
  events = 0
  /** Connections that were lost when all was had. */
  losses = 0
  readonly history: History
  /** When the gap began, and when what was missed is to be had, Unix ms. */
  readonly sinceMs: number
  readonly untilMs: number
  /** All before this slot was taken. */
  readonly fromSlot: number
  readonly #missing: MissingParts
  #by: 'blocks' | 'signatures' | null = null
  /** Requests that are known to be needed yet; null: it is not known. */
  #requestsLeft: number | null = null
  readonly #startedMs: number
  #loggedMs: number
  readonly #options: HealingOptions

  constructor(
    options: HealingOptions,
    { sinceMs, untilMs, fromSlot }: Pick<Work, 'sinceMs' | 'untilMs' | 'fromSlot'>,
  ) {
    const { source, signal } = options
    this.#options = options
    this.sinceMs = sinceMs
    this.fromSlot = fromSlot
    this.atSlot = fromSlot - 1
    this.untilMs = untilMs
    this.history = new History(source, signal, untilMs)
    this.#missing = new MissingParts(sinceMs)
    this.#startedMs = this.#loggedMs = source.clock.monotonicMs()
  }

  /** Takes the blocks of these slots. @returns null, or why the rest of them was not tried, as `takeBlocks` */
  byBlocks(slots: readonly number[], beforeSlot: number | null): Promise<'over' | 'refused' | null> {
    this.#by ??= 'blocks'
    let left = slots.length
    this.#requestsLeft = left
    return takeBlocks(this.history, slots, this.atSlot, {
      onBlock: async ({ slot, transactions }) => {
        for (const [index, told] of transactions.entries()) {
          // Reading a block took long, and taking it does.
          if (index % TAKE_SLICE === 0) await nextTurn()
          if (this.#options.signal.aborted) return
          this.#take({ ...told, slot })
        }
        this.advance(slot, --left)
        await this.#afterEach(beforeSlot)
      },
      onMissing: async (slot, fault) => {
        // What is refused as a block may be had by itself: with a few requests, since all other blocks wait.
        const isHad = fault === 'refused' && (await this.bySignatures(slot + 1, HEAL_ALONE_REQUESTS_MAX))
        if (!isHad) this.miss(fault)
        this.advance(slot, --left)
      },
    })
  }

  /**
   * Where few blocks have something of ours, one request for each transaction is cheaper.
   * @param requestsMax as many as whole blocks would take, or are spent on one that is refused; null: no blocks can be had
   * @returns whether everything was taken, or told as missing
   */
  async bySignatures(beforeSlot: number, requestsMax: number | null): Promise<boolean> {
    const { history } = this
    const list = await listSignatures(history, {
      fromSlot: this.atSlot + 1,
      beforeSlot,
      requestsMax: requestsMax ?? Number.POSITIVE_INFINITY,
      isTaken: (signature) => this.#options.isTaken(signature),
    })
    if (!list.ok) {
      if (requestsMax !== null || list.fault === 'over') return false
      this.miss(list.fault)
      this.advance(beforeSlot - 1, 0)
      return true
    }
    this.#by = 'signatures'
    let left = list.value.length
    this.#requestsLeft = left
    const ask = ({ signature }: PastSignature) => history.transaction(signature)
    for await (const [{ slot }, past] of inOrder(list.value, ask)) {
      if (past.ok) this.#take({ ...past.value, slot })
      else if (past.fault === 'over') return false
      else this.miss(past.fault)
      this.advance(slot - 1, --left)
      await this.#afterEach(beforeSlot)
    }
    this.advance(beforeSlot - 1, 0)
    return true
  }

  #take(told: ToldTransaction): void {
    if (told.isTruncated) this.miss('refused')
    const timeMs = this.timeOf(told)
    if (timeMs !== null) this.#missing.had(timeMs)
    this.#tellMissing()
    this.events += told.events.length
    this.#options.take({ ...told, isTruncated: false })
  }

  /** The time of a transaction; null: none of its events has one. */
  timeOf({ events }: ToldTransaction): number | null {
    for (const event of events) {
      const timeMs = this.#options.timeOf(event)
      if (timeMs !== null) return timeMs
    }
    return null
  }

  /** What comes next cannot be had. */
  miss(fault: PastFault | MissingReason): void {
    if (fault !== 'over' && this.#missing.begin(fault)) this.#options.order.forget()
  }

  /** Nothing more is fetched: what is still missing is so until this time. */
  closeMissing(toMs: number): void {
    this.#missing.close(toMs)
    this.#tellMissing()
  }

  /** What stays missing is told before anything behind it is taken: a process that begins later goes on behind it. */
  #tellMissing(): void {
    const { link, source } = this.#options
    const parts = this.#missing.takeUntold()
    if (parts.length > 0) link.miss(this.sinceMs, source.clock.now(), this.untilMs + HEAL_TAKE_MS, parts)
  }

  /** All up to a slot was taken, or is told as missing. */
  advance(slot: number, requestsLeft: number): void {
    this.atSlot = Math.max(this.atSlot, slot)
    this.#requestsLeft = Math.max(0, requestsLeft)
    // Everything of earlier slots has come: what waits for more goes on.
    this.#options.order.expireSlots(this.atSlot - PREDECESSOR_SLOTS)
  }

  /** Tells the log now and then how far it is, and waits for room. */
  #afterEach(beforeSlot: number | null): Promise<void> {
    const { source, log } = this.#options
    const nowMs = source.clock.monotonicMs()
    if (nowMs - this.#loggedMs >= HEAL_PROGRESS_MS) {
      this.#loggedMs = nowMs
      log.info({ feed: 'solana', ...this.describe(beforeSlot) }, 'healing')
    }
    return this.room()
  }

  /** Resolves when there is room for more events. */
  room(): Promise<void> {
    return untilRoom(this.#options.room ?? ALWAYS_ROOM, this.#options.signal)
  }

  /** It has come to its end. @returns what stays missing */
  end(): readonly MissingPart[] {
    const { source, log } = this.#options
    const nowMs = source.clock.now()
    this.history.end()
    // The market has waited no longer, and has refused what came then.
    if (nowMs > this.untilMs + HEAL_TAKE_MS) this.#missing.all(nowMs, 'budget')
    const { parts } = this.#missing
    const { fromSlot, atSlot: toSlot } = this
    const tookMs = Math.round(source.clock.monotonicMs() - this.#startedMs)
    log.info(
      { feed: 'solana', by: this.#by, fromSlot, toSlot, tookMs, missing: parts },
      parts.length === 0 ? 'healed: nothing is missing' : 'healed in part: the rest stays missing',
    )
    return parts
  }

  /** How far it is, for the status of the feed and its log. @param beforeSlot the first that is had; null: it is not known */
  describe(beforeSlot: number | null): Record<string, unknown> {
    const { sinceMs, untilMs, fromSlot, atSlot } = this
    const { requests } = this.history
    const requestsLeft = this.#requestsLeft
    const toSlot = beforeSlot === null ? null : beforeSlot - 1
    const elapsedS = (this.#options.source.clock.monotonicMs() - this.#startedMs) / 1_000
    const perSecond = requests / Math.max(elapsedS, 0.001)
    return {
      by: this.#by,
      sinceMs,
      untilMs,
      fromSlot,
      toSlot,
      atSlot,
      percent:
        toSlot === null
          ? null
          : Math.floor((100 * (atSlot - fromSlot + 1)) / Math.max(1, toSlot - fromSlot + 1)),
      requests,
      requestsLeft,
      secondsLeft: requestsLeft === null ? null : Math.ceil(requestsLeft / perSecond),
    }
  }
}
