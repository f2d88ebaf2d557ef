// Makes up for what the feed has missed while it had no connection, or no process: fetches it, oldest first, while what comes is held
// back; then takes that, and tells the market that nothing is missing, or what is.
import { nextTurn } from '../../../lib/wait.ts'
import type { MissingPart } from '../../../schema/event.ts'
import type { SourceLink } from '../../source-link.ts'
import { ALWAYS_ROOM, type FeedLog, type Room } from '../../types.ts'
import { untilRoom } from '../../wait.ts'
import {
  BLOCK_RANGE_SLOTS,
  HEAL_ALONE_REQUESTS_MAX,
  HEAL_BACK_SLOTS,
  HEAL_PROGRESS_MS,
  HEAL_PROOF_MS_MAX,
  HEAL_TAKE_MS,
  PREDECESSOR_MS_MAX,
  SETTLE_MS_MAX,
  SLOT_MS,
  STAYS_SHOWN_MAX,
  TAKE_SLICE,
} from '../limits.ts'
import type { ChainSource } from '../source.ts'
import type { RawEvent } from '../transaction-events.ts'
import { inOrder, takeBlocks } from './by-blocks.ts'
import { listSignatures } from './by-signatures.ts'
import { HeldNotifications, type ToldTransaction } from './held-notifications.ts'
import { History, type PastFault } from './history.ts'
import { MissingParts, type MissingReason } from './missing-parts.ts'
import { describeProgress, type Work } from './work.ts'

/** The road that notifications take too. */
export interface HealingHandlers {
  take(told: ToldTransaction): void
  isTaken(signature: string): boolean
  /** Events may be missing: the curves say nothing of what comes next. */
  forgetOrder(): void
  /** Everything of earlier slots has come: what waits for more goes on. */
  expireSlots(beforeSlot: number): void
  timeOf(event: RawEvent): number | null
  /** What was taken by this monotonic time waits for its predecessor no longer. */
  expireTaken(toMs: number): void
  /** Whether something that was taken waits for its predecessor. */
  isWaiting(): boolean
  /** Resolves when all questions that what came has raised are answered. */
  settled(): Promise<void>
}

export interface HealingOptions {
  source: ChainSource
  link: SourceLink
  log: FeedLog
  /** How long an outage may be, and how long fetching may take, ms; 0: nothing is fetched. */
  healMs: number
  /** How much of what comes meanwhile is held back. */
  heldBytesMax?: number | undefined
  room?: Room | undefined
}

/** A connection that was lost. */
interface Loss {
  sinceMs: number
  lastSlot: number | null
}

/** A gap that is open. */
interface OpenGap {
  sinceMs: number
  /** All before this slot was taken; null: it is not known, or nothing is fetched. */
  fromSlot: number | null
}

/** Slots that are asked for beyond the first that was held back: that one of them has a block proves which before it have none. */
const SLOTS_BEYOND = 64
/** A connection tells the next slots whole, not the one in which it begins. */
const FIRST_SLOTS = 2
const POLL_MS = 2 * SLOT_MS
const PREDECESSOR_SLOTS = Math.ceil(PREDECESSOR_MS_MAX / SLOT_MS)

export class Healing {
  /** Gaps that were healed, those of them of which a part stays, and events that were fetched. */
  healed = 0
  inPart = 0
  events = 0
  readonly held: HeldNotifications
  #gap: OpenGap | null = null
  #work: Work | null = null
  #working: Promise<void> | null = null
  #isConnected = false
  /** A connection brings nothing at present, and may be dead. */
  #isPaused = false
  /** All that was held back is taken, what comes is taken too, and the gap is open yet. */
  #isGathering = false
  #newestSlot = 0
  /** When the first slot of the connection was told, monotonic ms. */
  #toldAtMs = 0
  /** Connections that were lost so far; and the first of them since all that was to be fetched was had. */
  #losses = 0
  #again: Loss | null = null
  readonly #stays: MissingPart[] = []
  readonly #options: HealingOptions
  readonly #handlers: HealingHandlers
  readonly #signal: AbortSignal

  constructor(options: HealingOptions, signal: AbortSignal, handlers: HealingHandlers) {
    this.#options = options
    this.held = new HeldNotifications(options.heldBytesMax)
    this.#signal = signal
    this.#handlers = handlers
  }

  /** Whether what comes is held back: something before it may be missing, and is fetched. */
  get isHolding(): boolean {
    return this.#gap !== null && this.#gap.fromSlot !== null && !this.#isGathering
  }

  /** Resolves when nothing is fetched any more; null: nothing is. */
  get working(): Promise<void> | null {
    return this.#working
  }

  get #nowMs(): number {
    return this.#options.source.clock.now()
  }

  /**
   * There is no connection. @param sinceMs until then nothing is missing, Unix ms
   * @param lastSlot the newest slot of which something was taken; null: it is not known
   */
  lost(sinceMs: number, lastSlot: number | null): void {
    this.#isConnected = false
    this.#isPaused = false
    this.#isGathering = false
    this.#losses++
    // What came is kept: it may be that it cannot be fetched again.
    this.held.firstSlot = null
    // What is missing since an earlier connection is still being fetched: this is more of it.
    if (this.#gap !== null) this.#again ??= { sinceMs, lastSlot }
    else this.#open({ sinceMs, lastSlot })
  }

  #open({ sinceMs, lastSlot }: Loss): void {
    const { link, healMs } = this.#options
    const nowMs = this.#nowMs
    const heals = lastSlot !== null && healMs > 0
    this.#gap = { sinceMs, fromSlot: heals ? Math.max(0, lastSlot - HEAL_BACK_SLOTS) : null }
    link.lose(sinceMs, nowMs, heals ? Math.max(nowMs, sinceMs + healMs) + HEAL_TAKE_MS : null)
    if (!heals) this.#handlers.forgetOrder()
  }

  /** The connection may be dead: nothing closes until it has proved to be or not. @param sinceMs until then nothing is missing, Unix ms */
  paused(sinceMs: number): void {
    const { link, healMs } = this.#options
    if (this.#gap !== null || this.#isPaused || healMs === 0) return
    this.#isPaused = true
    link.lose(sinceMs, this.#nowMs, this.#nowMs + healMs)
  }

  /** It was not: all has come. */
  resumed(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#options.link.heal(this.#nowMs)
  }

  /** There is a connection. */
  connected(): void {
    const { link, healMs } = this.#options
    const [gap, nowMs] = [this.#gap, this.#nowMs]
    this.#isConnected = true
    if (gap === null || this.#work !== null) return
    const { sinceMs, fromSlot } = gap
    if (fromSlot === null) {
      this.#gap = null
      link.restore(nowMs)
      return
    }
    link.lose(sinceMs, nowMs, nowMs + healMs + HEAL_TAKE_MS)
    this.#work = this.#begin(sinceMs, fromSlot, nowMs + healMs)
    if (nowMs - sinceMs > healMs) this.#miss(this.#work, 'too_long')
    this.#working = this.#run(this.#work).finally(() => {
      this.#working = null
    })
  }

  /**
   * The newest slot of the connection, as it tells it itself: the node that answers calls may be another one, behind it or ahead, and
   * then nobody would tell what lies between.
   */
  onSlot(slot: number): void {
    this.#newestSlot = Math.max(this.#newestSlot, slot)
    if (!this.#isConnected || !this.isHolding || this.held.firstSlot !== null) return
    this.held.firstSlot = slot + FIRST_SLOTS
    this.held.firstMs = this.#nowMs + FIRST_SLOTS * SLOT_MS
    this.#toldAtMs = this.#options.source.clock.monotonicMs()
  }

  #begin(sinceMs: number, fromSlot: number, untilMs: number): Work {
    const { source } = this.#options
    const history = new History(source, this.#signal, untilMs)
    const startedMs = source.clock.monotonicMs()
    return {
      by: null,
      fromSlot,
      atSlot: fromSlot - 1,
      sinceMs,
      untilMs,
      history,
      requestsLeft: null,
      missing: new MissingParts(sinceMs),
      losses: 0,
      startedMs,
      loggedMs: startedMs,
    }
  }

  async #run(work: Work): Promise<void> {
    const isTooLong = work.missing.isOpen
    for (;;) {
      const isThere = !isTooLong && (await this.#fetch(work))
      if (this.#signal.aborted) return
      if (isThere && this.#losses !== work.losses) continue
      if (!isThere) this.#miss(work, 'budget')
      const losses = this.#losses
      this.#closeMissing(work)
      await this.#takeHeld(work, losses)
      await this.#drain(work, losses, isThere)
      if (this.#signal.aborted) return
      // The connection may have ended meanwhile: then there is more to fetch.
      if (this.#losses === losses || !isThere) break
    }
    this.#finish(work)
  }

  /** Ends what is missing with the first slot that is whole. */
  #closeMissing(work: Work): void {
    const { held } = this
    this.#again = null
    work.missing.close(held.firstSlot === null ? this.#nowMs : this.#firstWholeMs(held.firstSlot))
    this.#tellMissing(work)
  }

  /** When the first slot that is whole began: by our clock, or what the chain says where its clock is ahead of ours. */
  #firstWholeMs(firstSlot: number): number {
    const first = this.held.firstFrom(firstSlot)
    const saidMs = first === undefined ? null : this.#timeOf(first)
    return Math.max(Math.min(this.#nowMs, this.held.firstMs), saidMs ?? 0)
  }

  /** What stays missing is told before anything behind it is taken: a process that begins later goes on behind it. */
  #tellMissing({ missing, sinceMs, untilMs }: Work): void {
    const parts = missing.takeUntold()
    if (parts.length > 0) this.#options.link.miss(sinceMs, this.#nowMs, untilMs + HEAL_TAKE_MS, parts)
  }

  /**
   * Waits until nothing that was taken waits for anything, while the gap is open and what comes is taken: after the gap it would be
   * late. @param isThere nothing more is fetched for what waits, whatever happens to the connection: false
   */
  async #drain(work: Work, losses: number, isThere: boolean): Promise<void> {
    const takenAtMs = this.#options.source.clock.monotonicMs()
    // Without a connection nothing comes, and more is missing than was told: that is the next gap, or more of this one.
    this.#isGathering = this.#losses === losses && this.#isConnected
    await this.#settle(work)
    if (this.#isGathering && this.#handlers.isWaiting()) await this.#wait(PREDECESSOR_MS_MAX)
    if (this.#losses === losses || !isThere) this.#handlers.expireTaken(takenAtMs)
    this.#isGathering = false
  }

  /**
   * Answers may take long, and where everything that comes raises new questions they have no end. Beyond the deadline all waits together
   * take as long as one: what is held back must not be late.
   */
  async #settle({ untilMs }: Work): Promise<void> {
    const leftMs = untilMs + SETTLE_MS_MAX - this.#nowMs
    await Promise.race([this.#handlers.settled(), this.#wait(Math.min(SETTLE_MS_MAX, leftMs))])
  }

  /** Takes what was held back. Ends with nothing held, in the turn in which the caller goes on. */
  async #takeHeld(work: Work, losses: number): Promise<void> {
    this.held.sort()
    for (let taken = 0; this.#losses === losses && !this.#signal.aborted; ) {
      const told = this.held.take()
      if (told === undefined) return
      this.#handlers.take(told)
      // The rest of a log comes before what follows it.
      if (told.isTruncated) await this.#settle(work)
      if (++taken % TAKE_SLICE > 0) continue
      await nextTurn()
      await this.#room()
    }
  }

  #finish(work: Work): void {
    const { source, log, link } = this.#options
    // What was held back and still waits for its predecessor goes on while bars are open: later it would be late.
    this.#handlers.expireSlots(this.#newestSlot - PREDECESSOR_SLOTS)
    this.#work = null
    this.#gap = null
    work.history.end()
    const tookMs = Math.round(source.clock.monotonicMs() - work.startedMs)
    const { by, fromSlot, atSlot: toSlot, missing, untilMs } = work
    // The market has waited no longer, and has refused what came then.
    if (this.#nowMs > untilMs + HEAL_TAKE_MS) missing.all(this.#nowMs, 'budget')
    const { parts } = missing
    log.info(
      { feed: 'solana', by, fromSlot, toSlot, tookMs, missing: parts },
      parts.length === 0 ? 'healed: nothing is missing' : 'healed in part: the rest stays missing',
    )
    this.healed++
    if (parts.length > 0) this.inPart++
    this.#stays.push(...parts)
    this.#stays.splice(0, this.#stays.length - STAYS_SHOWN_MAX)
    link.heal(this.#nowMs, parts)
    const again = this.#again
    this.#again = null
    if (again !== null) {
      this.#open(again)
      if (this.#isConnected) this.connected()
    } else if (!this.#isConnected) this.#open({ sinceMs: this.#nowMs, lastSlot: null })
  }

  /** Whether a trade of this time that is refused as late is told: with the gap that is open, or by a part that stays missing. */
  tells(timeMs: number): boolean {
    if (this.#gap !== null && timeMs >= this.#gap.sinceMs) return true
    return this.#stays.some(({ fromMs, toMs }) => timeMs >= fromMs && timeMs <= toMs)
  }

  /** @returns whether all before what is held back was had or is told as missing; false: there was no time for all */
  async #fetch(work: Work): Promise<boolean> {
    for (let isFirst = true; !this.#signal.aborted; ) {
      const { firstSlot } = this.held
      if (firstSlot !== null && work.atSlot >= firstSlot - 1) break
      const to = firstSlot === null ? work.atSlot + BLOCK_RANGE_SLOTS : firstSlot + SLOTS_BEYOND
      const listed = await work.history.slots(work.atSlot + 1, to)
      if (!listed.ok) {
        if (listed.fault === 'over') return false
        if (firstSlot === null) await this.#wait(POLL_MS)
        else if (!(await this.#bySignatures(work, firstSlot, null))) return false
        continue
      }
      const isProven = firstSlot !== null && listed.value.some((slot) => slot >= firstSlot)
      const slots = listed.value.filter((slot) => firstSlot === null || slot < firstSlot)
      // Slots go on, and the list does not: an endpoint that keeps no blocks may list none.
      const isStuck = firstSlot !== null && !isProven && this.#isProofOver()
      if (isFirst && this.#isConnected && !isProven && !isStuck) {
        await this.#wait(POLL_MS)
        continue
      }
      const isChoice = isFirst && isProven
      isFirst = false
      if (isChoice && (await this.#bySignatures(work, firstSlot, slots.length))) continue
      const end = await this.#byBlocks(work, slots, firstSlot)
      if (end === 'over') return false
      if (end === 'refused') {
        if (!(await this.#bySignatures(work, firstSlot ?? slots[slots.length - 1] + 1, null))) return false
      } else if (isProven) work.atSlot = Math.max(work.atSlot, firstSlot - 1)
      else if (isStuck) {
        if (work.atSlot < firstSlot - 1) this.#miss(work, 'refused')
        this.#advance(work, firstSlot - 1, 0)
      } else if (slots.length === 0) await this.#wait(POLL_MS)
    }
    work.losses = this.#losses
    this.#again = null
    await this.#settle(work)
    return true
  }

  #isProofOver(): boolean {
    return this.#options.source.clock.monotonicMs() - this.#toldAtMs > HEAL_PROOF_MS_MAX
  }

  #byBlocks(
    work: Work,
    slots: readonly number[],
    beforeSlot: number | null,
  ): Promise<'over' | 'refused' | null> {
    const { history, atSlot } = work
    work.by ??= 'blocks'
    let left = slots.length
    work.requestsLeft = left
    return takeBlocks(history, slots, atSlot, {
      onBlock: async ({ slot, transactions }) => {
        for (const [index, told] of transactions.entries()) {
          // Reading a block took long, and taking it does.
          if (index % TAKE_SLICE === 0) await nextTurn()
          if (this.#signal.aborted) return
          this.#take(work, { ...told, slot })
        }
        this.#advance(work, slot, --left)
        this.#logProgress(work, beforeSlot)
        await this.#room()
      },
      onMissing: async (slot, fault) => {
        // What is refused as a block may be had by itself: with a few requests, since all other blocks wait.
        const isHad =
          fault === 'refused' && (await this.#bySignatures(work, slot + 1, HEAL_ALONE_REQUESTS_MAX))
        if (!isHad) this.#miss(work, fault)
        this.#advance(work, slot, --left)
      },
    })
  }

  /**
   * Where few blocks have something of ours, one request for each transaction is cheaper.
   * @param requestsMax as many as whole blocks would take, or are spent on one that is refused; null: no blocks can be had
   * @returns whether everything was taken, or told as missing
   */
  async #bySignatures(work: Work, beforeSlot: number, requestsMax: number | null): Promise<boolean> {
    const { history, atSlot } = work
    const list = await listSignatures(history, {
      fromSlot: atSlot + 1,
      beforeSlot,
      requestsMax: requestsMax ?? Number.POSITIVE_INFINITY,
      isTaken: (signature) => this.#handlers.isTaken(signature),
    })
    if (!list.ok) {
      if (requestsMax !== null || list.fault === 'over') return false
      this.#miss(work, list.fault)
      this.#advance(work, beforeSlot - 1, 0)
      return true
    }
    work.by = 'signatures'
    let left = list.value.length
    work.requestsLeft = left
    const isThere = await inOrder(
      list.value,
      ({ signature }) => history.transaction(signature),
      async ({ slot }, past) => {
        if (past.ok) this.#take(work, { ...past.value, slot })
        else if (past.fault === 'over') return false
        else this.#miss(work, past.fault)
        this.#advance(work, slot - 1, --left)
        this.#logProgress(work, beforeSlot)
        await this.#room()
        return true
      },
    )
    if (isThere) this.#advance(work, beforeSlot - 1, 0)
    return isThere
  }

  #take(work: Work, told: ToldTransaction): void {
    if (told.isTruncated) this.#miss(work, 'refused')
    const timeMs = this.#timeOf(told)
    if (timeMs !== null) work.missing.had(timeMs)
    this.#tellMissing(work)
    this.events += told.events.length
    this.#handlers.take({ ...told, isTruncated: false })
  }

  /** The time of a transaction; null: none of its events has one. */
  #timeOf({ events }: ToldTransaction): number | null {
    for (const event of events) {
      const timeMs = this.#handlers.timeOf(event)
      if (timeMs !== null) return timeMs
    }
    return null
  }

  #miss(work: Work, fault: PastFault | MissingReason): void {
    if (fault !== 'over' && work.missing.begin(fault)) this.#handlers.forgetOrder()
  }

  #advance(work: Work, slot: number, requestsLeft: number): void {
    work.atSlot = Math.max(work.atSlot, slot)
    work.requestsLeft = Math.max(0, requestsLeft)
    this.#handlers.expireSlots(work.atSlot - PREDECESSOR_SLOTS)
  }

  #wait(ms: number): Promise<void> {
    return this.#options.source.wait(ms, this.#signal)
  }

  #room(): Promise<void> {
    return untilRoom(this.#options.room ?? ALWAYS_ROOM, this.#signal)
  }

  #logProgress(work: Work, beforeSlot: number | null): void {
    const { source, log } = this.#options
    const nowMs = source.clock.monotonicMs()
    if (nowMs - work.loggedMs < HEAL_PROGRESS_MS) return
    work.loggedMs = nowMs
    log.info({ feed: 'solana', ...describeProgress(work, beforeSlot, nowMs) }, 'healing')
  }

  /** For the status of the feed. */
  describe(): Record<string, unknown> {
    const { healed, inPart, events, held } = this
    const { source } = this.#options
    const work = this.#work
    return {
      healed,
      inPart,
      events,
      missing: this.#stays.map((part) => ({ ...part })),
      held: { notifications: held.size, bytes: held.bytes, dropped: held.dropped },
      now: work === null ? null : describeProgress(work, held.firstSlot, source.clock.monotonicMs()),
    }
  }
}
