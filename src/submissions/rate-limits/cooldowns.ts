/** One cooldown that was started, to cancel it. */
export interface CooldownStart {
  readonly agentId: string
  readonly mint: string
  /** On the monotonic clock. */
  readonly atMs: number
}

/** The starts of one agent. */
interface AgentStarts {
  /** The earliest first. */
  byMint: Map<string, CooldownStart>
  lastAtMs: number
}

/** A cooldown that has not passed. */
export interface RunningCooldown {
  mint: string
  /** Until the agent may submit on the mint, whole milliseconds. */
  waitMs: number
}

/**
 * How long an agent must wait before it submits on the same mint again. Times are on the monotonic clock. A submission is
 * allowed at exactly `cooldownMs` after the start; 0 switches cooldowns off. Expired starts are dropped.
 */
export class Cooldowns {
  readonly cooldownMs: number
  /** By agent, the one with the earliest last start first: so expired ones come first. */
  readonly #startsByAgent = new Map<string, AgentStarts>()

  constructor(cooldownMs: number) {
    this.cooldownMs = cooldownMs
  }

  /** Whole milliseconds until the pair may submit; 0: now. */
  waitMs(agentId: string, mint: string, nowMs: number): number {
    const start = this.#startsByAgent.get(agentId)?.byMint.get(mint)
    return start === undefined ? 0 : this.#remainingMs(start, nowMs)
  }

  /** Cooldowns of an agent that have not passed, those that end first, `max` at most. */
  running(agentId: string, nowMs: number, max: number): RunningCooldown[] {
    const running: RunningCooldown[] = []
    for (const start of this.#startsByAgent.get(agentId)?.byMint.values() ?? []) {
      if (running.length === max) break
      const waitMs = this.#remainingMs(start, nowMs)
      if (waitMs > 0) running.push({ mint: start.mint, waitMs })
    }
    return running
  }

  start(agentId: string, mint: string, nowMs: number): CooldownStart {
    const start = { agentId, mint, atMs: nowMs }
    if (this.cooldownMs === 0) return start
    const { byMint } = this.#startsByAgent.get(agentId) ?? { byMint: new Map<string, CooldownStart>() }
    byMint.delete(mint)
    byMint.set(mint, start)
    this.#startsByAgent.delete(agentId)
    this.#startsByAgent.set(agentId, { byMint, lastAtMs: nowMs })
    this.#dropExpired(byMint, nowMs)
    return start
  }

  /** Ends this cooldown. One that the same pair started later goes on. */
  cancel(start: CooldownStart): void {
    const byMint = this.#startsByAgent.get(start.agentId)?.byMint
    if (byMint?.get(start.mint) === start) byMint.delete(start.mint)
  }

  #remainingMs({ atMs }: Pick<CooldownStart, 'atMs'>, nowMs: number): number {
    return Math.max(0, Math.ceil(atMs + this.cooldownMs - nowMs))
  }

  /** Drops the expired starts of one agent, then the agents whose starts have all expired. */
  #dropExpired(byMint: Map<string, CooldownStart>, nowMs: number): void {
    for (const start of byMint.values()) {
      if (this.#remainingMs(start, nowMs) > 0) break
      byMint.delete(start.mint)
    }
    for (const [agentId, { lastAtMs }] of this.#startsByAgent) {
      if (this.#remainingMs({ atMs: lastAtMs }, nowMs) > 0) return
      this.#startsByAgent.delete(agentId)
    }
  }
}
