// What a data folder says of itself and who may use it: the kind of data it holds, one server at a time, a state database that
// is gone.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, it } from 'vitest'
import type { Write } from '../../../src/schema/tables.ts'
import { DiskSpace } from '../../../src/store/data-folder/disk-space.ts'
import { findLockHolder, isLockedElsewhere, lockFolder } from '../../../src/store/data-folder/folder-lock.ts'
import { duckdb } from '../../../src/store/duckdb/duckdb.ts'
import { repairFolder } from '../../../src/store/repair-folder.ts'
import type { Store } from '../../../src/store/store.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { clockOf } from '../../support/clock.ts'
import { until } from '../../support/disk/watched-server.ts'
import { type ServerProcess, spawnServer } from '../../support/test-server.ts'
import {
  closedBar,
  NOON_MS,
  openTestStore,
  quietLog,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
  writeOf,
} from '../support.ts'

const SIMULATED = { feed: 'simulator', simulated: true }
const REAL = { feed: 'pumpportal', simulated: false }
const MIXED = "holds simulated data, and this feed's is real"

const folders: string[] = []
const open: Store[] = []
const servers: ServerProcess[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill()
  for (const store of open.splice(0)) await store.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})
function newFolder(): string {
  const folder = temporaryFolder()
  folders.push(folder)
  return folder
}
async function openIn(folder: string, options: Parameters<typeof openTestStore>[1] = {}): Promise<Store> {
  const store = await openTestStore(folder, options)
  open.push(store)
  return store
}
async function close(store: Store): Promise<void> {
  open.splice(open.indexOf(store), 1)
  await store.close()
}
async function serve(folder: string): Promise<ServerProcess> {
  const server = await spawnServer({}, folder)
  servers.push(server)
  return server
}
async function kill(server: ServerProcess): Promise<void> {
  servers.splice(servers.indexOf(server), 1)
  await server.kill()
}

/** Processes that a process has started and that live. */
function childrenOf(pid: number): number[] {
  const parentOf = (text: string): number => Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return parentOf(readFileSync(`/proc/${name}/stat`, 'utf8')) === pid
      } catch {
        return false
      }
    })
    .map(Number)
}

const statusOf = (pid: number): string => readFileSync(`/proc/${pid}/status`, 'utf8')

/** As the submission service writes it: where data comes from is the store's to say. */
function withoutProvenance({ table, row: { feed: _feed, simulated: _simulated, ...row } }: Write): Write {
  return { table, row }
}

const lakeRows = (folder: string, sql: string) =>
  readSql(sql, `ATTACH '${folder}/lake/catalog.duckdb' AS lake (READ_ONLY)`, 'USE lake')

describe('simulated and real data', () => {
  it('do not mix unseen: a real feed on a simulated folder is refused with a sentence, and the other way round', async () => {
    for (const [first, second, sentence] of [
      [SIMULATED, REAL, MIXED],
      [REAL, SIMULATED, 'holds real data'],
    ] as const) {
      const folder = newFolder()
      // A run that had no data does not decide what the folder is for.
      await close(await openIn(folder, { provenance: second }))
      const store = await openIn(folder, { provenance: first })
      expect(store.noteData()).toBe(true)
      await close(store)
      const refused = openIn(folder, { provenance: second })
      await expect(refused).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(`${sentence}.*--mixed true`),
      })
      // What brings no data of its own may look at any folder.
      if (first === SIMULATED) await close(await openIn(folder))
    }
  })

  it('do not mix where store.json is lost, though the first of them came after the copy of the accounts had been written', async () => {
    const folder = newFolder()
    const simulated = { feed: 'simulator', simulated: true }
    const store = await openIn(folder, { provenance: simulated })
    await store.flushLake()
    expect(store.noteData()).toBe(true)
    await close(store)
    const before = readFileSync(join(folder, 'store.json'), 'utf8')
    rmSync(join(folder, 'store.json'))
    const real = { feed: 'push', simulated: false }
    await expect(openIn(folder, { provenance: real })).rejects.toMatchObject({ code: 'invalid' })
    expect(readFileSync(join(folder, 'store.json'), 'utf8')).toBe(before)
  })

  it('lie in one folder where the operator says so, told apart by the columns feed and simulated', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    for (const [id, provenance] of [
      ['simulated', SIMULATED],
      ['real', REAL],
    ] as const) {
      const store = await openIn(folder, { provenance, isMixed: true })
      await store.commit(submission(`an_${id}`, { mint: id }).map(withoutProvenance))
      store.bars.add(closedBar({ mint: id }))
      await store.flushLake()
      await close(store)
    }
    const expected = [
      { mint: 'real', feed: 'pumpportal', simulated: false },
      { mint: 'simulated', feed: 'simulator', simulated: true },
    ]
    for (const table of ['training', 'bars'])
      expect(await lakeRows(folder, `SELECT mint, feed, simulated FROM ${table} ORDER BY mint`)).toEqual(
        expected,
      )
  })

  it('of a server: a real feed on a simulated folder ends the program with exit code 1', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    const store = await openIn(folder, { provenance: SIMULATED })
    store.noteData()
    await close(store)
    const replay = { feed: 'pumpportal' }
    const exits = spawnServer(replay, folder, { MINTLAKE_PROVIDERS: 'pumpportal-url=ws://127.0.0.1:9' })
    await expect(exits).rejects.toThrow('the server ended with 1 before it listened')
  })
})

describe('a folder', () => {
  it('belongs to one server: a second is refused while the first lives', async () => {
    const folder = newFolder()
    const first = await serve(folder)
    const second = openTestStore(folder)
    await expect(second).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(`is in use by another process (process ${first.process.pid})`),
    })
  })

  it('is free again after a kill, though the lake process of the killed server takes its time to end', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    const first = await serve(folder)
    const children = childrenOf(first.process.pid!)
    expect(children.length).toBeGreaterThan(0)
    for (const child of children) process.kill(child, 'SIGSTOP')
    await kill(first)
    const next = openIn(folder)
    await new Promise((resolve) => setTimeout(resolve, 700))
    for (const child of children) process.kill(child, 'SIGKILL')
    expect((await (await next).status()).healthy).toBe(true)
  })

  it('is free again after a kill, though nobody asks about the killed process and its entry stays', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    const lockModule = new URL('../../../src/store/data-folder/folder-lock.ts', import.meta.url).pathname
    const holder = `import { lockFolder } from '${lockModule}'; lockFolder('${folder}'); console.log(process.pid); setInterval(() => {}, 1000)`
    // The shell gives way to a program that never waits for its children.
    const parent = spawn(
      'sh',
      ['-c', '"$0" --no-warnings --input-type=module -e "$1" & exec sleep 600', process.execPath, holder],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    try {
      const [line] = await once(createInterface({ input: parent.stdout }), 'line')
      const pid = Number(line)
      expect(findLockHolder(folder)).toBe(pid)
      process.kill(pid, 'SIGKILL')
      await until(
        'the holder has ended',
        () => /^Threads:\t[01]$/m.test(statusOf(pid)) && /^State:\tZ/m.test(statusOf(pid)),
      )
      expect(findLockHolder(folder)).toBeNull()
      const store = await openIn(folder)
      expect((await store.status()).healthy).toBe(true)
      expect(statusOf(pid)).toMatch(/^State:\tZ/m)
    } finally {
      parent.kill('SIGKILL')
    }
  })

  it('takes no commit and no event where it is not locked, since the disk takes no lock, until it is', async () => {
    let missing: string | null = 'the disk takes no lock'
    const space = new DiskSpace(newFolder(), 0, { missing: () => missing, release() {} })
    const mayBoth = () => [space.mayWrite(0), space.mayRecord(0)]
    await space.refresh()
    expect([mayBoth(), space.unlocked]).toEqual([[false, false], missing])
    missing = null
    await space.refresh()
    expect([mayBoth(), space.unlocked]).toEqual([[true, true], null])
    space.close()
  })

  it('of a server in another container stays where a second one is refused, and is taken over once that has ended', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    const path = join(folder, 'server.lock')
    const first = await serve(folder)
    const [, pid, startedAt] = /^(\d+)@(\w*\.\d+)\.\d+$/.exec(readlinkSync(path))!
    rmSync(path)
    const elsewhere = `${pid}@${startedAt}.1`
    symlinkSync(elsewhere, path)
    expect([findLockHolder(folder), isLockedElsewhere(folder)]).toEqual([null, true])
    await expect(openIn(folder)).rejects.toMatchObject({ code: 'unavailable' })
    expect(readlinkSync(path)).toBe(elsewhere)
    await kill(first)
    const store = await openIn(folder)
    expect([findLockHolder(folder), isLockedElsewhere(folder)]).toEqual([process.pid, false])
    await close(store)
    expect(readdirSync(folder)).not.toContain('server.lock')
  })

  it('of another process is not removed by one that had it before', () => {
    const folder = newFolder()
    const path = join(folder, 'server.lock')
    const lock = lockFolder(folder)
    rmSync(path)
    symlinkSync('1@', path)
    lock.release()
    expect(readlinkSync(path)).toBe('1@')
  })

  it('of another container is put back over what a process that was killed meanwhile has left', () => {
    const folder = newFolder()
    const path = join(folder, 'server.lock')
    symlinkSync('7@abcdefgh.1.1', path)
    const lock = lockFolder(folder)
    symlinkSync('left', `${path}.${process.pid}`)
    lock.release(true)
    expect(readlinkSync(path)).toBe('7@abcdefgh.1.1')
    expect(readdirSync(folder)).toEqual(['server.lock'])
  })

  it('is taken over from a lock whose process number was given to another process since', async () => {
    const folder = newFolder()
    // This process lives, and began at another time.
    symlinkSync(`${process.ppid}@00000000.1`, join(folder, 'server.lock'))
    const store = await openIn(folder)
    expect((await store.status()).healthy).toBe(true)
  })
})

describe('a folder of version 0.1, whose rows were in mintlake.duckdb,', () => {
  it('is refused with what to do, and stays as it is', async () => {
    const folder = newFolder()
    const instance = await duckdb.DuckDBInstance.create(join(folder, 'mintlake.duckdb'))
    instance.closeSync()
    mkdirSync(join(folder, 'lake'))
    const before = readdirSync(folder)
    await expect(openIn(folder)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(
        /was written by Mintlake 0\.1, which .* export its tables with that version/,
      ),
    })
    await expect(
      repairFolder({ dataDir: folder, lakeFlushMs: 0, log: quietLog, clock: clockOf(() => NOON_MS) }),
    ).rejects.toThrow(/0\.1/)
    expect(readdirSync(folder)).toEqual(before)
  })

  it('is told from one of today that kept the text in its place, though its store.json is lost', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    const store = await openIn(folder)
    await store.commit([writeOf('agents', { agent_id: 'agent-1' })])
    await close(store)
    writeFileSync(
      join(folder, 'mintlake.duckdb'),
      'This data folder has format 2: Mintlake 0.1 must not be started on it.',
    )
    rmSync(join(folder, 'store.json'))
    const { recovered } = await openIn(folder)
    expect(recovered.agents).toHaveLength(1)
  })
})

describe('a state database that is gone', () => {
  it('is rebuilt from the lake: files are listed again, sums added up, and the loss told until a repair settles it', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    let store = await openIn(folder)
    await store.commit([writeOf('agents', { agent_id: 'agent-1' })])
    for (const id of ['an_1', 'an_2', 'an_3']) await store.commit(submission(id, { mint: 'mint-1' }))
    store.bars.add(closedBar())
    await close(store)
    for (const name of ['state.duckdb', 'state.duckdb.wal']) rmSync(join(folder, name), { force: true })

    const told: string[] = []
    const log = { ...quietLog, error: (_: unknown, message: string) => void told.push(message) }
    store = await openIn(folder, { log })
    expect(told.join()).toContain('the state database was lost')
    expect(store.recovered.agents).toMatchObject([{ agent_id: 'agent-1' }])
    expect(store.recovered.xpTotals).toEqual([{ agentId: 'agent-1', xp: 52.5, analyses: 3 }])
    expect(store.recovered.coverage).toMatchObject([{ mint: 'mint-1', count: 3 }])
    expect((await store.status()).reasons.join()).toContain('the state database was lost')
    await store.commit(submission('an_4', { mint: 'mint-1' }))
    await close(store)

    store = await openIn(folder)
    expect((await store.status()).reasons.join()).toContain('the state database was lost')
    await store.repairLake()
    expect((await store.status()).reasons).toEqual([])
    await close(store)
    store = await openIn(folder)
    expect((await store.status()).reasons).toEqual([])
    await close(store)
    expect(await lakeRows(folder, 'SELECT count(*)::INT AS rows FROM training')).toEqual([{ rows: 4 }])
    expect((await verifyLake({ dataDir: folder, nowMs: NOON_MS })).findings).toEqual([])
  })

  it('is rebuilt by the next start where the first one was cut off before it had begun to use the new one', {
    tags: 'drill',
  }, async () => {
    const folder = newFolder()
    const store = await openIn(folder)
    await store.commit(submission('an_1', { mint: 'mint-1' }))
    await close(store)
    // As a start leaves it that ends right after it made the database.
    const instance = await duckdb.DuckDBInstance.create(join(folder, 'state.duckdb'), { threads: '1' })
    const connection = await instance.connect()
    for (const table of ['lake_files', 'state_entries', 'state_chunks', 'outcomes_open'])
      await connection.run(`DELETE FROM ${table}`)
    await connection.run('UPDATE state_position SET lsn = 0, known_at_ms = 0, is_begun = false')
    connection.closeSync()
    instance.closeSync()

    const next = await openIn(folder)
    expect(next.recovered.coverage).toMatchObject([{ mint: 'mint-1', count: 1 }])
    await close(next)
    expect(await lakeRows(folder, 'SELECT analysis_id FROM training')).toEqual([{ analysis_id: 'an_1' }])
    expect((await verifyLake({ dataDir: folder, nowMs: NOON_MS })).findings).toEqual([])
  })

  it('of a new folder is no loss', async () => {
    const store = await openIn(newFolder())
    expect((await store.status()).reasons).toEqual([])
  })
})
