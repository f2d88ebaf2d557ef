/** One cooldown that was started, to cancel it. */
export interface CooldownStart {
  readonly pair: string
  /** On the monotonic clock. */
  readonly atMs: number
}

const pairKey = (agentId: string, mint: string): string => `${agentId}:${mint}`

/**
 * How long an agent must wait before it submits on the same mint again. Times are on the monotonic clock. A submission is
 * allowed at exactly `cooldownMs` after the start; 0 switches cooldowns off. Expired starts are dropped.
 */
export class Cooldowns {
  readonly cooldownMs: number
  /** In the order of their starts, so that expired ones come first. */
  readonly #startByPair = new Map<string, CooldownStart>()

  constructor(cooldownMs: number) {
    this.cooldownMs = cooldownMs
  }

  /** Whole milliseconds until the pair may submit; 0: now. */
  waitMs(agentId: string, mint: string, nowMs: number): number {
    const start = this.#startByPair.get(pairKey(agentId, mint))
    return start === undefined ? 0 : Math.max(0, Math.ceil(start.atMs + this.cooldownMs - nowMs))
  }

  start(agentId: string, mint: string, nowMs: number): CooldownStart {
    const start = { pair: pairKey(agentId, mint), atMs: nowMs }
    if (this.cooldownMs === 0) return start
    this.#startByPair.delete(start.pair)
    this.#startByPair.set(start.pair, start)
    this.#dropExpired(nowMs)
    return start
  }

  /** Ends this cooldown. One that the same pair started later goes on. */
  cancel(start: CooldownStart): void {
    if (this.#startByPair.get(start.pair) === start) this.#startByPair.delete(start.pair)
  }

  #dropExpired(nowMs: number): void {
    for (const [pair, { atMs }] of this.#startByPair) {
      if (nowMs - atMs < this.cooldownMs) return
      this.#startByPair.delete(pair)
    }
  }
}
