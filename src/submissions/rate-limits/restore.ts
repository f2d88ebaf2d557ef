import { type Instant, toMonotonicMs } from '../../lib/clock.ts'
import type { RecoveredLimits } from '../../schema/recovered.ts'
import type { Cooldowns } from './cooldowns.ts'
import type { IdempotencyCache } from './idempotency.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { SlidingWindow } from './sliding-window.ts'

export interface SubmissionLimits {
  rate: RateLimiter
  cooldowns: Cooldowns
  idempotency: IdempotencyCache
  strikes: SlidingWindow
}

/**
 * Brings limits to where they were before a restart. Stored times are wall times; on the monotonic clock they are never later
 * than `now`, so that a limit lasts no longer than its length.
 */
export function restoreLimits(recovered: RecoveredLimits, limits: SubmissionLimits, now: Instant): void {
  const { rate, cooldowns, idempotency, strikes } = limits
  for (const [row, atMs] of inOrder(recovered.submitAttempts, ({ at }) => at, now))
    rate.take(row.agent_id, atMs)
  for (const [{ agentId, mint }, atMs] of inOrder(recovered.cooldowns, (start) => start.atMs, now))
    cooldowns.start(agentId, mint, atMs)
  for (const [{ agentId }, atMs] of inOrder(recovered.strikes, (strike) => strike.atMs, now))
    strikes.add(agentId, atMs)
  for (const [row, atMs] of inOrder(recovered.idempotency, ({ at }) => at, now)) {
    const response = { bodyHash: row.body_hash, json: row.body, atMs }
    idempotency.remember(row.agent_id, row.idempotency_key, response)
  }
}

/** Each item with its time on the monotonic clock, earliest first. One after another, since there may be a million. */
function* inOrder<Item>(
  items: readonly Item[],
  wallMs: (item: Item) => number,
  now: Instant,
): IterableIterator<[item: Item, atMs: number]> {
  for (const item of items.toSorted((a, b) => wallMs(a) - wallMs(b)))
    yield [item, toMonotonicMs(wallMs(item), now)]
}
