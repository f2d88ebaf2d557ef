// In: a store that keeps few rows, or none, beside the lake. Out: proof that nobody can tell: not a restart, not a look-up.
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { ulid } from 'ulid'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Write } from '../../src/schema/tables.ts'
import { databasePath } from '../../src/store/paths.ts'
import type { StoreOptions } from '../../src/store/store.ts'
import type { StoreDoor } from '../../src/store/types.ts'
import { clockOf } from '../support/clock.ts'
import {
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
  writeOf,
} from './support.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

const folders: string[] = []
const stores: StoreDoor[] = []
let nowMs = NOON_MS

beforeEach(() => {
  nowMs = NOON_MS
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})

function newFolder(): string {
  folders.push(temporaryFolder())
  return folders.at(-1)!
}

async function open(folder: string, keptSeqs: number, over: Partial<StoreOptions> = {}): Promise<StoreDoor> {
  const store = await openTestStore(folder, {
    keptSeqs,
    clock: clockOf(() => nowMs),
    lakeGraceMs: 0,
    ...over,
  })
  stores.push(store)
  return store
}

/** Rows in the store's own table, once it is closed. */
async function storedRows(folder: string, table: string): Promise<number> {
  const [row] = await readSql(
    `SELECT count(*)::INT AS rows FROM store.${table}`,
    `ATTACH '${databasePath(folder)}' AS store (READ_ONLY)`,
  )
  return Number(row.rows)
}

const identity = (atMs: number): string => `an_${ulid(atMs)}`

/** Submissions of several agents on several tokens over days, some rejected, some awards by hand. */
function history(count: number): Write[][] {
  return Array.from({ length: count }, (_, i) => {
    const at = NOON_MS - Math.floor((count - i) * 3.5 * MINUTE_MS)
    const agent_id = `agent-${i % 3}`
    const over = {
      agent_id,
      mint: `mint-${i % 5}`,
      score: i,
      sentiment: i % 2 ? 'bullish' : 'bearish',
      submitted_at: at,
    }
    if (i % 7 === 3)
      return [writeOf('rejections', { ...over, analysis_id: identity(at), snapshot_at: at, strikes: 1 })]
    if (i % 11 === 5)
      return [writeOf('xp_ledger', { entry_id: `xp-${i}`, agent_id, kind: 'chat', xp: 2.5, awarded_at: at })]
    return submission(identity(at), over)
  })
}

test('a restart knows the same whether the store has kept every row or none', async () => {
  const writes = history(60)
  const recovered = []
  for (const keptSeqs of [Number.MAX_SAFE_INTEGER, 70, 0]) {
    const folder = newFolder()
    const store = await open(folder, keptSeqs)
    for (let i = 0; i < writes.length; i += 30) {
      await store.commit(writes.slice(i, i + 30).flat())
      await store.flushLake()
    }
    await store.close()
    const left = await storedRows(folder, 'training')
    if (keptSeqs === 0) expect(left).toBe(0)
    else expect(left).toBeGreaterThan(0)
    recovered.push((await open(folder, keptSeqs)).recovered)
  }
  expect(recovered[0].xpTotals.length).toBe(3)
  expect(recovered[0].coverage.length).toBe(5)
  expect(recovered[0].cooldowns.length).toBeGreaterThan(0)
  expect(recovered[0].strikes.length).toBeGreaterThan(5)
  expect(recovered[1]).toEqual(recovered[0])
  expect(recovered[2]).toEqual(recovered[0])
})

test('a submission that only the lake has is found as it was, merged or not; what was never made is not', async () => {
  const [whole, thinned] = [await open(newFolder(), Number.MAX_SAFE_INTEGER), await open(newFolder(), 0)]
  const ids: string[] = []
  for (let i = 0; i < 4; i++) {
    const at = NOON_MS - (i % 2) * DAY_MS
    ids.push(identity(at), identity(at))
    const rejected = writeOf('rejections', { analysis_id: ids.at(-1)!, submitted_at: at })
    const writes = [...submission(ids.at(-2)!, { submitted_at: at }), rejected]
    for (const store of [whole, thinned]) {
      await store.commit(writes)
      await store.flushLake()
    }
  }
  const compare = async () => {
    for (const id of ids) {
      const row = await thinned.analysis(id)
      expect(row).toMatchObject({ analysis_id: id })
      expect(row).toEqual(await whole.analysis(id))
    }
  }
  await compare()
  nowMs += DAY_MS
  expect((await thinned.tidyLake()).removed).toBeGreaterThan(0)
  await compare()
  for (const id of [identity(NOON_MS), identity(NOON_MS - 9 * DAY_MS), 'an_1', `an_${'Z'.repeat(26)}`, ''])
    expect(await thinned.analysis(id)).toBeNull()
})

test('rows that no file holds yet stay, and so does what a summary has of rows that went', async () => {
  const folder = newFolder()
  const store = await open(folder, 0)
  await store.commit(submission(identity(NOON_MS)))
  await store.flushLake()
  const last = identity(NOON_MS)
  await store.commit(submission(last))
  expect(await store.analysis(last)).toMatchObject({ analysis_id: last })
  rmSync(join(folder, 'lake', '.files', 'training'), { recursive: true })
  rmSync(join(folder, 'lake', 'training'), { recursive: true })
  await store.close()
  const again = await open(folder, 0)
  expect(again.recovered.xpTotals).toEqual([{ agentId: 'agent-1', xp: 35, analyses: 2 }])
  expect(again.recovered.coverage).toMatchObject([{ count: 2 }])
  expect(await again.analysis(last)).toMatchObject({ analysis_id: last })
  expect(await readSql(`SELECT analysis_id FROM ${lakeGlob(folder, 'training')}`)).toEqual([
    { analysis_id: last },
  ])
})

test('the database files stay small however much was stored', async () => {
  const [rounds, perRound] = [8, 200]
  // Noise, so that no file is small because it packs well.
  const noise = (i: number) => createHash('shake256', { outputLength: 750 }).update(`${i}`).digest('hex')
  const store = await open(newFolder(), 300, { checkpointLogBytes: 128 * 1024 })
  const bytes: number[] = []
  for (let round = 0; round < rounds; round++) {
    const ids = Array.from({ length: perRound }, (_, i) => round * perRound + i)
    await store.commit(ids.flatMap((i) => submission(`an_${i}`, { summary: noise(i) })))
    await store.flushLake()
    bytes.push((await store.status()).databaseBytes)
  }
  const early = Math.max(...bytes.slice(0, rounds / 2))
  const late = Math.max(...bytes.slice(rounds / 2))
  expect(late).toBeLessThanOrEqual(early * 1.1)
})
