// Lakes whose catalog a stranger has written: its views name files outside of the lake, which no command may open.
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { withScratchDatabase } from '../../../src/store/duckdb/scratch-database.ts'
import { makeSampleFolder } from '../../../src/store/query/sample-lake.ts'
import { runCommand } from '../../support/terminal.ts'
import { removeFolder, temporaryFolder } from '../support.ts'

const SECRET = 'the-secret-of-this-test'
const TABLES = ['lake_files', 'lake_set_aside', 'lake_events', 'lake_events_lost', 'lake_incomplete_bars']

let sample: Awaited<ReturnType<typeof makeSampleFolder>>
let root: string
let dataDir: string
/** Outside of the lake: one that is there, and one that was when the view was made. */
let secret: string
let absent: string

beforeAll(async () => {
  sample = await makeSampleFolder()
  root = temporaryFolder()
  secret = join(root, 'secret.csv')
  absent = join(root, 'absent.csv')
})
afterAll(async () => {
  removeFolder(root)
  await sample.remove()
})
beforeEach(() => {
  dataDir = join(root, `copy-${process.hrtime.bigint()}`)
  cpSync(sample.dataDir, dataDir, { recursive: true })
  for (const path of [secret, absent]) writeFileSync(path, `a,b,c\n${SECRET},2,3\n`)
})

/** Changes the catalog of the copy, once it names the copy's own files. */
async function change(statements: readonly string[]): Promise<void> {
  expect((await runCommand(['lake', 'catalog', '--data-dir', dataDir])).code).toBe(0)
  await withScratchDatabase(join(dataDir, 'lake/catalog.duckdb'), {}, async (connection) => {
    await connection.run(statements.join(';'))
  })
  // To bind the view is to look for the file, and to say that it is not there.
  rmSync(absent)
}

const COMMANDS = [
  ['sql', 'FROM training'],
  ['sql', 'SELECT count(*) FROM bars'],
  ['sql', 'SHOW ALL TABLES'],
  ['export', '--format', 'csv', '--out', '-'],
  ['lake', 'status'],
  ['lake', 'snapshot', 'mine'],
  ['lake', 'catalog'],
]

/** Waits for ten seconds where it finds something. */
const VERIFY = ['lake', 'verify']

async function expectClosed(commands = COMMANDS): Promise<void> {
  for (const command of commands) {
    const { out, err } = await runCommand([...command, '--data-dir', dataDir])
    expect(`${command.join(' ')}: ${out} ${err}`).not.toMatch(new RegExp(`${SECRET}|No files found`))
  }
}

it.each(['secret', 'absent'])(
  'views of tables that read another file (%s) are bound with access closed',
  async (which) => {
    const path = which === 'secret' ? secret : absent
    await change([
      `CREATE OR REPLACE VIEW training AS FROM read_csv('${path}')`,
      `CREATE OR REPLACE VIEW bars AS SELECT content AS mint FROM read_text('${path}')`,
      `CREATE VIEW other AS FROM read_csv('${path}')`,
    ])
    const asked = await runCommand(['sql', 'FROM training', '--data-dir', dataDir])
    expect(asked).toMatchObject({ code: 1, out: '', err: expect.stringContaining('Permission Error') })
    await expectClosed()
  },
)

async function expectTableNeeded(table: string): Promise<void> {
  await change([`DROP TABLE ${table}`, `CREATE VIEW ${table} AS FROM read_csv('${absent}')`])
  const asked = await runCommand(['sql', 'SELECT 1 AS one', '--format', 'csv', '--data-dir', dataDir])
  if (table === 'lake_files')
    expect(asked).toMatchObject({ code: 1, err: expect.stringContaining('has no table lake_files') })
  else expect(asked).toMatchObject({ code: 0, out: 'one\n1\n' })
  await expectClosed()
}

it('lake_files is no longer a table but a view that reads another file', () =>
  expectTableNeeded('lake_files'))

// A command that copies the lake waits some seconds until it believes what it finds.
it.each(TABLES.slice(1))('%s is a view that reads another file', { tags: 'drill' }, expectTableNeeded)

it('nor does lake verify open another file', { tags: 'drill', timeout: 60_000 }, async () => {
  await change([
    `CREATE OR REPLACE VIEW training AS FROM read_csv('${absent}')`,
    ...TABLES.slice(1).flatMap((table) => [
      `DROP TABLE ${table}`,
      `CREATE VIEW ${table} AS FROM read_csv('${absent}')`,
    ]),
  ])
  await expectClosed([VERIFY])
})

it('a file that the catalog lists outside of the lake cannot be read', { tags: 'drill' }, async () => {
  await change([`UPDATE lake_files SET path = '${secret}' WHERE path = (SELECT min(path) FROM lake_files)`])
  const asked = await runCommand(['sql', `FROM read_csv('${secret}')`, '--data-dir', dataDir])
  expect(asked).toMatchObject({ code: 1, out: '' })
  await expectClosed()
})
