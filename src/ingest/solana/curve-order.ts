// Brings what happens on each curve into its order. A curve proves it: the reserves before a trade are those after the one before.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import {
  CURVES_MAX,
  PREDECESSOR_MS_MAX,
  PREDECESSORS_WAITING_MAX,
  SILENT_AFTER_MS,
  WAITING_AGE_MS_MAX,
} from './limits.ts'
import type { CurveState, CurveStep } from './translate.ts'

interface WaitingStep {
  step: CurveStep
  slot: number
  /** On the monotonic clock. */
  sinceMs: number
  /** When it goes on at the latest. */
  untilMs: number
}

const comesAfterCurve = ({ before, after }: CurveStep): boolean => before === null && after === null

const stateKey = ({ quote, tokens }: CurveState): string => `${quote}:${tokens}`

/**
 * Delivers steps one behind the other by their reserves. One whose predecessor is missing waits for it, at most PREDECESSOR_MS_MAX, and
 * then goes on: the predecessor may be lost. So does the first one of a curve of which nothing is known: it may have overtaken its
 * token's launch, or another trade.
 */
export class CurveOrder {
  /** Steps that went on without their predecessor, on curves that were known. */
  unproven = 0
  #waitingCount = 0
  /** Whether a step was added that waits for nothing: it goes on when `expire` is called. */
  hasDue = false
  /** The reserves after the latest delivered step, and when one last had events, by mint. */
  readonly #states = new BoundedMap<string, { reserves: string; atMs: number }>({ entriesMax: CURVES_MAX })
  /** The latest time that was told, on the monotonic clock. */
  #nowMs = Number.NEGATIVE_INFINITY
  /** Steps that wait, by mint; the mint whose first step came first is the first. */
  readonly #waiting = new Map<string, WaitingStep[]>()
  readonly #deliver: (step: CurveStep) => void

  constructor(deliver: (step: CurveStep) => void) {
    this.#deliver = deliver
  }

  get waiting(): number {
    return this.#waitingCount
  }

  /** @param nowMs monotonic time @param ageMs how much later than it happened it is told; 0: that does not matter */
  add(step: CurveStep, slot: number, nowMs: number, ageMs = 0): void {
    this.#nowMs = nowMs
    const isHeldUp = comesAfterCurve(step) && this.#waiting.has(step.mint)
    if (this.#follows(step) && !isHeldUp) {
      this.#take(step)
      this.#takeFollowers(step.mint)
      return
    }
    const steps = this.#waiting.get(step.mint) ?? []
    if (steps.length === 0) this.#waiting.set(step.mint, steps)
    // Of a token that has been silent, or of which nothing is known, the market takes nothing that is late.
    const tradedMs = this.#states.get(step.mint)?.atMs ?? Number.NEGATIVE_INFINITY
    const agedMs = nowMs - tradedMs < SILENT_AFTER_MS ? 0 : ageMs
    const waitMs = Math.min(PREDECESSOR_MS_MAX, Math.max(0, WAITING_AGE_MS_MAX - agedMs))
    steps.push({ step, slot, sinceMs: nowMs, untilMs: nowMs + waitMs })
    this.#waitingCount++
    this.hasDue ||= waitMs === 0
    if (this.#waitingCount > PREDECESSORS_WAITING_MAX) {
      const [oldest] = this.#waiting.keys()
      this.#goOn(oldest)
    }
  }

  /** Lets go on what has waited too long. Called often. @param nowMs monotonic time */
  expire(nowMs: number): void {
    this.#nowMs = nowMs
    this.hasDue = false
    this.#goOnWhile(({ untilMs }) => untilMs <= nowMs)
  }

  /** Lets go on what was added by this monotonic time. */
  expireAdded(toMs: number): void {
    this.#goOnWhile(({ sinceMs }) => sinceMs <= toMs)
  }

  /** Lets go on what is of an earlier slot: all of it that there is has come. */
  expireSlots(beforeSlot: number): void {
    this.#goOnWhile(({ slot }) => slot < beforeSlot)
  }

  /** Lets go on what waits on a curve for as long as one that is due is among it. */
  #goOnWhile(isDue: (waiting: WaitingStep) => boolean): void {
    for (const [mint, steps] of this.#waiting) while (steps.some(isDue)) this.#goOn(mint)
  }

  /** Nothing is known of any curve any more: events may have been missed. What waits goes on. */
  forget(): void {
    for (const mint of [...this.#waiting.keys()]) while (this.#waiting.has(mint)) this.#goOn(mint)
    this.#states.clear()
  }

  /** Whether the step is the next of its curve, as far as that is known. */
  #follows({ mint, before }: CurveStep): boolean {
    return before === null || this.#states.get(mint)?.reserves === stateKey(before)
  }

  /** Whether the present reserves of a curve are known. */
  knows(mint: string): boolean {
    return this.#states.has(mint)
  }

  #take(step: CurveStep): void {
    // What trades nothing may be told again after a restart, when the curve has long gone on: it begins no order.
    const atMs = step.events.length > 0 ? this.#nowMs : this.#states.get(step.mint)?.atMs
    if (step.after !== null && atMs !== undefined)
      this.#states.set(step.mint, { reserves: stateKey(step.after), atMs })
    this.#deliver(step)
  }

  #takeFollowers(mint: string): void {
    const steps = this.#waiting.get(mint)
    if (steps === undefined) return
    for (;;) {
      const hasCurve = steps.some(({ step }) => !comesAfterCurve(step))
      const at = steps.findIndex(({ step }) => this.#follows(step) && !(hasCurve && comesAfterCurve(step)))
      if (at === -1) break
      const [{ step }] = steps.splice(at, 1)
      this.#waitingCount--
      this.#take(step)
    }
    if (steps.length === 0) this.#waiting.delete(mint)
  }

  /** Takes the earliest step of a mint without its predecessor: by slot, then one whose predecessor is not among those that wait. */
  #goOn(mint: string): void {
    const steps = this.#waiting.get(mint)
    if (steps === undefined) return
    const onCurve = steps.filter(({ step }) => !comesAfterCurve(step))
    const slot = Math.min(...onCurve.map((each) => each.slot))
    const afters = new Set(onCurve.flatMap(({ step }) => (step.after === null ? [] : [stateKey(step.after)])))
    const earliest = onCurve.filter((each) => each.slot === slot)
    const isFirst = ({ step }: WaitingStep): boolean =>
      step.before === null || !afters.has(stateKey(step.before))
    const chosen = earliest.find(isFirst) ?? earliest[0] ?? steps[0]
    const [{ step }] = steps.splice(steps.indexOf(chosen), 1)
    this.#waitingCount--
    // Of a curve that nothing was known of, nothing is missing.
    if (this.#states.has(mint)) this.unproven++
    if (steps.length === 0) this.#waiting.delete(mint)
    this.#take(step)
    this.#takeFollowers(mint)
  }
}
