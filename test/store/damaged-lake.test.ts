// Exports and queries over a lake whose files are damaged while the catalog lists them: no answer looks whole that is not.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { recordSimulation } from '../../src/backtest/record-simulation.ts'
import { EXIT } from '../../src/cli/command.ts'
import { createLog } from '../../src/lib/log.ts'
import type { ResultStream } from '../../src/store/duckdb/result-stream.ts'
import { isMissingFileError, openLakeReader } from '../../src/store/query/lake-reader.ts'
import { makeSampleFolder } from '../../src/store/query/sample-lake.ts'
import { ANY, allEvents } from '../support/lake/all-events.ts'
import { runCommand } from '../support/terminal.ts'
import { readSql, removeFolder, temporaryFolder } from './support.ts'

/** The tables of the sample with more rows than DuckDB reads ahead. */
const TABLES = ['bars', 'trades', 'events'] as const
const FORMATS = ['parquet', 'csv', 'jsonl', 'arrow'] as const

let sample: Awaited<ReturnType<typeof makeSampleFolder>>
let folder: string
/** How many rows the tables have. */
const whole: Record<string, number> = {}
/** The bytes of the damaged files, by path. */
const intact = new Map<string, Buffer>()

beforeAll(async () => {
  sample = await makeSampleFolder()
  folder = temporaryFolder()
  for (const table of TABLES) whole[table] = Number((await exported(table, 'jsonl')).rows)
})
afterEach(restore)
afterAll(async () => {
  removeFolder(folder)
  await sample.remove()
})

const partsOf = (table: string, dataDir = sample.dataDir): string[] => {
  const at = join(dataDir, 'lake', table)
  const names = readdirSync(at, { recursive: true, encoding: 'utf8' })
  return names
    .filter((name) => name.endsWith('.parquet'))
    .toSorted()
    .map((name) => join(at, name))
}

function restore(): void {
  for (const [path, bytes] of intact) writeFileSync(path, bytes)
  intact.clear()
}

/** Changes bytes of a file, which keeps its size: at `share` of its length, 0 to 1. */
function damage(path: string, share: number, bytes: number): void {
  const content = readFileSync(path)
  if (!intact.has(path)) intact.set(path, Buffer.from(content))
  const from = Math.min(content.length - 1, Math.floor(content.length * share))
  for (let at = from; at < Math.min(content.length, from + bytes); at++) content[at] ^= 0x5a
  writeFileSync(path, content)
}

const linesOf = (path: string): number => readFileSync(path, 'utf8').trimEnd().split('\n').length
const READERS: Record<(typeof FORMATS)[number], (path: string) => number | Promise<number>> = {
  parquet: async (path) => Number((await readSql(`SELECT count(*)::INT AS n FROM '${path}'`))[0].n),
  csv: (path) => linesOf(path) - 1,
  jsonl: linesOf,
  arrow: (path) => tableFromIPC(readFileSync(path)).numRows,
}

/** Exports a table. @returns the exit code, what the command says, how many rows the file has (null: there is none) */
async function exported(table: string, format: (typeof FORMATS)[number]) {
  const out = join(folder, `out.${format}`)
  rmSync(out, { force: true })
  const args = ['--table', table, '--format', format, '--out', out, '--data-dir', sample.dataDir]
  const { code, err } = await runCommand(['export', ...args])
  return { code, err, rows: existsSync(out) ? await READERS[format](out) : null }
}

const queried = (sql: string, format = 'jsonl') =>
  runCommand(['sql', sql, '--format', format, '--data-dir', sample.dataDir])

describe('the end of a streamed result', () => {
  const LATE = `SELECT CASE WHEN i = 190000 THEN error('late ' || i)::BIGINT ELSE i END AS i FROM range(200000) r(i)`

  async function withStream(
    sql: string,
    work: (stream: ResultStream, interrupt: () => void) => Promise<void>,
  ) {
    const reader = await openLakeReader({ dataDir: sample.dataDir })
    try {
      await work(await reader.stream(sql), () => reader.interrupt())
    } finally {
      reader.close()
    }
  }
  async function drain(stream: ResultStream): Promise<number> {
    for await (const _ of stream);
    return stream.rows
  }

  it('comes after the last row, and stays', () =>
    withStream('SELECT i FROM range(200000) r(i)', async (stream) => {
      expect(await drain(stream)).toBe(200_000)
      expect(await stream.next()).toBeNull()
    }))

  it('is no end where the query fails on the way: the error is DuckDB’s own, at each further call', () =>
    withStream(LATE, async (stream) => {
      await expect(drain(stream)).rejects.toThrow('Invalid Input Error: late 190000')
      expect(stream.rows).toBeGreaterThan(0)
      expect(stream.rows).toBeLessThan(190_000)
      await expect(stream.next()).rejects.toThrow('late 190000')
    }))

  it('is no end where the query was interrupted', () =>
    withStream('SELECT i FROM range(200000) r(i)', async (stream, interrupt) => {
      await stream.next()
      interrupt()
      await expect(drain(stream)).rejects.toThrow('INTERRUPT Error')
    }))

  it('is no end where another query of the connection took its place', async () => {
    const reader = await openLakeReader({ dataDir: sample.dataDir })
    const stream = await reader.stream('SELECT i FROM range(200000) r(i)')
    await stream.next()
    await reader.connection.run('SELECT 1')
    await expect(drain(stream)).rejects.toThrow('DuckDB has ended the query before its last row')
    reader.close()
  })

  it.each(['jsonl', 'csv', 'json'])('mintlake sql as %s says why, and does not exit 0', async (format) => {
    const { code, err } = await queried(LATE, format)
    expect({ code, err }).toEqual({ code: EXIT.failed, err: 'mintlake: Invalid Input Error: late 190000\n' })
  })

  it('mintlake sql says where several statements end early, too', async () => {
    const { code, err } = await queried(`SET VARIABLE a = 1; ${LATE}`)
    expect({ code, err }).toEqual({
      code: EXIT.failed,
      err: 'mintlake: DuckDB has ended the query before its last row\n',
    })
  })

  it('mintlake sql that is timed out amid its rows says so', async () => {
    const endless = 'SELECT i, repeat(i::VARCHAR, 20) AS text FROM range(1000000000) r(i)'
    const args = ['sql', endless, '--format', 'csv', '--timeout', '1', '--data-dir', sample.dataDir]
    const { code, err } = await runCommand(args)
    expect({ code, err }).toEqual({ code: EXIT.timedOut, err: 'mintlake: ended after 1 s; see --timeout\n' })
  })
})

describe('an export of a lake with a damaged file', () => {
  it.each(FORMATS)('as %s leaves no file, says why, and does not exit 0', async (format) => {
    damage(partsOf('events').at(-1)!, 0.2, 20_000)
    const { code, err, rows } = await exported('events', format)
    expect({ code, rows }).toEqual({ code: EXIT.failed, rows: null })
    expect(err).toMatch(/^mintlake: the lake cannot be read: .*; see mintlake lake verify\n$/)
  })

  it('to standard output ends with an error after the rows that could be read', async () => {
    damage(partsOf('events').at(-1)!, 0.2, 20_000)
    const args = ['--table', 'events', '--format', 'jsonl', '--out', '-', '--data-dir', sample.dataDir]
    const { code, err, out } = await runCommand(['export', ...args])
    expect(code).toBe(EXIT.failed)
    expect(err).toContain('the lake cannot be read')
    expect(out.split('\n').length).toBeLessThan(whole.events)
  })
})

it('a query that reads a damaged file is not told that it is wrong', async () => {
  damage(partsOf('events').at(-1)!, 0.2, 20_000)
  const { code, err } = await queried('FROM events')
  expect(code).toBe(EXIT.failed)
  expect(err).toMatch(/^mintlake: the lake cannot be read: .*; see mintlake lake verify\n$/)
})

it('recorded events are read up to the damage, and then there is an error that says where', async () => {
  damage(partsOf('events').at(-1)!, 0.2, 20_000)
  let last = 0
  const reading = (async () => {
    for await (const batch of allEvents(sample.dataDir, ANY)) last = batch.at(-1)?.eventNo ?? last
  })()
  const error = await reading.catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'unavailable' })
  expect(String(error)).toContain(`stopped before the event ${last + 1}: `)
})

it('recorded events are never those of a file that is not as it was written, wherever it was changed', async () => {
  const dataDir = join(folder, 'recorded')
  const market = { seed: 7, tokens: 20, tradesPerSecond: 4, startMs: Date.UTC(2026, 2, 2), lengthMs: 60_000 }
  await recordSimulation({ ...market, dataDir }, createLog('warn'))
  const read = async () => {
    for await (const _ of allEvents(dataDir, ANY));
  }
  await read()
  for (const table of ['trades', 'events'])
    for (let share = 0.02; share < 1; share += 0.07) {
      const [part] = partsOf(table, dataDir)
      damage(part, share, 1)
      await expect(read(), `${table} changed at ${share}`).rejects.toMatchObject({ code: 'unavailable' })
      restore()
    }
})

it('wherever files are damaged, an export or a query is whole or fails', {
  tags: 'drill',
  timeout: 60_000,
}, async () => {
  const anywhere = fc.record({
    table: fc.constantFrom(...TABLES),
    format: fc.constantFrom(...FORMATS),
    part: fc.nat(3),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 50_000 })),
  })
  let failures = 0
  await fc.assert(
    fc.asyncProperty(anywhere, async ({ table, format, part, share, bytes }) => {
      const parts = partsOf(table)
      damage(parts[part % parts.length], share, bytes)
      try {
        const { code, err, rows } = await exported(table, format)
        if (code === EXIT.done) {
          expect(rows).toBe(Number(/(\d+) rows? of/.exec(err)?.[1]))
          // A file that is gone by its footer may be left out, and that is told.
          if (!err.includes('left out')) expect(rows).toBe(whole[table])
        } else {
          failures++
          expect({ code, rows }).toEqual({ code: EXIT.failed, rows: null })
          expect(err).toMatch(/^mintlake: .*\n$/)
        }
        const asked = await queried(`FROM ${table}`)
        if (asked.code === EXIT.done) expect(asked.out.trimEnd().split('\n').length).toBe(whole[table])
        else expect(asked.err).toMatch(/^mintlake: \S/)
      } finally {
        restore()
      }
    }),
    { numRuns: 10 },
  )
  expect(failures).toBeGreaterThan(0)
})

it('a file that is deleted after the lake was opened is a missing one, not a query that is wrong', async () => {
  const reader = await openLakeReader({ dataDir: sample.dataDir })
  const [first] = partsOf('events')
  intact.set(first, readFileSync(first))
  rmSync(first)
  const error = await reader.query('FROM events').catch((thrown: unknown) => thrown)
  expect(isMissingFileError(error)).toBe(true)
  reader.close()
})
