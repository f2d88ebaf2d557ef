// Sending token profiles to a lake process that ends, answers late or has no room: each version is written once.
import { expect, test } from 'vitest'
import { PROFILES_SENT_ROWS, TOKENS_HELD_MAX } from '../../../src/store/limits.ts'
import { ProfileBuffer } from '../../../src/store/market-data/profile-buffer.ts'
import { ProfileOutbox } from '../../../src/store/market-data/profile-outbox.ts'
import type { LakeClient } from '../../../src/store/process/client.ts'
import type { Requests } from '../../../src/store/process/protocol.ts'
import { rowOf } from '../support.ts'

/** A lake process whose answers can be late. `restart` replaces it. */
function lakeProcess() {
  const lake = { starts: 1, buffer: new ProfileBuffer(), isLate: false, isFull: false, largest: 0 }
  const client = {
    get starts() {
      return lake.starts
    },
    async ask(_kind: string, delivery: Requests['tokens']['ask']) {
      lake.largest = Math.max(lake.largest, delivery.rows.length)
      const taken = !lake.isFull && lake.buffer.take(delivery)
      if (lake.isLate) throw new Error('no answer within 30 s')
      return { taken, inLake: lake.buffer.inLake }
    },
  }
  const restart = () => Object.assign(lake, { starts: lake.starts + 1, buffer: new ProfileBuffer() })
  const mints = () => lake.buffer.waiting().map(({ mint }) => mint)
  return { lake, restart, mints, outbox: new ProfileOutbox(client as unknown as LakeClient) }
}
const profile = (mint: string) => rowOf('tokens', { mint })

test('rows of an ended process are sent once to the next one, even when a flush and a write coincide', async () => {
  const { restart, mints, outbox } = lakeProcess()
  await outbox.write([profile('a')])
  restart()
  await Promise.all([outbox.write([profile('b')]), outbox.deliver()])
  expect(mints()).toEqual(['a', 'b'])
})

test('rows whose receipt was late are not taken twice, and not lost when the process ends', async () => {
  const { lake, restart, mints, outbox } = lakeProcess()
  await outbox.write([profile('a')])
  lake.isLate = true
  await outbox.write([profile('b')])
  await expect(outbox.deliver()).rejects.toThrow('no answer')
  lake.isLate = false
  await outbox.write([profile('c')])
  expect(mints()).toEqual(['a', 'b', 'c'])
  // The flush writes two of them to the lake, so the next process needs only the third.
  lake.buffer.release(2)
  await outbox.deliver()
  restart()
  await outbox.deliver()
  expect(mints()).toEqual(['c'])
})

test('a lake process without room does not block the flush that frees some', async () => {
  const { lake, mints, outbox } = lakeProcess()
  lake.isFull = true
  await outbox.write([profile('a')])
  await outbox.deliver()
  expect(mints()).toEqual([])
  lake.isFull = false
  await outbox.deliver()
  expect(mints()).toEqual(['a'])
})

test('rows come to a new lake process in bounded messages', async () => {
  const { lake, restart, mints, outbox } = lakeProcess()
  const rows = Array.from({ length: 2 * PROFILES_SENT_ROWS + 1 }, (_, at) => profile(`${at}`))
  await outbox.write(rows)
  restart()
  await outbox.deliver()
  expect(mints()).toEqual(rows.map(({ mint }) => mint))
  expect(lake.largest).toBe(PROFILES_SENT_ROWS)
})

test('a lake process takes as many rows at once as it may hold', () => {
  const buffer = new ProfileBuffer()
  const rows = Array(TOKENS_HELD_MAX).fill(profile('a'))
  expect(buffer.take({ first: 0, rows })).toBe(true)
  expect(buffer.held).toBe(TOKENS_HELD_MAX)
})
