import { COOLDOWNS_MAX } from '../limits.ts'

/** One cooldown that was started, to cancel it. */
export interface CooldownStart {
  readonly agentId: string
  readonly mint: string
  /** On the monotonic clock. */
  readonly atMs: number
}

/** A cooldown that has not passed. */
export interface RunningCooldown {
  mint: string
  /** Until the agent may submit on the mint, whole milliseconds. */
  waitMs: number
}

/** Fewer starts that have ended are not removed from the list. */
const COMPACT_MIN = 1_024

/**
 * How long an agent must wait before it submits on the same mint again. Times are on the monotonic clock. A submission is
 * allowed at `cooldownMs` after the start, in whole milliseconds; 0 switches cooldowns off. Expired starts are dropped; beyond COOLDOWNS_MAX the
 * earliest is too, and its agent need not wait.
 */
export class Cooldowns {
  readonly cooldownMs: number
  readonly #onForgotten: () => void
  /** By agent and mint, the earliest of an agent first. */
  readonly #byAgent = new Map<string, Map<string, CooldownStart>>()
  /** Of all agents, the earliest first, from `#first` on. Cancelled ones stay until they would have ended. */
  #starts: CooldownStart[] = []
  #first = 0

  /** @param onForgotten called for each cooldown that ends too early, since there are too many */
  constructor(cooldownMs: number, onForgotten: () => void = () => {}) {
    this.cooldownMs = cooldownMs
    this.#onForgotten = onForgotten
  }

  /** Whole milliseconds until the pair may submit; 0: now. */
  waitMs(agentId: string, mint: string, nowMs: number): number {
    const start = this.#byAgent.get(agentId)?.get(mint)
    return start === undefined ? 0 : this.#remainingMs(start, nowMs)
  }

  /** Cooldowns of an agent that have not passed, those that end first, `max` at most. */
  running(agentId: string, nowMs: number, max: number): RunningCooldown[] {
    const running: RunningCooldown[] = []
    for (const start of this.#byAgent.get(agentId)?.values() ?? []) {
      if (running.length === max) break
      const waitMs = this.#remainingMs(start, nowMs)
      if (waitMs > 0) running.push({ mint: start.mint, waitMs })
    }
    return running
  }

  start(agentId: string, mint: string, nowMs: number): CooldownStart {
    const start = { agentId, mint, atMs: nowMs }
    if (this.cooldownMs === 0) return start
    const byMint = this.#byAgent.get(agentId) ?? new Map<string, CooldownStart>()
    byMint.delete(mint)
    byMint.set(mint, start)
    this.#byAgent.set(agentId, byMint)
    this.#starts.push(start)
    this.#dropEarliest(nowMs)
    return start
  }

  /** Ends this cooldown. @returns false where it was cancelled before, or the pair has started a later one, which goes on */
  cancel(start: CooldownStart): boolean {
    const byMint = this.#byAgent.get(start.agentId)
    if (byMint?.get(start.mint) !== start) return false
    byMint.delete(start.mint)
    if (byMint.size === 0) this.#byAgent.delete(start.agentId)
    return true
  }

  #remainingMs({ atMs }: Pick<CooldownStart, 'atMs'>, nowMs: number): number {
    const remainingMs = atMs + this.cooldownMs - nowMs
    // Its end was announced by the wall clock, which leaves fractions out.
    return remainingMs < 1 ? 0 : Math.ceil(remainingMs)
  }

  /** Drops the starts that have expired, and those that are too many. */
  #dropEarliest(nowMs: number): void {
    for (; ; this.#first++) {
      const start = this.#starts[this.#first]
      if (start === undefined) break
      const isRunning = this.#remainingMs(start, nowMs) > 0
      if (isRunning && this.#starts.length - this.#first <= COOLDOWNS_MAX) break
      if (this.cancel(start) && isRunning) this.#onForgotten()
    }
    if (this.#first < COMPACT_MIN || 2 * this.#first < this.#starts.length) return
    this.#starts = this.#starts.slice(this.#first)
    this.#first = 0
  }
}
