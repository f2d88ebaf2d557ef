// Sparklines of the rows in sight: the closes that the DataPoint has, fetched a few tokens at a time within a budget of reads,
// and kept as long as they are fresh.
import type { App } from '../../app.ts'

/** The server takes so many mints in one request. */
const MINTS_PER_READ = 10
/** Reads a minute that sparklines may use: an anonymous reader has thirty for everything. */
const READS_PER_MINUTE = 8
const FRESH_MS = 5 * 60_000
const SETTLE_MS = 300
const ENTRIES_MAX = 2_000

interface Entry {
  closes: readonly number[]
  atMs: number
}

export class Sparklines {
  readonly #entries = new Map<string, Entry>()
  readonly #app: App
  readonly #readTimesMs: number[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #isFetching = false

  constructor(app: App) {
    this.#app = app
  }

  closes(mint: string): readonly number[] {
    return this.#entries.get(mint)?.closes ?? []
  }

  /** Fetches what is missing of these mints once the list has stood still for a moment. */
  want(mints: readonly string[]): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#fetch(mints), SETTLE_MS)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  async #fetch(mints: readonly string[]): Promise<void> {
    if (this.#isFetching) return
    this.#isFetching = true
    try {
      for (;;) {
        const missing = mints.filter((mint) => !this.#isFresh(mint)).slice(0, MINTS_PER_READ)
        if (missing.length === 0 || !this.#takeRead()) return
        await this.#fetchBatch(missing)
      }
    } catch {
      // Rows without a sparkline are complete rows; the next scroll asks again.
    } finally {
      this.#isFetching = false
    }
  }

  async #fetchBatch(mints: readonly string[]): Promise<void> {
    const { data } = await this.#app.client.datapoints(mints)
    const atMs = Date.now()
    for (const mint of mints) this.#entries.set(mint, { closes: [], atMs })
    for (const { mint, sparkline } of data) this.#entries.set(mint, { closes: sparkline, atMs })
    for (const mint of this.#entries.keys()) {
      if (this.#entries.size <= ENTRIES_MAX) break
      this.#entries.delete(mint)
    }
    this.#app.changed()
  }

  #isFresh(mint: string): boolean {
    const entry = this.#entries.get(mint)
    return entry !== undefined && Date.now() - entry.atMs < FRESH_MS
  }

  #takeRead(): boolean {
    const nowMs = Date.now()
    while ((this.#readTimesMs[0] ?? nowMs) < nowMs - 60_000) this.#readTimesMs.shift()
    if (this.#readTimesMs.length >= READS_PER_MINUTE) return false
    this.#readTimesMs.push(nowMs)
    return true
  }
}
