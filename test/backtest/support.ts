// A small simulated market in a lake, and a server on it that waits.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BacktestOptions, type Opened, openBacktest } from '../../src/backtest/backtest.ts'
import { recordSimulation } from '../../src/backtest/record-simulation.ts'
import { createLog } from '../../src/lib/log.ts'
import { Client } from '../support/test-server.ts'

export const START_MS = Date.parse('2026-03-02T12:00:00Z')
export const MINUTE_MS = 60_000
/** Of the tests in this process. */
export const folder = mkdtempSync(join(tmpdir(), 'mintlake-backtest-test-'))
export const removeFolder = (): void => rmSync(folder, { recursive: true, force: true })

const log = createLog('warn')
let count = 0

/** Records so many minutes of a simulated market, always the same. @returns its data folder */
export async function recordLake(minutes: number): Promise<string> {
  const dataDir = join(folder, `lake ${++count}`)
  const market = { seed: 7, tokens: 60, tradesPerSecond: 4 }
  await recordSimulation({ ...market, dataDir, startMs: START_MS, lengthMs: minutes * MINUTE_MS }, log)
  return dataDir
}

export const optionsFor = (lake: string, over: Partial<BacktestOptions> = {}): BacktestOptions => ({
  ...{ lake, from: '', to: '', speed: 'max', outDir: join(folder, `out ${++count}`), programs: [], env: {} },
  ...{ hasBaselines: false, marketStepMs: 1_000, silenceMs: 20, waitMsMax: 20_000 },
  ...{ tailMarketMs: 0, seed: 1 },
  signal: new AbortController().signal,
  say: () => {},
  ...over,
})

export interface Stepped extends Opened {
  client: Client
  close(): Promise<void>
}

/** A server whose market waits at its beginning. */
export async function openStepped(lake: string, over: Partial<BacktestOptions> = {}): Promise<Stepped> {
  const opened = await openBacktest(optionsFor(lake, over))
  await opened.app.ready
  await opened.driver.stepTo(opened.span.fromMs)
  return { ...opened, client: new Client(opened.app.url), close: () => opened.app.stop() }
}
