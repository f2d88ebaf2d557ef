// A lake that was copied elsewhere: every command reads the folder that it is given, and `mintlake lake catalog` makes the copy
// usable for other readers.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { withScratchDatabase } from '../../src/store/duckdb/scratch-database.ts'
import { openTestStore, readSql, submission, writeOf } from '../store/support.ts'
import { runCommand } from '../support/terminal.ts'
import { spawnServer, temporaryFolder } from '../support/test-server.ts'

const ROWS = 3

let root: string
let original: string
let copy: string

beforeAll(async () => {
  root = temporaryFolder()
  original = join(root, 'original')
  const store = await openTestStore(original)
  for (let i = 0; i < ROWS; i++) {
    await store.commit([...submission(`an_${i}`), writeOf('rejections', { analysis_id: `an_no_${i}` })])
    await store.flushLake()
  }
  await store.close()
})
afterAll(() => rmSync(root, { recursive: true, force: true }))
beforeEach(() => {
  copy = join(root, `copy-${process.hrtime.bigint()}`)
  cpSync(join(original, 'lake'), join(copy, 'lake'), { recursive: true })
})

const mintlake = (...words: string[]) => runCommand([...words, '--data-dir', copy])
const catalog = (): string => join(copy, 'lake/catalog.duckdb')
const pathsRead = async (): Promise<string[]> =>
  (await readSql('SELECT path FROM lake.lake_files', `ATTACH '${catalog()}' AS lake (READ_ONLY)`)).map(
    ({ path }) => String(path),
  )
const partsOf = (table: string): string[] => {
  const folder = join(copy, 'lake', table)
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.parquet')).map((name) => join(folder, name))
}

it('commands read the copy although its catalog names the files of the original', async () => {
  expect(await pathsRead()).toContainEqual(expect.stringContaining(original))
  // A file that only the copy has lost is missing in the answers.
  const [lost] = partsOf('training')
  rmSync(lost)
  rmSync(lost.replace('/lake/', '/lake/.files/'))
  const asked = await mintlake('sql', 'SELECT count(*) AS n FROM training', '--format', 'csv')
  expect(asked).toMatchObject({ code: 0, out: `n\n${ROWS - 1}\n` })
  expect(asked.err).toMatch(
    /^mintlake: 1 file of the lake missing or damaged, 1 row left out, among them training\/dt=/,
  )
  const out = join(copy, 'training.csv')
  expect((await mintlake('export', '--format', 'csv', '--out', out)).err).toContain(
    `${ROWS - 1} rows of training`,
  )
  const status = JSON.parse((await mintlake('lake', 'status', '--format', 'json')).out)
  expect(status.tables[0]).toMatchObject({ table: 'training', rows: ROWS - 1, files: ROWS - 1 })
})

it('files that go while rows are written make no row come twice', async () => {
  const remove = () => {
    for (const table of ['.files/training', '.files/outcomes', 'training', 'outcomes'])
      rmSync(join(copy, 'lake', table), { recursive: true, force: true })
  }
  const sql = 'SELECT analysis_id, NULL AS fwd_ret_24h FROM training ORDER BY analysis_id'
  const asked = await runCommand(['sql', sql, '--format', 'csv', '--data-dir', copy], {}, '', remove)
  const rows = Array.from({ length: ROWS }, (_, i) => `an_${i},\n`)
  expect(asked).toMatchObject({ code: 0, out: ['analysis_id,fwd_ret_24h\n', ...rows].join('') })
  expect(asked.err).toMatch(/no outcome of this lake is 24h old yet/)
})

it('a query can neither reach the original nor change the copy', async () => {
  const path = join(original, 'lake/training/*/*.parquet')
  expect((await mintlake('sql', `SELECT count(*) FROM read_parquet('${path}')`)).code).toBe(1)
  expect((await mintlake('sql', 'CREATE TABLE mine AS SELECT 1')).code).toBe(1)
  expect((await mintlake('sql', 'DELETE FROM lake_files')).code).toBe(1)
})

it.each(['as it was copied', 'gone', 'spoilt'])(
  'lake catalog writes a catalog for the folder that the lake is in when the existing one is %s',
  async (how) => {
    if (how === 'gone') rmSync(catalog())
    if (how === 'spoilt') writeFileSync(catalog(), 'no database')
    const written = await mintlake('lake', 'catalog')
    expect(written).toMatchObject({ code: 0, err: '' })
    expect(written.out).toContain(`${catalog()}: ${ROWS * 3} files, ${ROWS * 3} rows`)
    for (const path of await pathsRead()) expect(path).toContain(copy)
    const [{ n }] = await readSql(
      'SELECT count(*)::INT AS n FROM lake.training',
      `ATTACH '${catalog()}' AS lake (READ_ONLY)`,
    )
    expect(n).toBe(ROWS)
    expect((await mintlake('lake', 'verify')).code).toBe(0)
  },
)

it.each(['lake', ''])('lake verify says once what to do about a copied folder: ./%s', async (part) => {
  rmSync(copy, { recursive: true })
  cpSync(join(original, part), join(copy, part), { recursive: true })
  const verified = await mintlake('lake', 'verify')
  const root = join(original, 'lake/.files')
  expect(verified).toMatchObject({
    code: 0,
    out: expect.stringContaining(`note: the catalog names files in ${root}: the lake was copied or moved`),
  })
  expect(verified.out.match(/mintlake lake catalog/g)).toHaveLength(1)
  // What is wrong besides is a finding as ever.
  rmSync(partsOf('training')[0].replace('/lake/', '/lake/.files/'))
  expect((await mintlake('lake', 'verify')).code).toBe(1)
})

it('lake repair makes no store of a lake alone', async () => {
  expect(await mintlake('lake', 'repair')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/there is no store in .*: .*store\.json is missing; .*mintlake lake catalog/),
  })
  expect(readdirSync(copy)).toEqual(['lake'])
})

it('lake catalog takes a file back that it has set aside before, once it is there again', async () => {
  const [link] = partsOf('training')
  const path = link.replace('/lake/', '/lake/.files/')
  const content = readFileSync(path)
  for (const each of [link, path]) rmSync(each)
  const left = /training\/dt=.*: missing or damaged, left out/
  expect((await mintlake('lake', 'catalog')).out).toMatch(left)
  // It is told each time.
  expect((await mintlake('lake', 'catalog')).out).toMatch(left)
  writeFileSync(path, Buffer.alloc(content.length, 7))
  expect((await mintlake('lake', 'catalog')).out).toMatch(left)
  for (const each of [link, path]) writeFileSync(each, content)
  const written = await mintlake('lake', 'catalog')
  expect(written.out).toMatch(new RegExp(`: ${ROWS * 3} files, ${ROWS * 3} rows\n$`))
  expect((await mintlake('sql', 'SELECT count(*) AS n FROM training', '--format', 'csv')).out).toBe(
    `n\n${ROWS}\n`,
  )
  expect((await mintlake('lake', 'verify')).code).toBe(0)
})

it('lake catalog refuses a folder that a server uses, or that has no lake', { tags: 'drill' }, async () => {
  const server = await spawnServer({}, copy)
  try {
    const before = readFileSync(catalog())
    const refused = await mintlake('lake', 'catalog')
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('keeps the catalog itself')
    expect(readFileSync(catalog()).equals(before)).toBe(true)
  } finally {
    await server.kill()
  }
  rmSync(join(copy, 'lake'), { recursive: true })
  mkdirSync(copy, { recursive: true })
  expect((await mintlake('lake', 'catalog')).err).toContain('there is no lake in')
})

it('a query can begin with a comment, on the command line and before EXPLAIN', async () => {
  for (const comment of ['-- how many', '--how=many?', '/* how many */']) {
    const asked = await mintlake('sql', `${comment}\nSELECT count(*) AS n FROM training`, '--format', 'csv')
    expect(asked, asked.err).toMatchObject({ code: 0, out: `n\n${ROWS}\n` })
    const explained = await mintlake('sql', `${comment}\nEXPLAIN SELECT 1`)
    expect(explained.code, explained.err).toBe(0)
  }
  expect((await mintlake('sql', '-- nothing but this')).err).toContain('there is no query')
  expect((await mintlake('sql', '--formt', 'csv', 'SELECT 1')).err).toContain('did you mean --format?')
})

it('a catalog of an older version, which lacks a view of today, is read with it', async () => {
  expect((await mintlake('lake', 'catalog')).code).toBe(0)
  await withScratchDatabase(catalog(), {}, async (connection) => {
    await connection.run('DROP VIEW main.labelled')
  })
  expect(await mintlake('sql', 'SELECT count(*) AS n FROM labelled', '--format', 'csv')).toMatchObject({
    code: 0,
    out: `n\n${ROWS}\n`,
  })
})
