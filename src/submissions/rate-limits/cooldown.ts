// In: who submitted which mint, and when, on the monotonic clock. Out: how long until the same may come again. Never
// awaits, never reads a clock. Holds the pairs of one cooldown only; older ones are forgotten as time passes.

export interface Cooldowns {
  /** Whole milliseconds to wait; 0 when it may come. */
  waitMs(agentId: string, mint: string, nowMs: number): number
  /** @returns what takes back this very start; a later one of the same pair stays. */
  start(agentId: string, mint: string, nowMs: number): () => void
  readonly size: number
}

/** Allowed again at exactly `cooldownMs` after the start. 0 switches it off. */
export function createCooldowns(cooldownMs: number): Cooldowns {
  const startByPair = new Map<string, { atMs: number }>()
  const pair = (agentId: string, mint: string) => `${agentId}:${mint}`

  /** Pairs stand in order of their start, so the expired ones come first. */
  function forgetExpired(nowMs: number): void {
    for (const [key, { atMs }] of startByPair) {
      if (nowMs - atMs < cooldownMs) return
      startByPair.delete(key)
    }
  }

  return {
    waitMs(agentId, mint, nowMs) {
      const start = startByPair.get(pair(agentId, mint))
      return start === undefined ? 0 : Math.max(0, Math.ceil(start.atMs + cooldownMs - nowMs))
    },
    start(agentId, mint, nowMs) {
      if (cooldownMs === 0) return () => {}
      const key = pair(agentId, mint)
      const start = { atMs: nowMs }
      startByPair.delete(key)
      startByPair.set(key, start)
      forgetExpired(nowMs)
      return () => {
        if (startByPair.get(key) === start) startByPair.delete(key)
      }
    },
    get size() {
      return startByPair.size
    },
  }
}
