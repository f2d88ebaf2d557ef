// The real program on a disk whose calls are recorded, with the submissions that it acknowledged and refused. Each submission is
// on a token of its own.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { readSql } from '../../store/support.ts'
import { seedToken, submission, submit } from '../submission.ts'
import {
  type Answer,
  type ServerProcess,
  type Settings,
  spawnServer,
  temporaryFolder,
} from '../test-server.ts'
import { type WatchedDisk, watchDisk } from './disk-shim.ts'
import { lossesOf, SEGMENT } from './disk-trace.ts'

const SETTINGS: Settings = { 'submit-limits': 'rate=0,cooldown-ms=0', 'lake-tidy': 'every-ms=0' }
/** The keys of rows of the market. */
const KEYS = [
  ['bars', 'mint, tf, t'],
  ['tokens', 'mint, updated_at'],
] as const
const POLL_MS = 20
const MINUTE_MS = 60_000
const BARS_AGO_MS = 10 * MINUTE_MS

export interface Sent {
  mint: string
  answer: Answer
}

/** Resolves when `holds` returns true. Rejects if that takes too long. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  timeoutMs = 20_000,
): Promise<void> {
  const endMs = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

export class WatchedServer {
  readonly folder = temporaryFolder()
  readonly disk: WatchedDisk = watchDisk(this.folder)
  readonly #settings: Settings
  #server!: ServerProcess
  #key = ''
  /** Ids of acknowledged submissions. */
  readonly acknowledged: string[] = []
  /** Tokens of refused submissions. */
  readonly refused: string[] = []

  constructor(settings: Settings) {
    this.#settings = { ...SETTINGS, ...settings }
  }

  get client() {
    return this.#server.client
  }

  async start(): Promise<this> {
    this.#server = await spawnServer(this.#settings, this.folder, this.disk.env)
    if (this.#key === '') this.#key = await this.client.register()
    return this
  }

  /** Makes tokens to submit on. To be called while the disk works normally. */
  tokens(count: number): Promise<string[]> {
    return Promise.all(Array.from({ length: count }, () => seedToken(this.client, Date.now())))
  }

  /** Pushes trades of some minutes ago, whose bars have closed. */
  async trade(mint: string): Promise<void> {
    const fromMs = Date.now() - BARS_AGO_MS
    const trades = [0, 1, 2].map((minute) => ({
      ...{ type: 'trade', mint, side: 'buy', tokenAmount: 10, priceUsd: 0.001 + minute / 10_000 },
      ts: fromMs + minute * MINUTE_MS,
    }))
    await this.client.push(...trades)
  }

  async submit(mint: string): Promise<Sent> {
    const answer = await submit(this.client, this.#key, submission(mint))
    if (answer.status === 201) this.acknowledged.push(answer.body.analysisId)
    else this.refused.push(mint)
    return { mint, answer }
  }

  /** Submits on all tokens at once. */
  submitAll(mints: readonly string[]): Promise<Sent[]> {
    return Promise.all(mints.map((mint) => this.submit(mint)))
  }

  /** The store as `/health` reports it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  async health(): Promise<any> {
    return (await this.client.get('/health')).body.store
  }

  /** Resolves when everything acknowledged is in the lake and the log is durably empty. `/health` would be up to a second late. */
  untilFlushed(): Promise<void> {
    const log = join(this.folder, 'log')
    return until('the log is empty, and durably so', () => {
      if (readdirSync(log).some((name) => name.endsWith('.log'))) return false
      const calls = this.disk.calls()
      const gone = calls.findLast(({ word, path }) => word === 'unlinked' && SEGMENT.test(path))
      return calls.some(({ word, path, at }) => word === 'sync' && path === 'log' && at > (gone?.at ?? -1))
    })
  }

  async killAndStart(): Promise<void> {
    await this.#server.kill()
    await this.start()
  }

  /** A clean restart: afterwards the log is empty, and its next commit begins a segment. */
  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  /** A clean stop, which flushes the log to the lake. */
  async stop(): Promise<void> {
    expect(await this.#server.terminate()).toBe(0)
  }

  async remove(): Promise<void> {
    await this.#server?.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Checks that the lake has each acknowledged submission once, no other one, and no other row twice. */
  async expectLake(): Promise<void> {
    const lake = join(this.folder, 'lake')
    const attach = `ATTACH '${join(lake, 'catalog.duckdb')}' AS lake (READ_ONLY)`
    const column = async (sql: string) =>
      (await readSql(sql, attach)).map((row) => String(Object.values(row)[0]))
    const acknowledged = this.acknowledged.toSorted()
    const files = (table: string) => `read_parquet('${lake}/${table}/*/*.parquet')`
    for (const relation of ['lake.training', 'lake.xp_ledger', files('training')])
      expect(await column(`SELECT analysis_id FROM ${relation} ORDER BY 1`), relation).toEqual(acknowledged)
    const mints = new Set(await column('SELECT mint FROM lake.training'))
    expect(this.refused.filter((mint) => mints.has(mint))).toEqual([])
    for (const [table, key] of KEYS) {
      if (!readdirSync(join(lake, table)).some((name) => name.startsWith('dt='))) continue
      const twice = `SELECT mint FROM ${files(table)} GROUP BY ${key} HAVING count(*) > 1`
      expect(await column(twice), `twice in ${table}`).toEqual([])
    }
  }

  /** Kills, starts and stops the server. Checks that the lake is complete and that no power cut would have lost anything. */
  async expectWholeAfterKill(): Promise<void> {
    await this.killAndStart()
    await this.stop()
    await this.expectLake()
    expect(lossesOf(this.disk.calls())).toEqual([])
  }
}
