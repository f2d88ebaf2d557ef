// The list of what a data folder has lost: noted once, told over restarts until acknowledged, bounded.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { Losses } from '../../../src/store/data-folder/losses.ts'
import { LOSSES_MAX, LOSSES_TOLD_MAX } from '../../../src/store/limits.ts'
import { NOON_MS, removeFolder, temporaryFolder } from '../support.ts'

const folder = temporaryFolder()
afterEach(() => {
  for (const name of readdirSync(folder)) removeFolder(join(folder, name))
})
const reopened = async (): Promise<Losses> => {
  const losses = new Losses(folder)
  await losses.load(NOON_MS)
  return losses
}

it('a loss is told by every process until it is acknowledged, and equal ones once', async () => {
  const [one, other] = [await reopened(), await reopened()]
  await one.record({ kind: 'log', sentence: 'commits are lost', from: 3, to: 5 }, NOON_MS)
  await other.record({ kind: 'log', sentence: 'commits are lost', from: 3, to: 5 }, NOON_MS + 1)
  await other.record({ kind: 'bars', sentence: 'bars are lost', table: 'bars' }, NOON_MS + 2)
  const losses = await reopened()
  expect(losses.unacknowledged).toMatchObject([
    { kind: 'log', from: 3, to: 5, count: null, foundAtMs: NOON_MS },
    { kind: 'bars', table: 'bars' },
  ])
  expect(losses.count).toBe(2)
  expect(await losses.acknowledge(NOON_MS + 3)).toHaveLength(2)
  expect(losses.count).toBe(0)
  expect(await losses.acknowledge(NOON_MS + 4)).toEqual([])
  expect((await reopened()).sentences).toEqual([])
  // The same happens again.
  await losses.record({ kind: 'bars', sentence: 'bars are lost', table: 'bars' }, NOON_MS + 5)
  expect((await reopened()).unacknowledged).toHaveLength(1)
})

it('one that leaves a file behind is not told again once it is acknowledged', async () => {
  const losses = await reopened()
  const loss = { kind: 'log', sentence: 'a part is damaged', file: 'log/1.log.damaged' }
  await losses.record(loss, NOON_MS)
  await losses.acknowledge(NOON_MS)
  await losses.record(loss, NOON_MS)
  expect(losses.unacknowledged).toEqual([])
  expect((await reopened()).isAcknowledged({ kind: 'log', file: 'log/1.log.damaged' })).toBe(true)
  expect((await reopened()).isAcknowledged({ kind: 'log', file: 'log/2.log.damaged' })).toBe(false)
})

it('one of numbers that are never used again is not told again once it is acknowledged', async () => {
  const losses = await reopened()
  const loss = { kind: 'log', sentence: 'commits are lost', from: 10, to: 11 }
  await losses.record(loss, NOON_MS)
  await losses.acknowledge(NOON_MS)
  await losses.record(loss, NOON_MS)
  expect(losses.unacknowledged).toEqual([])
  expect(losses.isAcknowledged(loss)).toBe(true)
  expect(losses.isAcknowledged({ ...loss, to: 12 })).toBe(false)
})

it('the list is bounded: further losses are counted, and acknowledged ones give way', async () => {
  const noted = (count: number, acknowledgedAtMs: number | null) =>
    Array.from({ length: count }, (_, index) => ({
      ...{
        kind: 'log',
        sentence: `loss ${index}`,
        table: null,
        from: null,
        to: null,
        count: null,
        file: null,
      },
      ...{ foundAtMs: NOON_MS, acknowledgedAtMs },
    }))
  const write = (losses: object[]) =>
    writeFileSync(join(folder, 'losses.json'), JSON.stringify({ format: 1, losses, omitted: 0 }))
  write(noted(LOSSES_MAX, null))
  const losses = await reopened()
  await losses.record({ kind: 'log', sentence: 'one more' }, NOON_MS)
  expect(losses.unacknowledged).toHaveLength(LOSSES_MAX)
  expect((await reopened()).sentences).toHaveLength(LOSSES_TOLD_MAX + 1)
  expect((await reopened()).sentences.at(-1)).toContain(
    `further losses: ${LOSSES_MAX + 1 - LOSSES_TOLD_MAX};`,
  )
  await losses.acknowledge(NOON_MS)
  await losses.record({ kind: 'log', sentence: 'one more' }, NOON_MS)
  expect((await reopened()).sentences).toEqual(['one more; mintlake lake repair acknowledges it'])
})

it('a list that is damaged, or a folder, is a loss itself, and kept aside', async () => {
  for (const damage of [
    () => writeFileSync(join(folder, 'losses.json'), '{"format":1,'),
    () => mkdirSync(join(folder, 'losses.json')),
  ]) {
    damage()
    const losses = await reopened()
    expect(losses.sentences.join()).toContain('the list of losses (losses.json) was damaged')
    await losses.record({ kind: 'log', sentence: 'commits are lost' }, NOON_MS)
    expect((await reopened()).unacknowledged).toHaveLength(2)
    expect(readdirSync(folder).filter((name) => name.endsWith('.set-aside'))).toHaveLength(1)
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
  }
})

it('where it cannot be written, this process tells of the loss, and the next one that can be written has it', async () => {
  const losses = new Losses(join(folder, 'gone'))
  await expect(losses.record({ kind: 'log', sentence: 'commits are lost' }, NOON_MS)).rejects.toThrow(
    'ENOENT',
  )
  expect(losses.unacknowledged).toHaveLength(1)
  mkdirSync(join(folder, 'gone'))
  await losses.record({ kind: 'bars', sentence: 'bars are lost' }, NOON_MS)
  const after = new Losses(join(folder, 'gone'))
  await after.load(NOON_MS)
  expect(after.unacknowledged.map(({ kind }) => kind)).toEqual(['log', 'bars'])
})
