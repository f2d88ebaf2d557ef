// Makes up for what the feed has missed while it had no connection, or no process: fetches it, oldest first, while what comes is held
// back; then takes that, and tells the market that nothing is missing, or what is.
import { nextTurn } from '../../../lib/wait.ts'
import type { MissingPart } from '../../../schema/event.ts'
import {
  BLOCK_RANGE_SLOTS,
  HEAL_BACK_SLOTS,
  HEAL_PROOF_MS_MAX,
  HEAL_TAKE_MS,
  PREDECESSOR_MS_MAX,
  SETTLE_MS_MAX,
  SLOT_MS,
  STAYS_SHOWN_MAX,
  TAKE_SLICE,
} from '../limits.ts'
import { HeldNotifications } from './held-notifications.ts'
import { type HealingOptions, PREDECESSOR_SLOTS, Work } from './work.ts'

/** A connection that was lost. */
interface Loss {
  /** Until then nothing is missing, Unix ms. */
  sinceMs: number
  /** The newest slot of which something was taken; null: it is not known, or nothing is fetched. */
  lastSlot: number | null
}

/** Slots that are asked for beyond the first that was held back: that one of them has a block proves which before it have none. */
const SLOTS_BEYOND = 64
/** A connection tells the next slots whole, not the one in which it begins. */
const FIRST_SLOTS = 2
const POLL_MS = 2 * SLOT_MS

export class Healing {
  readonly held: HeldNotifications
  /** Resolves when nothing is fetched any more. */
  working: Promise<void> = Promise.resolve()
  /** Gaps that were healed, those of them of which a part stays, and events that were fetched for them. */
  #healed = 0
  #inPart = 0
  #events = 0
  /** Whose gap is open. */
  #gap: Loss | null = null
  #work: Work | null = null
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

  constructor(options: HealingOptions) {
    this.#options = options
    this.held = new HeldNotifications(options.heldBytesMax)
  }

  /** Whether what comes is held back: something before it may be missing, and is fetched. */
  get isHolding(): boolean {
    return this.#gap !== null && this.#gap.lastSlot !== null && !this.#isGathering
  }

  get #nowMs(): number {
    return this.#options.source.clock.now()
  }

  /** There is no connection. @param lastSlot the newest slot of which something was taken; null: it is not known */
  lost(sinceMs: number, lastSlot: number | null): void {
    this.#isConnected = false
    this.#isPaused = false
    this.#isGathering = false
    this.#losses++
    // What came is kept: it may be that it cannot be fetched again.
    this.held.firstSlot = null
    const loss = { sinceMs, lastSlot: this.#options.healMs > 0 ? lastSlot : null }
    // What is missing since an earlier connection is still being fetched: this is more of it.
    if (this.#gap !== null) this.#again ??= loss
    else this.#open(loss)
  }

  #open(loss: Loss): void {
    const { order, link, healMs } = this.#options
    const { sinceMs, lastSlot } = loss
    const nowMs = this.#nowMs
    this.#gap = loss
    link.lose(sinceMs, nowMs, lastSlot === null ? null : Math.max(nowMs, sinceMs + healMs) + HEAL_TAKE_MS)
    // The curves say nothing of what comes next.
    if (lastSlot === null) order.forget()
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
    const { sinceMs, lastSlot } = gap
    if (lastSlot === null) {
      this.#gap = null
      link.restore(nowMs)
      return
    }
    const fromSlot = Math.max(0, lastSlot - HEAL_BACK_SLOTS)
    const untilMs = nowMs + healMs
    link.lose(sinceMs, nowMs, untilMs + HEAL_TAKE_MS)
    this.#work = new Work(this.#options, { sinceMs, untilMs, fromSlot })
    this.working = this.#run(this.#work, nowMs - sinceMs > healMs)
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

  /** @param isTooLong nothing is fetched: the outage was too long */
  async #run(work: Work, isTooLong: boolean): Promise<void> {
    if (isTooLong) work.miss('too_long')
    for (;;) {
      const isThere = !isTooLong && (await this.#fetch(work))
      if (this.#options.signal.aborted) return
      if (isThere && this.#losses !== work.losses) continue
      if (!isThere) work.miss('budget')
      const losses = this.#losses
      // What is missing ends with the first slot that is whole.
      this.#again = null
      work.closeMissing(this.#firstWholeMs(work))
      await this.#takeHeld(work, losses)
      await this.#drain(work, losses, isThere)
      if (this.#options.signal.aborted) return
      // The connection may have ended meanwhile: then there is more to fetch.
      if (this.#losses === losses || !isThere) break
    }
    this.#finish(work)
  }

  /** When the first slot that is whole began: by our clock, or what the chain says where its clock is ahead of ours. */
  #firstWholeMs(work: Work): number {
    const { firstSlot, firstMs } = this.held
    if (firstSlot === null) return this.#nowMs
    const first = this.held.firstFrom(firstSlot)
    const saidMs = first === undefined ? null : work.timeOf(first)
    return Math.max(Math.min(this.#nowMs, firstMs), saidMs ?? 0)
  }

  /**
   * Waits until nothing that was taken waits for anything, while the gap is open and what comes is taken: after the gap it would be
   * late. @param isThere nothing more is fetched for what waits, whatever happens to the connection: false
   */
  async #drain(work: Work, losses: number, isThere: boolean): Promise<void> {
    const { source, order } = this.#options
    const takenAtMs = source.clock.monotonicMs()
    // Without a connection nothing comes, and more is missing than was told: that is the next gap, or more of this one.
    this.#isGathering = this.#losses === losses && this.#isConnected
    await this.#settle(work)
    if (this.#isGathering && order.waiting > 0) await this.#wait(PREDECESSOR_MS_MAX)
    if (this.#losses === losses || !isThere) order.expireAdded(takenAtMs)
    this.#isGathering = false
  }

  /**
   * Answers may take long, and where everything that comes raises new questions they have no end. Beyond the deadline all waits together
   * take as long as one: what is held back must not be late.
   */
  async #settle({ untilMs }: Work): Promise<void> {
    const leftMs = untilMs + SETTLE_MS_MAX - this.#nowMs
    await Promise.race([this.#options.settled(), this.#wait(Math.min(SETTLE_MS_MAX, leftMs))])
  }

  /** Takes what was held back. Ends with nothing held, in the turn in which the caller goes on. */
  async #takeHeld(work: Work, losses: number): Promise<void> {
    this.held.sort()
    for (let taken = 0; this.#losses === losses && !this.#options.signal.aborted; ) {
      const told = this.held.take()
      if (told === undefined) return
      this.#options.take(told)
      // The rest of a log comes before what follows it.
      if (told.isTruncated) await this.#settle(work)
      if (++taken % TAKE_SLICE > 0) continue
      await nextTurn()
      await work.room()
    }
  }

  #finish(work: Work): void {
    // What was held back and still waits for its predecessor goes on while bars are open: later it would be late.
    this.#options.order.expireSlots(this.#newestSlot - PREDECESSOR_SLOTS)
    this.#work = null
    this.#gap = null
    const parts = work.end()
    this.#healed++
    if (parts.length > 0) this.#inPart++
    this.#events += work.events
    this.#stays.push(...parts)
    this.#stays.splice(0, this.#stays.length - STAYS_SHOWN_MAX)
    this.#options.link.heal(this.#nowMs, parts)
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
    const { source, signal } = this.#options
    for (let isFirst = true; !signal.aborted; ) {
      const { firstSlot } = this.held
      if (firstSlot !== null && work.atSlot >= firstSlot - 1) break
      const to = firstSlot === null ? work.atSlot + BLOCK_RANGE_SLOTS : firstSlot + SLOTS_BEYOND
      const listed = await work.history.slots(work.atSlot + 1, to)
      if (!listed.ok) {
        if (listed.fault === 'over') return false
        if (firstSlot === null) await this.#wait(POLL_MS)
        else if (!(await work.bySignatures(firstSlot, null))) return false
        continue
      }
      const isProven = firstSlot !== null && listed.value.some((slot) => slot >= firstSlot)
      const slots = listed.value.filter((slot) => firstSlot === null || slot < firstSlot)
      // Slots go on, and the list does not: an endpoint that keeps no blocks may list none.
      const isProofOver = source.clock.monotonicMs() - this.#toldAtMs > HEAL_PROOF_MS_MAX
      const isStuck = firstSlot !== null && !isProven && isProofOver
      if (isFirst && this.#isConnected && !isProven && !isStuck) {
        await this.#wait(POLL_MS)
        continue
      }
      const isChoice = isFirst && isProven
      isFirst = false
      if (isChoice && (await work.bySignatures(firstSlot, slots.length))) continue
      const end = await work.byBlocks(slots, firstSlot)
      if (end === 'over') return false
      if (end === 'refused') {
        if (!(await work.bySignatures(firstSlot ?? slots[slots.length - 1] + 1, null))) return false
      } else if (isProven) work.atSlot = Math.max(work.atSlot, firstSlot - 1)
      else if (isStuck) {
        if (work.atSlot < firstSlot - 1) work.miss('refused')
        work.advance(firstSlot - 1, 0)
      } else if (slots.length === 0) await this.#wait(POLL_MS)
    }
    work.losses = this.#losses
    this.#again = null
    await this.#settle(work)
    return true
  }

  #wait(ms: number): Promise<void> {
    return this.#options.source.wait(ms, this.#options.signal)
  }

  /** For the status of the feed. */
  describe(): Record<string, unknown> {
    const { size: notifications, bytes, dropped, firstSlot } = this.held
    return {
      healed: this.#healed,
      inPart: this.#inPart,
      events: this.#events + (this.#work?.events ?? 0),
      missing: this.#stays.map((part) => ({ ...part })),
      held: { notifications, bytes, dropped },
      now: this.#work?.describe(firstSlot) ?? null,
    }
  }
}
