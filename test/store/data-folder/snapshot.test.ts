// Copies of a store in use: whole, as of one commit, and a store of their own.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { readWholeState } from '../../../src/store/duckdb/damaged-state.ts'
import { attachState } from '../../../src/store/duckdb/duckdb.ts'
import { withScratchDatabase } from '../../../src/store/duckdb/scratch-database.ts'
import type { Store } from '../../../src/store/store.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import {
  closedBar,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
} from '../support.ts'

const WRITERS = 4
const folders: string[] = []
const open: Store[] = []
afterEach(async () => {
  for (const store of open.splice(0)) await store.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})
function newFolder(): string {
  const folder = temporaryFolder()
  folders.push(folder)
  return folder
}
async function openIn(folder: string, lakeFlushMs = 0): Promise<Store> {
  const store = await openTestStore(folder, { lakeFlushMs })
  open.push(store)
  return store
}
async function close(store: Store): Promise<void> {
  open.splice(open.indexOf(store), 1)
  await store.close()
}

/** Submissions by writer that a closed store has in its lake, in order. */
async function idsIn(folder: string): Promise<Map<string, number[]>> {
  const rows = await readSql(
    'SELECT agent_id, list(analysis_id) AS ids FROM lake.training GROUP BY 1',
    `ATTACH '${folder}/lake/catalog.duckdb' AS lake (READ_ONLY)`,
  )
  return new Map(
    rows.map(({ agent_id, ids }) => [
      agent_id as string,
      (ids as string[]).map((id) => Number(id.split('_').at(-1))).sort((a, b) => a - b),
    ]),
  )
}

it('a snapshot under load opens as a store with what was acknowledged before it and nothing after one LSN, and lake verify finds nothing', {
  tags: 'drill',
}, async () => {
  const [folder, target] = [newFolder(), newFolder()]
  const store = await openIn(folder, 100)
  const acknowledged = new Map<string, number>()
  let isOver = false
  const write = async (agent: string): Promise<void> => {
    for (let i = 0; !isOver; i++) {
      await store.commit(submission(`an_${agent}_${i}`, { agent_id: agent, mint: agent }))
      acknowledged.set(agent, i + 1)
      store.bars.add(closedBar({ mint: agent, t: NOON_MS + i * 60_000 }))
    }
  }
  const writers = Array.from({ length: WRITERS }, (_, index) => write(`writer${index}`))
  const copies: { to: string; lsn: number; before: Map<string, number> }[] = []
  for (const name of ['first', 'second']) {
    await store.flushLake()
    const [to, before] = [join(target, name), new Map(acknowledged)]
    copies.push({ to, before, lsn: (await store.snapshot(to)).lsn })
  }
  isOver = true
  await Promise.all(writers)
  await close(store)
  expect((await verifyLake({ dataDir: folder, nowMs: NOON_MS })).findings).toEqual([])

  for (const { to, lsn, before } of copies) {
    expect(readdirSync(to).sort()).toEqual(['lake', 'log', 'state.duckdb', 'store.json'])
    const copy = await openIn(to)
    const { xpTotals } = copy.recovered
    await close(copy)
    const ids = await idsIn(to)
    let commits = 0
    for (const [agent, numbers] of ids) {
      // A writer's next submission followed the answer to the one before: what the copy has of it is a beginning.
      expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index))
      expect(numbers.length).toBeGreaterThanOrEqual(before.get(agent) ?? 0)
      expect(xpTotals.find(({ agentId }) => agentId === agent)?.analyses).toBe(numbers.length)
      commits += numbers.length
    }
    expect(commits).toBe(lsn)
    expect((await verifyLake({ dataDir: to, nowMs: NOON_MS })).findings).toEqual([])
  }
})

it('a snapshot goes on as a store of its own: what either writes later, the other does not have', {
  tags: 'drill',
}, async () => {
  const [folder, to] = [newFolder(), join(newFolder(), 'copy')]
  const store = await openIn(folder)
  await store.commit(submission('an_writer_0', { agent_id: 'writer' }))
  await store.snapshot(to)
  const copy = await openIn(to)
  await copy.commit(submission('an_writer_1', { agent_id: 'writer' }))
  await store.commit(submission('an_writer_2', { agent_id: 'writer' }))
  await store.compactLake()
  await close(store)
  await close(copy)
  expect((await idsIn(folder)).get('writer')).toEqual([0, 2])
  expect((await idsIn(to)).get('writer')).toEqual([0, 1])
  for (const dataDir of [folder, to])
    expect((await verifyLake({ dataDir, nowMs: NOON_MS })).findings).toEqual([])
})

it('a store keeps the lock on its state database when it is copied, so that no second process writes there', async () => {
  const [folder, target] = [newFolder(), newFolder()]
  await openIn(folder).then((store) =>
    store.snapshot(join(target, 'first')).then(() => store.snapshot(join(target, 'second'))),
  )
  const locked = await withScratchDatabase(':memory:', { threads: '1' }, (connection) =>
    attachState(connection, folder, 'state'),
  )
  expect(locked).toContain(`(process ${process.pid})`)
  // As where the link that names the server is gone: a start in another container takes it, and is refused by this lock alone.
  await expect(readWholeState(folder)).rejects.toThrow(/is in use by another process \(process \d+\)$/)
})

it('a snapshot of a name that is there is refused, and leaves what is there alone', async () => {
  const [folder, to] = [newFolder(), newFolder()]
  mkdirSync(join(to, 'mine'))
  const store = await openIn(folder)
  await expect(store.snapshot(to)).rejects.toMatchObject({ code: 'invalid' })
  expect(readdirSync(to)).toEqual(['mine'])
  expect((await store.status()).healthy).toBe(true)
})

it('leaves out a file that is missing, which no check has noticed yet', async () => {
  const store = await openIn(newFolder())
  await store.commit(submission('an_1'))
  await store.flushLake()
  const [lost] = (await store.lakeFiles()).filter(({ table }) => table === 'training')
  for (const path of [lost.path, lost.path.replace('/.files', '')]) rmSync(path)
  const folder = join(newFolder(), 'copy')
  expect((await store.snapshot(folder)).files).toBe((await store.lakeFiles()).length)
  expect((await store.status()).setAside).toMatchObject({ files: 1 })
})
