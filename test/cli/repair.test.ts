// A data folder of which one file is damaged, in each way, and what is documented to do about it, run as it is written. What comes out
// is compared with the folder before the damage.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Row } from '../../src/schema/tables.ts'
import { withScratchDatabase } from '../../src/store/duckdb/scratch-database.ts'
import type { Store } from '../../src/store/store.ts'
import {
  submission as accepted,
  closedBar,
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  temporaryFolder,
  writeOf,
} from '../store/support.ts'
import { runCommand } from '../support/terminal.ts'

const MINUTE_MS = 60_000
/** The folder before the damage, as a killed server leaves it: some commits are in the log only. */
let whole: string
/** The copy that a test damages. */
let folder: string
let before: Awaited<ReturnType<typeof readFolder>>

const submission = (id: string, over: Row) => accepted(id, { outcome: 'validated', ...over })
const event = (kind: string, agentId: string, data: object) =>
  writeOf('agent_events', { agent_id: agentId, kind, data: JSON.stringify(data), at: NOON_MS })
const openFolder = (): Promise<Store> => openTestStore(folder, { labelsDelayMs: 600_000, lakeQuietMs: 0 })

beforeAll(async () => {
  folder = temporaryFolder()
  const store = await openFolder()
  for (const agent of ['ag_1', 'ag_2', 'ag_3'])
    await store.commit([
      writeOf('agents', { agent_id: agent, name: `name of ${agent}` }),
      writeOf('agent_keys', { agent_id: agent, key_hash: `hash of ${agent}` }),
    ])
  await store.commit(submission('an_1', { agent_id: 'ag_1', mint: 'mint-1' }))
  await store.commit(submission('an_2', { agent_id: 'ag_2', mint: 'mint-1' }))
  await store.commit([
    writeOf('rejections', { analysis_id: 'an_3', agent_id: 'ag_3', mint: 'mint-2', outcome: 'rejected' }),
  ])
  store.bars.add(closedBar())
  await store.flushLake()
  // Three files of `training`, of which a merge makes one; the replaced ones stay for readers.
  for (const id of ['an_4', 'an_5']) {
    await store.commit(submission(id, { agent_id: 'ag_1', mint: 'mint-2' }))
    store.bars.add(closedBar({ t: NOON_MS + MINUTE_MS * Number(id.slice(3)) }))
    await store.flushLake()
  }
  await store.compactLake()
  // The last flush has accounts only, of which no file of the lake tells.
  await store.commit([event('banned', 'ag_3', { untilMs: null, reason: 'copied' })])
  await store.flushLake()
  await store.commit([event('banned', 'ag_2', { untilMs: NOON_MS + 1, reason: 'late' })])
  await store.commit(submission('an_6', { agent_id: 'ag_2', mint: 'mint-1' }))
  whole = temporaryFolder()
  rmSync(whole, { recursive: true })
  cpSync(folder, whole, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.lock'),
  })
  await store.close()
  removeFolder(folder)
  copyWhole()
  before = await readFolder()
  removeFolder(folder)
}, 60_000)
afterAll(() => removeFolder(whole))

function copyWhole(): void {
  folder = temporaryFolder()
  rmSync(folder, { recursive: true })
  cpSync(whole, folder, { recursive: true })
}

/** What a server knows after a start, and what readers of the lake have once it has ended. */
async function readFolder() {
  const store = await openFolder()
  const { reasons } = await store.status()
  const {
    agents,
    agentKeys,
    agentEvents,
    xpTotals,
    coverage,
    outcomeCounts,
    strikes,
    cooldowns,
    recentLabels,
  } = store.recovered
  await store.close()
  const rows = async (table: string, columns: string) =>
    (await readSql(`SELECT ${columns} AS name FROM ${lakeGlob(folder, table)} ORDER BY ALL`)).map(
      ({ name }) => name,
    )
  return {
    accounts: { agents, agentKeys, agentEvents },
    sums: { xpTotals, coverage, outcomeCounts },
    limits: { strikes, cooldowns: new Set(cooldowns.map((each) => JSON.stringify(each))), recentLabels },
    lake: {
      training: await rows('training', 'analysis_id'),
      ledger: await rows('xp_ledger', 'entry_id'),
      bars: await rows('bars', 't::VARCHAR'),
    },
    reasons,
  }
}

const repair = () => runCommand(['repair', '--data-dir', folder])
const acknowledge = () => runCommand(['lake', 'repair', '--data-dir', folder])
const verify = () => runCommand(['lake', 'verify', '--data-dir', folder])

/** The ways in which a file is damaged. */
const DAMAGES = {
  flipped(path: string) {
    const bytes = readFileSync(path)
    // In each block of a database, since some may be free.
    for (let at = bytes.length >> 1; at < bytes.length; at += 65_536) bytes[at] ^= 0x41
    if (bytes.length > 12_388) for (let at = 12_388; at < bytes.length; at += 262_144) bytes[at] ^= 0x41
    writeFileSync(path, bytes)
  },
  cut: (path: string) => truncateSync(path, statSync(path).size >> 1),
  emptied: (path: string) => truncateSync(path, 0),
  'a folder': (path: string) => {
    rmSync(path)
    mkdirSync(join(path, 'inside'), { recursive: true })
  },
  deleted: (path: string) => rmSync(path),
} as const
const damage = (how: keyof typeof DAMAGES, ...path: string[]): void => DAMAGES[how](join(folder, ...path))

async function startError(): Promise<string> {
  const store = await openFolder().catch((error: Error) => error)
  if (store instanceof Error) return store.message
  await store.close()
  return ''
}

/** Runs the way out, and expects everything that was there before. How its loss is acknowledged: where the start itself makes it anew. */
async function expectWhole(lost: RegExp): Promise<void> {
  const repaired = await repair()
  expect(repaired.code, repaired.err).toBe(0)
  expect(repaired.out).toMatch(lost)
  const { reasons, ...after } = await readFolder()
  const { reasons: _, ...expected } = before
  expect(after).toEqual(expected)
  expect(reasons.join()).toMatch(lost)
}

/** The loss is told by every start until it is acknowledged, and then by none. */
async function expectAcknowledged(lost: RegExp): Promise<void> {
  expect((await readFolder()).reasons.join()).toMatch(lost)
  const acknowledged = await acknowledge()
  expect(acknowledged.code, acknowledged.err).toBe(0)
  expect(acknowledged.out).toMatch(lost)
  expect((await readFolder()).reasons).toEqual([])
  expect((await acknowledge()).out).toContain('nothing is lost')
  const verified = await verify()
  expect(verified.out).toContain('nothing is wrong')
  expect(verified.code).toBe(0)
}

const STATE_LOST =
  /the state database was lost and made anew from the lake and the log; lost: answers that were remembered/

describe('a state database that is', () => {
  it.for(['flipped', 'a folder'] as const)(
    '%s is refused with the command that makes it anew, and nothing but remembered answers is lost',
    { tags: 'drill', timeout: 60_000 },
    async (how) => {
      copyWhole()
      // Everything is in the database file, none of it in its log.
      await readFolder().then(() => damage(how, 'state.duckdb'))
      const message = await startError()
      expect(message).toContain(`\`mintlake repair --data-dir ${folder}\``)
      expect((await verify()).err).toContain('mintlake repair --data-dir')
      expect((await runCommand(['doctor', '--data-dir', folder, '--port', '0'])).out).toMatch(
        /fail +data folder .*state\.duckdb is (damaged|a folder)[\s\S]*mintlake repair/,
      )
      await expectWhole(STATE_LOST)
      expect(readdirSync(folder).some((name) => /^state\.duckdb\.\d+\.set-aside$/.test(name))).toBe(true)
      removeFolder(folder)
    },
  )

  it('deleted with commits in the log is made anew by the start itself', { tags: 'drill' }, async () => {
    copyWhole()
    for (const name of ['state.duckdb', 'state.duckdb.wal']) rmSync(join(folder, name), { force: true })
    const { reasons, ...after } = await readFolder()
    const { reasons: _, ...expected } = before
    expect(after).toEqual(expected)
    expect(reasons.join()).toMatch(STATE_LOST)
    await expectAcknowledged(STATE_LOST)
    removeFolder(folder)
  })

  it('deleted with the catalog is made anew from the folders: merged files do not come back', {
    tags: 'drill',
    timeout: 60_000,
  }, async () => {
    copyWhole()
    for (const name of ['state.duckdb', 'state.duckdb.wal', 'lake/catalog.duckdb'])
      rmSync(join(folder, name), { force: true })
    await expectWhole(STATE_LOST)
    removeFolder(folder)
  })

  it.for([0, 1])(
    'deleted after commits that had no row of the lake, %i in the log: none is told to be lost',
    async (waiting) => {
      copyWhole()
      const store = await openFolder()
      for (let commit = 0; commit < 5; commit++)
        await store.commit([writeOf('submit_attempts', { agent_id: 'ag_1', at: NOON_MS })])
      await store.flushLake()
      for (let commit = 0; commit < waiting; commit++)
        await store.commit(submission('an_7', { agent_id: 'ag_1' }))
      const killed = join(temporaryFolder(), 'killed')
      cpSync(folder, killed, {
        recursive: true,
        filter: (path) => !/\.lock$|state\.duckdb/.test(path),
      })
      await store.close()
      removeFolder(folder)
      folder = killed
      const { lake, reasons } = await readFolder()
      expect(lake.training).toHaveLength(before.lake.training.length + waiting)
      expect(reasons).toEqual([expect.stringMatching(STATE_LOST)])
      removeFolder(dirname(folder))
    },
  )

  it('older than the lake is refused, instead of the lake’s files being removed', {
    tags: 'drill',
    timeout: 60_000,
  }, async () => {
    copyWhole()
    await readFolder()
    const old = readFileSync(join(folder, 'state.duckdb'))
    const later = await openFolder()
    await later.commit(submission('an_7', { agent_id: 'ag_1', mint: 'mint-1' }))
    await later.close()
    writeFileSync(join(folder, 'state.duckdb'), old)
    expect(await startError()).toMatch(/state\.duckdb is older than the lake: .*mintlake repair --data-dir/)
    const repaired = await repair()
    expect(repaired.code, repaired.err).toBe(0)
    expect((await readFolder()).lake.training).toEqual([...before.lake.training, 'an_7'])
    removeFolder(folder)
  })
})

describe('a copy of the accounts that is', () => {
  it('flipped costs accounts only where the state is lost too, which is told', {
    tags: 'drill',
    timeout: 60_000,
  }, async () => {
    copyWhole()
    damage('flipped', 'accounts.log')
    expect((await readFolder()).accounts).toEqual(before.accounts)
    damage('cut', 'state.duckdb')
    damage('flipped', 'accounts.log')
    expect((await repair()).out).toMatch(/lost: (agents, keys|\d+ entr(y|ies) of agents)/)
    expect((await readFolder()).sums).toEqual(before.sums)
    removeFolder(folder)
  })
})

describe('a description of the folder (store.json) that is', () => {
  it.for(['a folder', 'deleted'] as const)(
    '%s is found again, and nothing is lost',
    {
      tags: 'drill',
      timeout: 60_000,
    },
    async (how) => {
      copyWhole()
      const content = readFileSync(join(folder, 'store.json'), 'utf8')
      damage(how, 'store.json')
      if (how !== 'deleted') {
        expect(await startError()).toContain(`\`mintlake repair --data-dir ${folder}\``)
        const repaired = await repair()
        expect(repaired.code, repaired.err).toBe(0)
        expect(repaired.out).toMatch(/store\.json is a folder; it is kept as .*\n.*store\.json was made anew/)
        expect(repaired.out).toContain('nothing is lost')
      }
      expect(await readFolder()).toEqual(before)
      expect(readFileSync(join(folder, 'store.json'), 'utf8')).toBe(content)
      removeFolder(folder)
    },
  )

  it('deleted with the copy of the accounts is found again by the segments of the log', {
    tags: 'drill',
  }, async () => {
    copyWhole()
    damage('deleted', 'accounts.log')
    damage('deleted', 'store.json')
    expect(await readFolder()).toEqual(before)
    removeFolder(folder)
  })
})

describe('the log', () => {
  it('that is a file is refused, and the repair tells that commits are lost', {
    tags: 'drill',
    timeout: 60_000,
  }, async () => {
    copyWhole()
    rmSync(join(folder, 'log'), { recursive: true })
    writeFileSync(join(folder, 'log'), 'not a folder')
    expect(await startError()).toMatch(/\/log is no folder\. .*`mintlake repair --data-dir/)
    const repaired = await repair()
    expect(repaired.out).toContain('log was no folder: commits that the lake did not have yet are lost')
    expect((await readFolder()).lake.training).toEqual(['an_1', 'an_2', 'an_4', 'an_5'])
    await expectAcknowledged(/log was no folder/)
    removeFolder(folder)
  })

  it('with a damaged segment is read as far as it can be, and the loss stays told', {
    tags: 'drill',
    timeout: 60_000,
  }, async () => {
    copyWhole()
    const [segment] = readdirSync(join(folder, 'log')).filter((name) => name.endsWith('.log'))
    const path = join(folder, 'log', segment)
    const bytes = readFileSync(path)
    bytes[bytes.indexOf('agent_events')] ^= 0x41
    writeFileSync(path, bytes)
    const first = await readFolder()
    expect(first.lake.training).toEqual(before.lake.training)
    expect(existsSync(`${path}.damaged`)).toBe(true)
    expect((await verify()).code).toBe(1)
    await expectAcknowledged(/the log is damaged: invalid bytes .*the commits \d+ to \d+ are lost/)
    expect(existsSync(`${path}.damaged`)).toBe(true)
    removeFolder(folder)
  })
})

describe('what should be a folder and is a file is moved out of the way, and what it had is told:', () => {
  it.for([
    ['journal', 'journal was no folder: recorded events that the lake did not have yet are lost'],
    ['lake', 'lake was no folder: all of its files are lost'],
  ])('%s', { tags: 'drill', timeout: 60_000 }, async ([name, told]) => {
    copyWhole()
    rmSync(join(folder, name), { recursive: true, force: true })
    writeFileSync(join(folder, name), 'not a folder')
    expect(await startError()).toContain(`/${name} is no folder. Stop the server, and \`mintlake repair`)
    const repaired = await repair()
    expect(repaired.code, repaired.err).toBe(0)
    expect(repaired.out).toContain(told)
    const store = await openFolder()
    const { agents, xpTotals } = store.recovered
    await store.close()
    expect({ agents, xpTotals }).toEqual({ agents: before.accounts.agents, xpTotals: before.sums.xpTotals })
    removeFolder(folder)
  })
})

it('a state and a file of the lake that are damaged at once: the file is set aside, and what it had is told', {
  tags: 'drill',
  timeout: 60_000,
}, async () => {
  copyWhole()
  await readFolder()
  // Live files have a link in the folder of their date.
  const live = readdirSync(join(folder, 'lake', 'training'), { recursive: true, encoding: 'utf8' })
  const [name] = live.filter((file) => file.endsWith('.parquet'))
  const path = join(folder, 'lake', '.files', 'training', name)
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1] ^= 0x41
  writeFileSync(path, bytes)
  damage('cut', 'state.duckdb')
  const repaired = await repair()
  expect(repaired.code, repaired.err).toBe(0)
  // Which of the two it is depends on what the flipped byte meant.
  expect(repaired.out).toMatch(
    /training\/.*: (has other content than was written|cannot be read: .*); \d rows? lost/,
  )
  expect((await readFolder()).accounts).toEqual(before.accounts)
  expect((await acknowledge()).code).toBe(0)
  expect(await verify()).toMatchObject({ code: 0 })
  removeFolder(folder)
})

describe('a lost file of the ledger, and then the state', () => {
  const removeState = (): void => {
    for (const name of ['state.duckdb', 'state.duckdb.wal']) rmSync(join(folder, name), { force: true })
  }

  /** @returns where the file was, and its content */
  async function loseLedgerFile(): Promise<[string, Buffer]> {
    copyWhole()
    await readFolder()
    const [name] = readdirSync(join(folder, 'lake/xp_ledger'), { recursive: true, encoding: 'utf8' }).filter(
      (each) => each.endsWith('.parquet'),
    )
    const [path, link] = [join(folder, 'lake/.files/xp_ledger', name), join(folder, 'lake/xp_ledger', name)]
    const content = readFileSync(path)
    for (const each of [path, link]) rmSync(each)
    // Set aside by a start, while the state is there.
    expect((await readFolder()).lake.ledger.length).toBeLessThan(before.lake.ledger.length)
    return [path, content]
  }

  it('are whole again where the file is put back before the start', async () => {
    const [path, content] = await loseLedgerFile()
    removeState()
    writeFileSync(path, content)
    const { sums, lake, reasons } = await readFolder()
    expect({ sums, lake }).toEqual({ sums: before.sums, lake: before.lake })
    expect(reasons.join()).toMatch(STATE_LOST)
    expect(reasons.join()).not.toContain('XP')
    removeFolder(folder)
  })

  // Before catalogs had the size and hash of files that are set aside.
  it.for(['today', 'an earlier version'])(
    'are told with the XP, and the file is taken back later, with a catalog of %s',
    async (age) => {
      const [path, content] = await loseLedgerFile()
      removeState()
      if (age !== 'today')
        await withScratchDatabase(join(folder, 'lake/catalog.duckdb'), {}, async (connection) => {
          for (const column of ['bytes', 'schema_version', 'written_at', 'sha256'])
            await connection.run(`ALTER TABLE lake_set_aside DROP COLUMN ${column}`)
        })
      const { reasons } = await readFolder()
      expect(reasons.join()).toMatch(
        /since files of the lake are set aside, the XP of \d rows? of xp_ledger\./,
      )
      writeFileSync(path, content)
      // The store that it opens takes it back.
      expect((await acknowledge()).out).not.toMatch(/xp_ledger\/dt=/)
      expect((await readFolder()).lake).toEqual(before.lake)
      removeFolder(folder)
    },
  )
})

describe('what a start mends by itself:', () => {
  it.for([
    ['lake', 'catalog.duckdb'],
    ['losses.json', ''],
  ] as const)('%s/%s', { tags: 'drill', timeout: 60_000 }, async (path) => {
    // To DuckDB an empty file is a new database.
    for (const how of path[0] === 'lake' ? (['cut', 'emptied'] as const) : (['cut'] as const)) {
      copyWhole()
      if (!existsSync(join(folder, ...path))) writeFileSync(join(folder, ...path), '{"some": "text"}')
      damage(how, ...path)
      const { reasons, ...after } = await readFolder()
      const { reasons: _, ...expected } = before
      expect(after).toEqual(expected)
      if (path[0] === 'losses.json')
        await expectAcknowledged(/the list of losses \(losses\.json\) was damaged/)
      else expect(reasons).toEqual([])
      removeFolder(folder)
    }
  })
})

it('a folder that nothing is wrong with is left as it is', async () => {
  copyWhole()
  const repaired = await repair()
  expect(repaired).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringMatching(/^the lake in .*\nnothing is lost\na server can start\n$/),
  })
  expect(await readFolder()).toEqual(before)
  removeFolder(folder)
})

it('a folder without a store, and one that a server uses, are refused', async () => {
  copyWhole()
  const store = await openFolder()
  expect(await repair()).toMatchObject({ code: 1, err: expect.stringMatching(/is already in use by/) })
  await store.close()
  removeFolder(folder)
  mkdirSync(folder)
  expect(await repair()).toMatchObject({ code: 1, err: expect.stringContaining('there is no store in') })
  removeFolder(folder)
})
