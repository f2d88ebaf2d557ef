// In: who submitted which mint, and when. Out: how long until the same may come again. Never awaits, never reads a
// clock. Holds the pairs of one cooldown only; older ones are forgotten as time passes.

export interface Cooldowns {
  /** Milliseconds to wait; 0 when it may come. */
  waitMs(agentId: string, mint: string, nowMs: number): number
  start(agentId: string, mint: string, nowMs: number): void
  /** Undoes a start whose submission failed. */
  cancel(agentId: string, mint: string): void
  readonly size: number
}

/** Allowed again at exactly `cooldownMs` after the start. 0 switches it off. */
export function createCooldowns(cooldownMs: number): Cooldowns {
  const startByPair = new Map<string, number>()
  const pair = (agentId: string, mint: string) => `${agentId}:${mint}`

  /** Pairs stand in order of their start, so the expired ones come first. */
  function forgetExpired(nowMs: number): void {
    for (const [key, startMs] of startByPair) {
      if (nowMs - startMs < cooldownMs) return
      startByPair.delete(key)
    }
  }

  return {
    waitMs(agentId, mint, nowMs) {
      const startMs = startByPair.get(pair(agentId, mint))
      if (startMs === undefined) return 0
      return Math.min(cooldownMs, Math.max(0, startMs + cooldownMs - nowMs))
    },
    start(agentId, mint, nowMs) {
      if (cooldownMs === 0) return
      const key = pair(agentId, mint)
      startByPair.delete(key)
      startByPair.set(key, nowMs)
      forgetExpired(nowMs)
    },
    cancel(agentId, mint) {
      startByPair.delete(pair(agentId, mint))
    },
    get size() {
      return startByPair.size
    },
  }
}
