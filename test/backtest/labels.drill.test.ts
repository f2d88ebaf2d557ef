// @module-tag drill
// A labelled data set without a program: the features that the market had, with what its bars say of the price afterwards.
import { existsSync, mkdirSync, readdirSync, symlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Moments } from '../../src/backtest/moments.ts'
import { TABLES } from '../../src/schema/tables.ts'
import { HORIZONS } from '../../src/schema/vocabulary.ts'
import { queryRows } from '../../src/store/duckdb/query.ts'
import { withScratchDatabase } from '../../src/store/duckdb/scratch-database.ts'
import { withLakeReader } from '../../src/store/query/lake-reader.ts'
import { runCommand } from '../support/terminal.ts'
import { folder, MINUTE_MS, openStepped, recordLake, removeFolder, START_MS } from './support.ts'

afterAll(removeFolder)

test.runIf(existsSync('/dev/full'))(
  'features that a full disk does not take are told of, where they are taken',
  async () => {
    const [lake, full] = [await recordLake(1), join(folder, 'full')]
    mkdirSync(full)
    symlinkSync('/dev/full', join(full, 'moments.ndjson'))
    const { app, driver, close } = await openStepped(lake)
    await driver.stepTo(START_MS + 30_000)
    const filter = { tab: 'all', tokensMax: 0, volume24hMin: 0, liquidityMin: 0, holdersMin: 0 } as const
    const moments = new Moments(app, filter, full)
    await expect(moments.take(driver.marketMs)).rejects.toThrow('ENOSPC')
    await close()
  },
)

test('--labels-only that is stopped while it labels leaves nothing', async () => {
  const [lake, out] = [await recordLake(1), join(folder, 'stopped')]
  mkdirSync(out)
  const stopping = new AbortController()
  // The file appears once the server has stopped, and is written then.
  const watcher = watch(out, (_, name) => {
    if (name?.endsWith('labels.parquet')) stopping.abort()
  })
  const args = ['backtest', '--lake', lake, '--out', out, '--labels-only', '--every-ms', '10000']
  const { code, err } = await runCommand(args, {}, '', undefined, stopping.signal)
  watcher.close()
  expect(stopping.signal.aborted).toBe(true)
  expect({ code, left: readdirSync(out) }, err).toEqual({ code: 130, left: [] })
})

interface Labelled {
  mint: string
  atMs: number
  priceUsd: number
  ret: number | null
}

test('--labels-only writes the features that the market had, with what its bars say of the price afterwards', async () => {
  const lake = await recordLake(9)
  const [out, every] = [join(folder, 'labels'), 2 * MINUTE_MS]
  const to = new Date(START_MS + 4 * MINUTE_MS).toISOString()
  const args = [
    '--lake',
    lake,
    '--to',
    to,
    '--out',
    out,
    '--labels-only',
    '--every-ms',
    `${every}`,
    '--tokens-max',
    '10',
  ]
  const { code, out: said } = await runCommand([
    'backtest',
    ...args,
    '--min-holders',
    '1',
    '--tail-ms',
    `${5 * MINUTE_MS}`,
  ])
  expect(code).toBe(0)
  // Some of the thirty have no holder yet.
  expect(said).toMatch(/labels\.parquet: (?:2\d|30) rows/)
  expect(readdirSync(out)).toEqual(['labels.parquet'])
  const { columns, rows } = await withScratchDatabase(':memory:', {}, async (connection) => ({
    columns: await queryRows(
      connection,
      `SELECT column_name AS name FROM (DESCRIBE SELECT * FROM '${out}/labels.parquet')`,
      { name: 'string' },
    ),
    rows: await queryRows(
      connection,
      `SELECT mint, epoch_ms(submitted_at)::DOUBLE AS "atMs", price_usd AS "priceUsd", fwd_ret_5m AS ret FROM '${out}/labels.parquet'`,
      { mint: 'string', atMs: 'number', priceUsd: 'number', ret: 'number?' },
    ),
  }))
  const known = [...TABLES.training.columns, ...TABLES.outcomes.columns].map(({ name }) => name)
  expect(columns.map(({ name }) => name).filter((name) => !known.some((each) => each === name))).toEqual([])
  await check(rows, lake)
}, 240_000)

/** By the market itself, replayed again, and its bars. */
async function check(rows: readonly Labelled[], lake: string): Promise<void> {
  const again = await openStepped(lake)
  for (const atMs of [0, 2, 4].map((minutes) => START_MS + minutes * MINUTE_MS)) {
    await again.driver.stepTo(atMs)
    const of = rows.filter((row) => row.atMs === atMs)
    expect(of.length).toBeGreaterThan(6)
    for (const { mint, priceUsd } of of) expect(again.app.market.snapshot(mint)?.priceUsd).toBe(priceUsd)
  }
  await again.driver.stepTo(again.span.toMs)
  await again.driver.flush()
  await again.close()
  const bars = await withLakeReader({ dataDir: again.dataDir }, ({ connection }) =>
    queryRows(
      connection,
      `SELECT mint, epoch_ms(t)::DOUBLE + ${MINUTE_MS} AS "endMs", c FROM lake.bars WHERE tf = '1m' ORDER BY t`,
      { mint: 'string', endMs: 'number', c: 'number' },
    ),
  )
  let labelled = 0
  for (const { mint, atMs, priceUsd, ret } of rows) {
    const last = bars.findLast(
      (bar) => bar.mint === mint && bar.endMs > atMs && bar.endMs <= atMs + HORIZONS['5m'],
    )
    const isDue = atMs + HORIZONS['5m'] + MINUTE_MS <= again.span.toMs
    if (ret !== null) labelled++
    expect(ret !== null).toBe(isDue)
    if (ret !== null) expect(ret).toBeCloseTo(last === undefined ? 0 : last.c / priceUsd - 1, 9)
  }
  expect(labelled).toBeGreaterThan(10)
  expect(existsSync(join(again.dataDir, 'lake'))).toBe(true)
}
