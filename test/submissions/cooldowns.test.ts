import { expect, test, vi } from 'vitest'
import { COOLDOWNS_MAX } from '../../src/submissions/limits.ts'
import { Cooldowns } from '../../src/submissions/rate-limits/cooldowns.ts'

test('a cooldown has ended at the time that was announced, though the wall clock tells no fractions', () => {
  const cooldowns = new Cooldowns(200)
  // Begun at 0.9 by a clock that says 0: the end is announced as 200.
  cooldowns.start('ag_1', 'mint', 0.9)
  expect(cooldowns.waitMs('ag_1', 'mint', 199)).toBe(2)
  expect(cooldowns.waitMs('ag_1', 'mint', 200)).toBe(0)
  expect(cooldowns.running('ag_1', 200, 1)).toEqual([])
})

test('beyond the maximum the cooldown that began first ends, which is told; those that had ended or were cancelled are not', {
  tags: 'drill',
}, () => {
  const onForgotten = vi.fn()
  const cooldowns = new Cooldowns(COOLDOWNS_MAX, onForgotten)
  const cancelled = cooldowns.start('ag_1', 'cancelled', 0)
  for (let index = 1; index < COOLDOWNS_MAX; index++)
    cooldowns.start(`ag_${index % 7}`, `mint-${index}`, index / 2)
  cooldowns.cancel(cancelled)
  const nowMs = COOLDOWNS_MAX / 2
  expect(cooldowns.waitMs('ag_1', 'mint-1', nowMs)).toBeGreaterThan(0)
  cooldowns.start('ag_1', 'new', nowMs)
  expect(onForgotten).not.toHaveBeenCalled()
  cooldowns.start('ag_1', 'newer', nowMs)
  expect(onForgotten).toHaveBeenCalledTimes(1)
  expect(cooldowns.waitMs('ag_1', 'mint-1', nowMs)).toBe(0)
  expect(cooldowns.waitMs('ag_2', 'mint-2', nowMs)).toBeGreaterThan(0)
  expect(cooldowns.running('ag_1', nowMs, 1)).toMatchObject([{ mint: 'mint-8' }])
  // Everything has ended: nothing is forgotten too early, and all is dropped.
  cooldowns.start('ag_1', 'last', 10 * COOLDOWNS_MAX)
  expect(onForgotten).toHaveBeenCalledTimes(1)
  expect(cooldowns.running('ag_1', 10 * COOLDOWNS_MAX, 9)).toHaveLength(1)
})
