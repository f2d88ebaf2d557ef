// Lakes whose catalog a stranger has written: its views name files outside of the lake, which no command may open.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withScratchDatabase } from '../../../src/store/duckdb/scratch-database.ts'
import { makeSampleFolder } from '../../../src/store/query/sample-lake.ts'
import { runCommand } from '../../support/terminal.ts'
import { removeFolder, temporaryFolder } from '../support.ts'

const SECRET = 'the-secret-of-this-test'
const TABLES = [
  'lake_files',
  'lake_set_aside',
  'lake_events',
  'lake_events_lost',
  'lake_incomplete_bars',
  'lake_rewound_spans',
]

let sample: Awaited<ReturnType<typeof makeSampleFolder>>
let root: string

beforeAll(async () => {
  sample = await makeSampleFolder()
  root = temporaryFolder()
})
afterAll(async () => {
  removeFolder(root)
  await sample.remove()
})
interface Strange {
  dataDir: string
  /** Outside of the lake: one that is there, and one that was when the view was made. */
  secret: string
  absent: string
}

/** A copy of the sample whose catalog is changed, once it names the copy's own files. */
async function strange(statementsOf: (outside: Strange) => readonly string[]): Promise<Strange> {
  const folder = mkdtempSync(join(root, 'copy-'))
  const made = {
    dataDir: join(folder, 'data'),
    secret: join(folder, 'secret.csv'),
    absent: join(folder, 'absent.csv'),
  }
  cpSync(sample.dataDir, made.dataDir, { recursive: true })
  for (const path of [made.secret, made.absent]) writeFileSync(path, `a,b,c\n${SECRET},2,3\n`)
  expect((await runCommand(['lake', 'catalog', '--data-dir', made.dataDir])).code).toBe(0)
  await withScratchDatabase(join(made.dataDir, 'lake/catalog.duckdb'), {}, async (connection) => {
    await connection.run(statementsOf(made).join(';'))
  })
  // To bind the view is to look for the file, and to say that it is not there.
  rmSync(made.absent)
  return made
}

const COMMANDS = [
  // One row: a terminal's table of all columns of all rows takes ten seconds to draw.
  ['sql', 'FROM training LIMIT 1'],
  ['sql', 'SELECT count(*) FROM bars'],
  ['sql', 'SHOW ALL TABLES'],
  ['export', '--format', 'csv', '--out', '-'],
  ['lake', 'status'],
  ['lake', 'snapshot', 'mine'],
  ['lake', 'catalog'],
]

/** Waits for ten seconds where it finds something. */
const VERIFY = ['lake', 'verify']

async function expectClosed({ dataDir }: Strange, commands = COMMANDS): Promise<void> {
  for (const command of commands) {
    const { out, err } = await runCommand([...command, '--data-dir', dataDir])
    expect(`${command.join(' ')}: ${out} ${err}`).not.toMatch(new RegExp(`${SECRET}|No files found`))
  }
}

it.each(['secret', 'absent'] as const)(
  'views of tables that read another file (%s) are bound with access closed',
  async (which) => {
    const lake = await strange((outside) => [
      `CREATE OR REPLACE VIEW training AS FROM read_csv('${outside[which]}')`,
      `CREATE OR REPLACE VIEW bars AS SELECT content AS mint FROM read_text('${outside[which]}')`,
      `CREATE VIEW other AS FROM read_csv('${outside[which]}')`,
    ])
    const asked = await runCommand(['sql', 'FROM training', '--data-dir', lake.dataDir])
    expect(asked).toMatchObject({ code: 1, out: '', err: expect.stringContaining('Permission Error') })
    await expectClosed(lake)
  },
)

async function expectTableNeeded(table: string): Promise<void> {
  const lake = await strange(({ absent }) => [
    `DROP TABLE ${table}`,
    `CREATE VIEW ${table} AS FROM read_csv('${absent}')`,
  ])
  const asked = await runCommand(['sql', 'SELECT 1 AS one', '--format', 'csv', '--data-dir', lake.dataDir])
  if (table === 'lake_files')
    expect(asked).toMatchObject({ code: 1, err: expect.stringContaining('has no table lake_files') })
  else expect(asked).toMatchObject({ code: 0, out: 'one\n1\n' })
  await expectClosed(lake)
}

it('lake_files is no longer a table but a view that reads another file', () =>
  expectTableNeeded('lake_files'))

describe('a stranger’s catalog', { tags: 'drill' }, () => {
  it.each(TABLES.slice(1))('in which %s is a view that reads another file', expectTableNeeded)

  it('of which lake verify opens no other file', async () => {
    const lake = await strange(({ absent }) => [
      `CREATE OR REPLACE VIEW training AS FROM read_csv('${absent}')`,
      ...TABLES.slice(1).flatMap((table) => [
        `DROP TABLE ${table}`,
        `CREATE VIEW ${table} AS FROM read_csv('${absent}')`,
      ]),
    ])
    await expectClosed(lake, [VERIFY])
  })

  it('that lists a file outside of the lake, which cannot be read', async () => {
    const lake = await strange(({ secret }) => [
      `UPDATE lake_files SET path = '${secret}' WHERE path = (SELECT min(path) FROM lake_files)`,
    ])
    const asked = await runCommand(['sql', `FROM read_csv('${lake.secret}')`, '--data-dir', lake.dataDir])
    expect(asked).toMatchObject({ code: 1, out: '' })
    await expectClosed(lake)
  })
})
