// The one rule for a server that has more to do than its thread can: how much of what arrives it refuses, of which roads.
import type { ServiceError } from '../schema/errors.ts'
import {
  OVERLOAD_CHANGE_PER_SECOND,
  OVERLOAD_MS_MIN,
  OVERLOAD_RETRY_MS_MAX,
  OVERLOAD_RETRY_MS_MIN,
  OVERLOAD_SHARE_MAX,
  OVERLOAD_STEP_MS,
  OVERLOAD_TURNS_MIN,
  OVERLOAD_WAIT_MS,
  OVERLOAD_WAIT_MS_MAX,
} from './limits.ts'
import { overloaded } from './response/rate-limit-headers.ts'
import type { Route } from './route.ts'

/** What may be refused. Reads, pushes and queries of the lake give way first and alike, submissions after all of them. */
const ROADS = ['reads', 'pushes', 'lake', 'submissions'] as const
type Road = (typeof ROADS)[number]

/**
 * Null: never refused. An operator looks at such a server, and `/health`, metrics, documents and the console say what it does; what
 * is passed on to another node is for that node to judge.
 */
const ROAD_OF: Readonly<Record<Route['access'], Road | null>> = {
  read: 'reads',
  personal: 'reads',
  feed: 'pushes',
  researcher: 'lake',
  agent: 'submissions',
  open: null,
  admin: null,
  forwarded: null,
}

/** Beyond this level streams are ended and submissions refused too. */
const LEVEL_OF_ALL = 1
const LEVEL_MAX = 2
/** How much of the deviation from the wait that is aimed at counts at once, in shares of what arrives. */
const PROMPT_SHARE = 0.05
/** The rise stops to grow with the wait at this many times of what is aimed at. */
const EXCESS_MAX = 2
/** Multiples of it, modulo 1, are spread evenly however many there are: no drawing of lots, and no road meets a rhythm. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2
const ERRORS = 16

/** Waits for the thread, ms. */
export interface OverloadWaits {
  /** A wait that stands and is longer is an overload. */
  waitMsMax: number
  /** What it is brought back to. */
  waitMs: number
}

export interface OverloadOptions extends Partial<OverloadWaits> {
  /** Called every OVERLOAD_STEP_MS while refusing does not help enough: streams are to be ended. */
  endStreams?(): void
  /** Called when it begins to refuse, and when it refuses nothing any more. */
  onChange?(isOverloaded: boolean): void
}

const clamp = (value: number, most: number): number => Math.min(most, Math.max(0, value))

/**
 * Knows how long work waits for the thread, and what to refuse. A wait that stands, longer than `waitMsMax` in every turn
 * for a second, is an overload (the rule of CoDel, Nichols and Jacobson 2012); a turn that took long, and what it left, is none.
 * From then on the share of refused requests follows the wait (as in PIE, RFC 8033), until nothing has to be refused.
 */
export class Overload {
  /** Requests refused so far. */
  readonly refused: Record<Road, number> = { reads: 0, pushes: 0, lake: 0, submissions: 0 }
  readonly #options: OverloadOptions & OverloadWaits
  /** The turns that were too long one after another; null: the last was not. */
  #long: { sinceMs: number; firstMs: number; turns: number } | null = null
  #isOverloaded = false
  /** Up to 1: the share of what gives way first. From 1 to 2: the share of the rest. */
  #level = 0
  /** Of what gives way first, with what the latest wait adds or takes. */
  #share = 0
  #step: { sinceMs: number; turnsMs: number[] } = { sinceMs: 0, turnsMs: [] }
  #spread = 0
  /** Made once: an error costs more than the answer to it. They differ in when to try again, so that clients come back apart. */
  readonly #errors = Array.from({ length: ERRORS }, (_, at) => refusalFor((at + 0.5) / ERRORS))

  constructor(options: OverloadOptions = {}) {
    this.#options = { waitMsMax: OVERLOAD_WAIT_MS_MAX, waitMs: OVERLOAD_WAIT_MS, ...options }
  }

  get isOverloaded(): boolean {
    return this.#isOverloaded
  }

  /** How much of a road is refused now, 0 to OVERLOAD_SHARE_MAX. */
  shareOf(road: Road): number {
    if (!this.#isOverloaded) return 0
    return road === 'submissions' ? clamp(this.#level - LEVEL_OF_ALL, OVERLOAD_SHARE_MAX) : this.#share
  }

  /** Why `/health` is degraded, as a sentence; null: it is not. */
  get reason(): string | null {
    if (!this.#isOverloaded) return null
    const [reads, submissions] = [this.shareOf('reads'), this.shareOf('submissions')].map(toPercent)
    const ofSubmissions = submissions === 0 ? '' : `, and ${submissions} % of submissions`
    return `the server has more to do than it can: it refuses ${reads} % of reads, pushes and queries${ofSubmissions}`
  }

  /** To be asked once for each request, before any work is done for it. @returns what it is refused with; null: it may pass */
  refusal({ access }: Route): ServiceError | null {
    if (!this.#isOverloaded) return null
    const road = ROAD_OF[access]
    if (road === null) return null
    const share = this.shareOf(road)
    this.#spread = (this.#spread + GOLDEN_RATIO) % 1
    if (this.#spread >= share) return null
    this.refused[road]++
    return this.#errors[Math.floor((this.#spread / share) * ERRORS)] ?? null
  }

  /** A turn of the event loop has taken so much work. @param nowMs monotonic, at its end */
  note(turnMs: number, nowMs: number): void {
    if (this.#isOverloaded) this.#follow(turnMs, nowMs)
    else if (this.#stands(turnMs, nowMs)) this.#begin(turnMs, nowMs)
  }

  /** Whether turns have been too long for a second. What one long turn has left may take twice as long as that turn before it counts. */
  #stands(turnMs: number, nowMs: number): boolean {
    if (turnMs <= this.#options.waitMsMax) {
      this.#long = null
      return false
    }
    this.#long ??= { sinceMs: nowMs - turnMs, firstMs: turnMs, turns: 0 }
    const { sinceMs, firstMs } = this.#long
    const turns = ++this.#long.turns
    return turns >= OVERLOAD_TURNS_MIN && nowMs - sinceMs >= OVERLOAD_MS_MIN + 2 * firstMs
  }

  #begin(turnMs: number, nowMs: number): void {
    this.#isOverloaded = true
    this.#long = null
    this.#move(turnMs, OVERLOAD_STEP_MS)
    this.#step = { sinceMs: nowMs, turnsMs: [] }
    this.#options.onChange?.(true)
  }

  /** What counts is the median turn of a step: one that takes long is no wait that stands, and one that is short between two others none that ended. */
  #follow(turnMs: number, nowMs: number): void {
    const step = this.#step
    step.turnsMs.push(turnMs)
    const stepMs = nowMs - step.sinceMs
    if (stepMs < OVERLOAD_STEP_MS) return
    this.#move(medianOf(step.turnsMs), stepMs)
    this.#step = { sinceMs: nowMs, turnsMs: [] }
    if (this.#level > LEVEL_OF_ALL) this.#options.endStreams?.()
    if (this.#level > 0) return
    this.#isOverloaded = false
    this.#options.onChange?.(false)
  }

  #move(waitMs: number, stepMs: number): void {
    const excess = waitMs / this.#options.waitMs - 1
    const perSecond = Math.min(EXCESS_MAX, excess) * OVERLOAD_CHANGE_PER_SECOND
    const seconds = Math.min(1_000, stepMs) / 1_000
    this.#level = clamp(this.#level + perSecond * seconds, LEVEL_MAX)
    this.#share = clamp(this.#level + PROMPT_SHARE * excess, OVERLOAD_SHARE_MAX)
  }
}

/** Of two in the middle the smaller one. */
const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!

const toPercent = (share: number): number => Math.round(100 * share)

/** When whoever is refused should try again. @param part from 0 to 1: clients that are refused together come back apart */
export const retryAfterMs = (part: number): number =>
  Math.round(OVERLOAD_RETRY_MS_MIN + part * (OVERLOAD_RETRY_MS_MAX - OVERLOAD_RETRY_MS_MIN))

const refusalFor = (part: number): ServiceError =>
  overloaded('The server has more to do than it can; nothing was done, try again later.', retryAfterMs(part))
