// In: commits of many callers. Out: proof of how they share batches, and of the bounds.
import { expect, test } from 'vitest'
import type { EncodedWrite } from '../../src/store/cells.ts'
import { gatherer } from '../../src/store/gather.ts'
import { serial } from '../../src/store/serial.ts'

const rows = (count: number): EncodedWrite[] =>
  Array.from({ length: count }, () => ({ table: 'agents', json: '{}' }))

/** A store that takes each batch when the test lets it. */
function slowStore() {
  const batches: number[] = []
  const gates: PromiseWithResolvers<void>[] = []
  const send = async (writes: EncodedWrite[]): Promise<void> => {
    batches.push(writes.length)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    await gate.promise
  }
  return { batches, gates, send }
}

test('who comes while a batch is on its way joins the next one', async () => {
  const { batches, gates, send } = slowStore()
  const queue = gatherer(send, 0)
  const first = queue.add(rows(1))
  await expect.poll(() => batches.length).toBe(1)
  const later = [queue.add(rows(2)), queue.add(rows(13)), queue.add(rows(3))]
  gates[0].resolve()
  await first
  await expect.poll(() => batches.length).toBe(2)
  gates[1].resolve()
  await Promise.all(later)
  expect(batches).toEqual([1, 18])
  await queue.idle()
})

test('callers who come back when they are answered share the next batch with those who came meanwhile', async () => {
  const { batches, gates, send } = slowStore()
  const queue = gatherer(send, 50)
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const twice = async (): Promise<void> => {
    await queue.add(rows(1))
    await turn()
    await queue.add(rows(1))
  }
  const first = [twice(), twice()]
  await expect.poll(() => batches.length).toBe(1)
  const meanwhile = queue.add(rows(1))
  gates[0].resolve()
  await expect.poll(() => batches.length).toBe(2)
  gates[1].resolve()
  await Promise.all([...first, meanwhile])
  expect(batches).toEqual([2, 3])
  await queue.idle()
})

test('a batch ends before it exceeds its rows, and never splits a commit', async () => {
  const { batches, gates, send } = slowStore()
  const queue = gatherer(send, 0)
  const all = [queue.add(rows(5_000)), queue.add(rows(3_192)), queue.add(rows(1)), queue.add(rows(8_192))]
  for (let batch = 0; batch < 3; batch++) {
    await expect.poll(() => gates.length).toBe(batch + 1)
    gates[batch].resolve()
  }
  await Promise.all(all)
  expect(batches).toEqual([8_192, 1, 8_192])
})

test('a failed batch refuses all of its callers and none of the next', async () => {
  let sent = 0
  const queue = gatherer(async () => {
    if (sent++ === 0) throw new Error('the disk is full')
  }, 0)
  const outcomes = await Promise.allSettled([queue.add(rows(1)), queue.add(rows(1))])
  expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected'])
  await queue.add(rows(1))
})

test('tasks of one connection run one at a time, in order, and too many are refused', async () => {
  const lane = serial('look-ups', 3)
  const done: number[] = []
  const tasks = [0, 1, 2].map((task) =>
    lane.run(async () => {
      await Promise.resolve()
      done.push(task)
      if (task === 1) throw new Error('one fails')
    }),
  )
  await expect(lane.run(async () => undefined)).rejects.toMatchObject({ code: 'store_unavailable' })
  await Promise.allSettled(tasks)
  expect(done).toEqual([0, 1, 2])
  expect(await lane.run(async () => 'again')).toBe('again')
})

test('a connection that closes ends what it has taken and takes no more', async () => {
  const lane = serial('look-ups', 3)
  const done: number[] = []
  for (const task of [0, 1]) {
    void lane.run(async () => {
      await Promise.resolve()
      done.push(task)
    })
  }
  const closed = lane.close()
  await expect(lane.run(async () => undefined)).rejects.toMatchObject({ code: 'store_unavailable' })
  await closed
  expect(done).toEqual([0, 1])
})
