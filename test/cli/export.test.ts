// `mintlake export` writes a table of the lake to a file with the rows of the catalog, in every format.
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, type Writable } from 'node:stream'
import { tableFromIPC } from 'apache-arrow'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EXIT } from '../../src/cli/command.ts'
import { main } from '../../src/cli/main.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { TABLES } from '../../src/schema/tables.ts'
import type { Store } from '../../src/store/store.ts'
import {
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
} from '../store/support.ts'

const MINTLAKE = new URL('../../scripts/mintlake.mjs', import.meta.url).pathname
const ROWS = 5_000
const HOUR_MS = 3_600_000
const DAY = '2025-06-01'

let dataDir: string
let out: string
let store: Store

/** Rows with values that are hard for one format or another. */
const rowsOf = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => {
    const n = from + index
    return submission(`an_${String(n).padStart(6, '0')}`, {
      mint: `mint-${n % 17}`,
      submitted_at: NOON_MS + (n % 6) * HOUR_MS,
      summary: n % 3 === 0 ? `a "quoted", line\nof, text — ${n} 😀` : `plain ${n}`,
      risk_factors: n % 5 === 0 ? ['a', 'b,"c"', "d'e"] : ['whale_dominance'],
      price_usd: n % 7 === 0 ? null : 4.5e-9 * n,
      unique_wallet_24h: n % 11 === 0 ? null : n,
      has_mint_authority: n % 2 === 0 ? null : n % 3 === 0,
    })
  }).flat()

beforeAll(async () => {
  dataDir = temporaryFolder()
  out = temporaryFolder()
  store = await openTestStore(dataDir)
  for (let from = 0; from < ROWS; from += 1_000) await store.commit(rowsOf(from, 1_000))
  await store.flushLake()
})
afterAll(async () => {
  await store.close()
  for (const folder of [dataDir, out]) removeFolder(folder)
})

/** Runs the command in this process while the store is open. */
async function mintlake(
  args: string[],
  stdout: Writable = new PassThrough(),
  onInterrupt?: (act: () => void) => void,
) {
  const stderr = new PassThrough()
  const code = await main(['export', '--data-dir', dataDir, ...args], {
    stdin: new PassThrough(),
    stdout,
    stderr,
    env: {},
    isWatched: false,
    clock: systemClock,
    onInterrupt: (act) => {
      onInterrupt?.(act)
      return () => {}
    },
  })
  return { code, said: String(stderr.read() ?? '') }
}

const catalog = (sql: string) =>
  readSql(sql, `ATTACH '${join(dataDir, 'lake', 'catalog.duckdb')}' AS lake (READ_ONLY)`, 'USE lake')
const types = `{${TABLES.training.columns.map(({ name, type }) => `${name}: '${type}'`).join(', ')}}`
const readers: Record<string, (path: string) => string> = {
  parquet: (path) => `read_parquet('${path}')`,
  csv: (path) => `read_csv('${path}', columns = ${types}, header = true)`,
  jsonl: (path) => `read_json('${path}', columns = ${types}, format = 'newline_delimited')`,
}

describe.each(Object.keys(readers))('as %s', (format) => {
  it('the file has exactly the rows of the catalog with every column', async () => {
    const path = join(out, `all.${format}`)
    const { code, said } = await mintlake(['--format', format, '--out', path])
    expect(said).toMatch(new RegExp(`^mintlake: ${ROWS} rows of training, \\d+ bytes in `))
    expect(code).toBe(EXIT.done)
    const [differences] = await catalog(
      `SELECT (SELECT count(*) FROM ${readers[format](path)})::INTEGER AS rows,
         (SELECT count(*) FROM (FROM training EXCEPT ALL FROM ${readers[format](path)}))::INTEGER AS missing`,
    )
    expect(differences).toEqual({ rows: ROWS, missing: 0 })
  })

  it('a time range includes its first moment and excludes its last', async () => {
    const path = join(out, `span.${format}`)
    await mintlake(['--format', format, '--from', `${DAY}T13:00:00Z`, '--to', `${DAY}T15:00Z`, '--out', path])
    const [span] = await catalog(
      `SELECT count(*)::INTEGER AS rows, min(submitted_at) = TIMESTAMP '${DAY} 13:00:00' AS first,
         max(submitted_at) = TIMESTAMP '${DAY} 14:00:00' AS last FROM ${readers[format](path)}`,
    )
    expect(span).toEqual({ rows: Math.ceil(ROWS / 6) + Math.floor(ROWS / 6), first: true, last: true })
  })
})

/** Cells of Arrow and of DuckDB in one form. */
const plain = (value: unknown): unknown => {
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Date) return value.getTime()
  if (typeof value === 'object' && value !== null && 'toArray' in value)
    return [...(value as unknown as Iterable<unknown>)]
  return value
}
const byId = (a: Record<string, unknown>, b: Record<string, unknown>) =>
  String(a.analysis_id).localeCompare(String(b.analysis_id))

describe('as arrow', () => {
  it('the file is an IPC stream of the same rows, with the types and comments of the columns', async () => {
    const path = join(out, 'all.arrow')
    expect((await mintlake(['--format', 'arrow', '--out', path])).said).toContain(`${ROWS} rows`)
    const table = tableFromIPC(readFileSync(path))
    expect(table.numRows).toBe(ROWS)
    expect(table.schema.fields.map(({ name }) => name)).toEqual(
      TABLES.training.columns.map(({ name }) => name),
    )
    expect(table.schema.fields[0].metadata.get('comment')).toBe(TABLES.training.columns[0].comment)
    const rows = [...table].map((row) =>
      Object.fromEntries(Object.entries(row.toJSON()).map(([name, value]) => [name, plain(value)])),
    )
    const expected = (await catalog('FROM training')).map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])),
    )
    expect(rows.sort(byId)).toEqual(expected.sort(byId))
  })

  it('the file is a valid stream even without a row', async () => {
    const path = join(out, 'none.arrow')
    await mintlake(['--format', 'arrow', '--from', '2030-01-01', '--out', path])
    expect(tableFromIPC(readFileSync(path)).numRows).toBe(0)
    expect(tableFromIPC(readFileSync(path)).schema.fields).toHaveLength(TABLES.training.columns.length)
  })
})

describe('standard output', () => {
  it('gets the rows and nothing else', async () => {
    const stdout = new PassThrough({ highWaterMark: 1 << 26 })
    const { code } = await mintlake(['--format', 'jsonl', '--out', '-'], stdout)
    expect(code).toBe(EXIT.done)
    const lines = String(stdout.read()).trimEnd().split('\n')
    expect(lines).toHaveLength(ROWS)
    expect(JSON.parse(lines[0])).toHaveProperty('analysis_id')
  })

  it('cannot be used for Parquet', async () => {
    const { code, said } = await mintlake(['--out', '-'])
    expect(code).toBe(EXIT.usage)
    expect(said).toContain('Parquet needs a file')
  })
})

describe('an output file', () => {
  it.each(['parquet', 'csv', 'arrow'])(
    'of %s leaves no part behind when interrupted, and the older file stays as it was',
    async (format) => {
      const folder = join(out, `interrupted-${format}`)
      mkdirSync(folder)
      const path = join(folder, 'training')
      writeFileSync(path, 'older')
      const { code, said } = await mintlake(
        ['--format', format, '--out', path, '--overwrite'],
        undefined,
        (act) => setImmediate(act),
      )
      expect(said).toBe('mintlake: interrupted\n')
      expect(code).toBe(EXIT.interrupted)
      expect(readdirSync(folder)).toEqual(['training'])
      expect(readFileSync(path, 'utf8')).toBe('older')
    },
  )

  it('is not written for a span that ends before it begins', async () => {
    const folder = join(out, 'turned')
    mkdirSync(folder)
    const span = ['--from', '2026-12-01', '--to', '2026-11-01']
    const refused = await mintlake(['--format', 'csv', ...span, '--out', join(folder, 'training.csv')])
    expect(refused.code).toBe(EXIT.usage)
    expect(refused.said).toContain('--from must not be after --to')
    expect(readdirSync(folder)).toEqual([])
  })

  it('that exists already is replaced only with --overwrite', async () => {
    const folder = join(out, 'there')
    mkdirSync(folder)
    const path = join(folder, 'training.csv')
    writeFileSync(path, 'older')
    const refused = await mintlake(['--format', 'csv', '--out', path])
    expect(refused.code).toBe(EXIT.usage)
    expect(refused.said).toContain('is there already; --overwrite replaces it')
    expect(readFileSync(path, 'utf8')).toBe('older')
    expect((await mintlake(['--format', 'csv', '--out', path, '--overwrite'])).code).toBe(EXIT.done)
    expect(readFileSync(path, 'utf8')).toContain('analysis_id')
    expect(readdirSync(folder)).toEqual(['training.csv'])
  })

  it('has the format that its name ends in', async () => {
    const folder = join(out, 'named')
    mkdirSync(folder)
    const begin = {
      parquet: 'PAR1',
      csv: 'analysis_id',
      jsonl: '{',
      arrow: '\xff\xff\xff\xff',
      CSV: 'analysis_id',
    }
    for (const [ending, bytes] of Object.entries(begin)) {
      const path = join(folder, `training.${ending}`)
      expect(await mintlake(['--out', path])).toMatchObject({ code: EXIT.done })
      expect(readFileSync(path, 'latin1').slice(0, bytes.length)).toBe(bytes)
    }
    // A name without an ending says nothing.
    expect((await mintlake(['--out', join(folder, 'training')])).code).toBe(EXIT.done)
    expect(readFileSync(join(folder, 'training'), 'latin1').slice(0, 4)).toBe('PAR1')
  })

  it('is refused where its name says another format than the flag, or one that does not exist', async () => {
    const folder = join(out, 'misnamed')
    mkdirSync(folder)
    const other = await mintlake(['--format', 'csv', '--out', join(folder, 'training.jsonl')])
    expect(other.code).toBe(EXIT.usage)
    expect(other.said).toContain('training.jsonl is named as jsonl, and --format says csv')
    const none = await mintlake(['--out', join(folder, 'training.json')])
    expect(none.code).toBe(EXIT.usage)
    expect(none.said).toContain('.json is the ending of no format (parquet, csv, jsonl, arrow)')
    expect(readdirSync(folder)).toEqual([])
    const told = ['--format', 'jsonl', '--out', join(folder, 'training.json')]
    expect((await mintlake(told)).code).toBe(EXIT.done)
  })

  it('that is no regular file is refused, with --overwrite too', async () => {
    const pipe = join(out, 'pipe')
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0)
    const refused = await mintlake(['--format', 'csv', '--out', pipe, '--overwrite'])
    expect(refused.code).toBe(EXIT.usage)
    expect(refused.said).toContain(`--out: ${pipe} is no regular file; --out - is the standard output`)
    expect(statSync(pipe).isFIFO()).toBe(true)
  })

  it.runIf(process.platform === 'linux')(
    'that the disk does not take is told, and not that the lake cannot be read',
    async () => {
      const { code, said } = await mintlake(['--out', '/proc/training.parquet'])
      expect(code).toBe(EXIT.failed)
      expect(said).toMatch(/^mintlake: \/proc\/training\.parquet cannot be written: .*\n$/)
      expect(said).not.toContain('lake verify')
    },
  )

  it('that cannot be written is an error, and leaves no part behind', async () => {
    const { code, said } = await mintlake(['--out', join(out, 'nowhere', 'training.parquet')])
    expect(code).toBe(EXIT.usage)
    expect(said).toContain('there is no folder')
  })

  it.each(['parquet', 'csv', 'jsonl', 'arrow'])(
    'of labelled as %s has every submission, labelled or not',
    async (format) => {
      const path = join(out, `labelled.${format}`)
      const { code, said } = await mintlake(['--table', 'labelled', '--format', format, '--out', path])
      expect({ code, said }).toMatchObject({
        code: EXIT.done,
        said: expect.stringContaining(`${ROWS} rows of labelled`),
      })
      expect(readFileSync(path).includes('labels_known_at')).toBe(true)
    },
  )

  it('of a table other than training has the newest row of each key', async () => {
    const path = join(out, 'xp.parquet')
    await mintlake(['--table', 'xp_ledger', '--out', path])
    const [sums] = await readSql(
      `SELECT count(*)::INTEGER AS rows, sum(xp) AS xp FROM read_parquet('${path}')`,
    )
    expect(sums).toEqual({ rows: ROWS, xp: ROWS * 17.5 })
    expect(statSync(path).size).toBeGreaterThan(0)
  })
})

it.runIf(process.platform === 'linux').each([
  ['sql', 'FROM training', '--format', 'csv'],
  ['export', '--out', '-', '--format', 'csv'],
])('a full disk behind the output is told in one sentence: %s', (...words) => {
  const full = openSync('/dev/full', 'w')
  const args = ['--no-warnings', MINTLAKE, ...words, '--data-dir', dataDir]
  const { status, stderr } = spawnSync(process.execPath, args, {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  closeSync(full)
  expect(stderr).toMatch(/^mintlake: .*no space left on device.*\n$/)
  expect(status).toBe(EXIT.failed)
})
