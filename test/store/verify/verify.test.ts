// Each kind of damage to a lake is found and named, and an undamaged lake has no findings.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deadLetterFolder, logFolder, statePath } from '../../../src/store/paths.ts'
import { type Verified, verifyLake } from '../../../src/store/verify/verify.ts'
import { NOON_MS, openTestStore, removeFolder, submission, temporaryFolder, writeOf } from '../support.ts'

const DAY_MS = 86_400_000
const CHILD = fileURLToPath(new URL('../process/committer.child.ts', import.meta.url))

/** The lake of each test is in the same folder, as its catalog has absolute paths. */
let root: string
let folder: string
let whole: string

const copyFolder = (from: string, to: string): void => void execFileSync('cp', ['-a', from, to])

const FLUSHES = 3

/** A lake with two merged files and a third one for each table, an earlier date, and an award by the operator. */
async function fillLake(): Promise<void> {
  const store = await openTestStore(folder, { lakeQuietMs: 0 })
  for (let i = 0; i < FLUSHES; i++) {
    if (i === FLUSHES - 1) {
      copyFileSync(catalog(), join(root, 'older.duckdb'))
      await store.compactLake()
    }
    await store.commit([
      ...submission(`an_${i}a`, { agent_id: `ag_${i}`, mint: `mint_${i % 2}` }),
      ...submission(`an_${i}b`, { agent_id: `ag_${i}`, mint: `mint_${i % 2}` }),
      writeOf('rejections', { analysis_id: `an_refused_${i}` }),
    ])
    await store.flushLake()
  }
  await store.commit(submission('an_before', { submitted_at: NOON_MS - DAY_MS }))
  await store.commit([writeOf('xp_ledger', { entry_id: 'xp_1', kind: 'trade', analysis_id: null, xp: 10 })])
  await store.close()
}

const catalog = (): string => join(folder, 'lake', 'catalog.duckdb')

beforeAll(async () => {
  root = temporaryFolder()
  folder = join(root, 'data')
  whole = join(root, 'whole')
  await fillLake()
  copyFolder(folder, whole)
})
afterAll(() => removeFolder(root))
beforeEach(() => {
  removeFolder(folder)
  copyFolder(whole, folder)
})

const verify = (): Promise<Verified> => verifyLake({ dataDir: folder, nowMs: NOON_MS, confirmMs: 1 })
const said = ({ findings }: Verified): string[] =>
  findings.map(({ table, file, message }) => [table, file, message].filter((word) => word !== null).join(' '))

/** Both names of the live files of a table, newest last. */
function filesOf(table: string): { held: string; shown: string; name: string }[] {
  const names = readdirSync(join(folder, 'lake', table), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.parquet'))
    .sort()
  return names.map((name) => ({
    held: join(folder, 'lake/.files', table, name),
    shown: join(folder, 'lake', table, name),
    name: `${table}/${name}`,
  }))
}

async function runSql(path: string, ...statements: string[]): Promise<void> {
  const instance = await DuckDBInstance.create(path, { threads: '1' })
  const connection = await instance.connect()
  try {
    for (const statement of statements) await connection.run(statement)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}
const inStore = (...statements: string[]) => runSql(statePath(folder), ...statements)

/** Rewrites a file with other rows, and updates every list of files to match. */
async function rewrite(table: string, index: number, select: string): Promise<void> {
  const { held, shown, name } = filesOf(table).at(index)!
  await runSql(
    ':memory:',
    `COPY (${select.replaceAll('FILE', `read_parquet('${held}', hive_partitioning=false)`)}) TO '${held}.new' (FORMAT parquet)`,
  )
  rmSync(shown)
  copyFileSync(`${held}.new`, held)
  rmSync(`${held}.new`)
  linkSync(held, shown)
  const bytes = statSync(held).size
  const rows = `(SELECT count(*) FROM '${held}')`
  const sha256 = `'${createHash('sha256').update(readFileSync(held)).digest('hex')}'`
  const figures = `sha256 = ${sha256}`
  await inStore(
    `UPDATE lake_files SET byte_count = ${bytes}, row_count = ${rows}, ${figures} WHERE path = '${name}'`,
  )
  await runSql(
    catalog(),
    `UPDATE lake_files SET bytes = ${bytes}, rows = ${rows}, ${figures} WHERE path = '${held}'`,
  )
}

/** All entries of the folder with their sizes and times of modification. */
const traces = (): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => [name, statSync(join(folder, name))] as const)
    .map(([name, { size, mtimeMs }]) => `${name} ${size} ${mtimeMs}`)

test('a lake that was flushed, merged and closed has no faults, and verifying it changes no file', async () => {
  const before = traces()
  const verified = await verify()
  expect(said(verified)).toEqual([])
  expect(verified).toMatchObject({ scope: 'whole', reason: null, notes: [], omitted: 0 })
  expect(verified.rows).toBe(5 * FLUSHES + 3)
  expect(traces()).toEqual(before)
})

test('rows that are not in a file yet are reported as a note, not as a fault', async () => {
  const child = spawn(process.execPath, [CHILD, folder, 'demand'], { stdio: ['pipe', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  const until = async (line: string) => {
    while (!text.includes(line)) await once(child.stdout, 'data')
  }
  await until('ready')
  const running = await verify()
  expect(running).toMatchObject({
    scope: 'files',
    reason: `the server runs (process ${child.pid}) and has locked the store`,
    findings: [],
  })
  child.stdin.write('an_late\n')
  await until('an_late')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const after = await verify()
  expect(said(after)).toEqual([])
  expect(after.notes).toEqual([
    'training: 1 row not in the lake yet; the next start writes it',
    'xp_ledger: 1 row not in the lake yet; the next start writes it',
  ])
})

test('running out of memory is not reported as a fault of a file', async () => {
  const starved = verifyLake({ dataDir: folder, nowMs: NOON_MS, memoryLimit: '2MB' })
  await expect(starved).rejects.toThrow(/^too little memory, or room in /)
  await expect(starved).rejects.toMatchObject({ code: 'unavailable' })
})

describe('verify reports damage to files', () => {
  test('it reports files that are truncated, overwritten in the middle or missing', async () => {
    const [cut, spoilt] = filesOf('training')
    const gone = filesOf('xp_ledger').at(-1)!
    truncateSync(cut.held, 900)
    const file = openSync(spoilt.held, 'r+')
    writeSync(file, Buffer.alloc(400, 0xff), 0, 400, 600)
    closeSync(file)
    rmSync(gone.held)
    rmSync(gone.shown)
    const verified = await verify()
    expect(said(verified)).toEqual([
      expect.stringMatching(`^training ${cut.name} has 900 bytes, not the \\d+ listed$`),
      expect.stringMatching(`^training ${spoilt.name} cannot be read: `),
      `xp_ledger ${gone.name} is listed and not there`,
      `xp_ledger ${gone.name} is missing from its table’s folder: readers who list it miss its rows`,
    ])
    expect(verified.notes).toEqual([
      'the XP ledger was not added up, since not every file can be read',
      'outcomes were not compared with submissions, since not every file can be read',
    ])
  })

  test('it reports missing links, links with other content, and files that the store did not write', async () => {
    const [first, second] = filesOf('rejections')
    rmSync(first.shown)
    rmSync(second.shown)
    writeFileSync(second.shown, 'PAR1')
    const { held, name } = filesOf('training')[0]
    const other = name.replace(/part-\d+/, 'part-000000000000000')
    copyFileSync(held, join(folder, 'lake', other))
    writeFileSync(join(folder, 'lake', name, '..', 'notes.parquet'), 'mine')
    expect(said(await verify())).toEqual([
      `training ${other} is in its table’s folder and not on the list of live files`,
      `training ${join(name, '..', 'notes.parquet')} was not written by the store, and readers who list folders read it`,
      `rejections ${first.name} is missing from its table’s folder: readers who list it miss its rows`,
      `rejections ${second.name} has other content in its table’s folder`,
    ])
  })

  test('it reports a file with other columns than its table', async () => {
    await rewrite('training', 0, 'SELECT * EXCLUDE (summary), 1 AS mood FROM FILE')
    await rewrite('xp_ledger', 0, 'SELECT * REPLACE (xp::FLOAT AS xp) FROM FILE')
    expect(said(await verify())).toEqual([
      expect.stringMatching(/^training training.* has a column mood that its table lacks$/),
      expect.stringMatching(/^xp_ledger xp_ledger.* has xp as FLOAT, not DOUBLE$/),
    ])
  })
})

describe('verify reports damage to rows where the lists match the files', () => {
  test('it reports duplicate and missing rows', async () => {
    await rewrite('rejections', -1, 'SELECT * FROM FILE UNION ALL SELECT * FROM FILE')
    expect(said(await verify())).toEqual([
      'rejections 1 row more than once, among them an_refused_2',
      'rejections 3 rows committed, and 4 found: 4 in files, 0 in the log',
    ])
    await rewrite('rejections', -1, `SELECT * FROM FILE WHERE false`)
    expect(said(await verify())).toEqual([
      'rejections 3 rows committed, and 2 found: 2 in files, 0 in the log',
    ])
  })

  test('it reports a missing submission by the row count, the count of its mint and its award', async () => {
    await rewrite('training', -1, `SELECT * FROM FILE WHERE analysis_id <> 'an_2a'`)
    expect(said(await verify())).toEqual([
      'training 7 rows committed, and 6 found: 6 in files, 0 in the log',
      'xp_ledger 1 award without an accepted submission, among them an_2a',
      'training mint_0 has 3 accepted submissions by its rows, and 4 after a restart',
    ])
  })

  test('it reports missing and duplicate awards and wrong sums', async () => {
    const again = `SELECT * REPLACE ('xp-again' AS entry_id) FROM FILE WHERE entry_id = 'xp-an_0a'`
    await rewrite('xp_ledger', 1, `SELECT * FROM FILE UNION ALL ${again}`)
    await rewrite('xp_ledger', -2, `SELECT * FROM FILE WHERE entry_id <> 'xp-an_2a'`)
    expect(said(await verify()).sort()).toEqual([
      'training 1 accepted submission without an award, among them an_2a',
      'xp_ledger 1 submission with more than one award, among them an_0a',
      'xp_ledger ag_0 has 52.5 XP by its rows, and 35 after a restart',
      'xp_ledger ag_2 has 17.5 XP by its rows, and 35 after a restart',
    ])
  })

  test('it reports missing outcomes and outcomes without a submission', async () => {
    await inStore(
      `DELETE FROM outcomes_open WHERE analysis_id = 'an_0a'`,
      `UPDATE outcomes_open SET horizons_done = 2 WHERE analysis_id = 'an_0b'`,
      `INSERT INTO outcomes (row_seq, analysis_id, mint, submitted_at, labelled_to, label_available_at, known_at, schema_version)
       VALUES (1, 'an_none', 'mint', '2025-06-01', '5m', '2025-06-01', '2025-06-01', 1)`,
    )
    expect(said(await verify())).toEqual([
      'outcomes 2 submissions with other outcomes than the store says, among them an_0a, an_0b',
      'outcomes 1 row of no accepted submission, among them an_none',
    ])
  })

  test('it reports the rows of a file that was removed from the list', async () => {
    const { name } = filesOf('rejections')[0]
    await inStore(`DELETE FROM lake_files WHERE path = '${name}'`)
    expect(said(await verify())).toContainEqual(
      expect.stringMatching(/^rejections 3 rows committed, and [12] found: [12] in files, 0 in the log$/),
    )
  })

  test('it reports damaged parts of the log and dead letters', async () => {
    mkdirSync(deadLetterFolder(folder))
    writeFileSync(join(deadLetterFolder(folder), 'training.2025-06-01.ndjson'), '{}\n')
    writeFileSync(join(logFolder(folder), '00000000000000000001.log.damaged'), 'x')
    const found = said(await verify())
    expect(found).toContainEqual(
      expect.stringMatching(/^training .*holds 1 rows that did not fit the table$/),
    )
    expect(found).toContainEqual(expect.stringMatching(/damaged is a damaged part of the log/))
  })
})

describe('verify reports damage to the catalog', () => {
  test('it reports files that the catalog lists although they were replaced', async () => {
    copyFileSync(join(root, 'older.duckdb'), catalog())
    const found = said(await verify())
    expect(found).toContainEqual(
      expect.stringMatching(/^training training.* is in the catalog and no longer live: it was replaced$/),
    )
    expect(found).toContainEqual(
      expect.stringMatching(/^training training.* is live and not in the catalog$/),
    )
  })

  test('it reports a catalog that is not a database', async () => {
    writeFileSync(catalog(), 'PAR1')
    expect(said(await verify())).toEqual([expect.stringMatching(/^catalog.duckdb cannot be opened: /)])
  })

  test('it reports a table without a view for readers', async () => {
    await runSql(catalog(), 'DROP VIEW rejections')
    expect(said(await verify())).toEqual(['rejections has no view in the catalog'])
  })

  test('it reports a view for readers that somebody has replaced', async () => {
    await runSql(catalog(), 'CREATE OR REPLACE VIEW training AS FROM lake_rows.training_rows LIMIT 5')
    expect(said(await verify())).toEqual([
      expect.stringMatching(/^training has a view that Mintlake did not write; the next start corrects it/),
    ])
  })

  test('it reports what a process left that wrote to the catalog and was killed', async () => {
    await runSql(catalog(), 'PRAGMA disable_checkpoint_on_shutdown', 'CREATE TABLE features AS SELECT 1 AS k')
    expect(said(await verify())).toEqual([
      expect.stringMatching(/^catalog.duckdb.wal was left by a process that opened the catalog without READ/),
    ])
  })

  test('it reports that too where it keeps the catalog from being opened', async () => {
    await runSql(
      catalog(),
      'PRAGMA disable_checkpoint_on_shutdown',
      'CREATE TABLE features AS SELECT 1 AS k',
      'CHECKPOINT',
      'INSERT INTO features VALUES (2)',
    )
    copyFileSync(join(whole, 'lake/catalog.duckdb'), catalog())
    expect(said(await verify())).toEqual([
      expect.stringMatching(/^catalog.duckdb.wal was left/),
      expect.stringMatching(/^catalog.duckdb cannot be opened: .*WAL/),
    ])
  })

  test('it reports a view that reads a file which is not on the catalog’s list', async () => {
    await runSql(catalog(), `DELETE FROM lake_files WHERE table_name = 'rejections' AND dt = '2025-06-01'`)
    expect(said(await verify())).toContainEqual(
      expect.stringMatching(/^rejections .* is read by the catalog’s view and not on its list$/),
    )
  })
})

describe('verify without the state database', () => {
  afterEach(() => rmSync(join(root, 'moved'), { recursive: true, force: true }))

  test('it checks the files against the catalog', async () => {
    rmSync(statePath(folder))
    expect(await verify()).toMatchObject({
      scope: 'files',
      reason: expect.stringContaining('there is no store beside the lake'),
      findings: [],
    })
    truncateSync(filesOf('training')[0].held, 100)
    expect(said(await verify())).toHaveLength(1)
  })

  test('it rejects a store of an older version until a server has opened it', async () => {
    await inStore('ALTER TABLE outcomes_open DROP COLUMN horizons_done')
    await expect(verify()).rejects.toThrow('the store is of an older version: start the server on it once')
  })

  test('it rejects a broken state database and a folder without a lake', async () => {
    writeFileSync(statePath(folder), 'no database')
    await expect(verify()).rejects.toMatchObject({ code: 'invalid' })
    removeFolder(folder)
    await expect(verify()).rejects.toMatchObject({ code: 'not_found' })
  })
})
