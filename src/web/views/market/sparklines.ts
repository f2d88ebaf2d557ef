// Sparklines of the rows in sight: the closes that the DataPoint has, fetched a few tokens at a time within a budget of reads,
// and kept as long as they are fresh.

import type { DataPoint } from '../../../client/index.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import { request } from '../../api.ts'
import type { PageSession } from '../../session.ts'

/** A DataPoint has much more. */
const BATCH = '/api/v1/datapoint/batch?fields=mint,sparkline'

/** The server takes so many mints in one request. */
const MINTS_PER_READ = 10
/** Reads a minute that sparklines may use: an anonymous reader has thirty for everything. */
const READS_PER_MINUTE = 8
const FRESH_MS = 5 * MINUTE_MS
/** What goes stale so soon is read together with what is. */
const NEAR_MS = MINUTE_MS
const SETTLE_MS = 300
const RETRY_MS = 10_000
const ENTRIES_MAX = 2_000

interface Entry {
  closes: readonly number[]
  atMs: number
}

export class Sparklines {
  readonly #entries = new Map<string, Entry>()
  readonly #session: PageSession
  readonly #onChange: () => void
  readonly #readTimesMs: number[] = []
  #wanted: readonly string[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #isFetching = false
  #notBeforeMs = 0

  constructor(session: PageSession, onChange: () => void) {
    this.#session = session
    this.#onChange = onChange
    document.addEventListener('visibilitychange', () => this.#schedule())
  }

  /** Null: not known yet. */
  closes(mint: string): readonly number[] | null {
    return this.#entries.get(mint)?.closes ?? null
  }

  /** Fetches what is missing of these mints, and no others, once the list has stood still for a moment: as much as the budget
   *  allows, the rest as soon as it allows more, and each again once it is no longer fresh. */
  want(mints: readonly string[]): void {
    this.#wanted = mints
    this.#notBeforeMs = Math.max(this.#notBeforeMs, Date.now() + SETTLE_MS)
    this.#schedule()
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#wanted.length === 0 || this.#isFetching || document.hidden) return
    const staleAtMs = Math.min(...this.#wanted.map((mint) => this.#staleAtMs(mint)))
    const waitMs = Math.max(0, Math.max(staleAtMs, this.#notBeforeMs) - Date.now(), this.#budgetWaitMs())
    this.#timer = setTimeout(() => void this.#fetch(), waitMs)
  }

  async #fetch(): Promise<void> {
    const missing = this.#wanted
      .filter((mint) => this.#staleAtMs(mint) <= Date.now() + NEAR_MS)
      .toSorted((a, b) => this.#staleAtMs(a) - this.#staleAtMs(b))
      .slice(0, MINTS_PER_READ)
    this.#isFetching = true
    this.#readTimesMs.push(Date.now())
    try {
      await this.#fetchBatch(missing)
    } catch {
      // Rows without a sparkline are complete rows.
      this.#notBeforeMs = Date.now() + RETRY_MS
    } finally {
      this.#isFetching = false
    }
    this.#schedule()
  }

  async #fetchBatch(mints: readonly string[]): Promise<void> {
    const { fetch } = this.#session
    type Answer = { data: Pick<DataPoint, 'mint' | 'sparkline'>[] }
    const { data } = await request<Answer>(BATCH, { body: { mints }, fetch })
    const atMs = Date.now()
    for (const mint of mints) this.#entries.set(mint, { closes: [], atMs })
    for (const { mint, sparkline } of data) this.#entries.set(mint, { closes: sparkline, atMs })
    for (const mint of this.#entries.keys()) {
      if (this.#entries.size <= ENTRIES_MAX) break
      this.#entries.delete(mint)
    }
    this.#onChange()
  }

  /** 0: it is not known. */
  #staleAtMs(mint: string): number {
    const entry = this.#entries.get(mint)
    return entry === undefined ? 0 : entry.atMs + FRESH_MS
  }

  /** How long until one more read is within the budget; 0: it is now. */
  #budgetWaitMs(): number {
    const nowMs = Date.now()
    while ((this.#readTimesMs[0] ?? nowMs) <= nowMs - MINUTE_MS) this.#readTimesMs.shift()
    const [oldestMs] = this.#readTimesMs
    return oldestMs === undefined || this.#readTimesMs.length < READS_PER_MINUTE
      ? 0
      : oldestMs + MINUTE_MS - nowMs
  }
}
