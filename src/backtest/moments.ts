// Features of many tokens at chosen moments of a replayed market, with what the price did afterwards: a labelled data set without agents.

import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { App } from '../app.ts'
import { ENRICHED_FIELDS, SNAPSHOT_FIELDS } from '../schema/features.ts'
import type { MarketItem } from '../schema/market-item.ts'
import { type Column, SNAPSHOT_COLUMNS, TABLES } from '../schema/tables.ts'
import type { Tab } from '../schema/vocabulary.ts'
import { labelMoments } from '../store/outcomes/label-moments.ts'
import { MOMENT_TOKENS_SLICE } from './limits.ts'

/** Which tokens are taken. A minimum of 0 takes those too of which the value is not known. */
export interface TokenFilter {
  tab: Tab
  /** The hottest so many; 0: all. */
  tokensMax: number
  volume24hMin: number
  liquidityMin: number
  holdersMin: number
}

/** The features of `training`, without what an agent said. */
const COLUMNS: readonly Column[] = TABLES.training.columns.filter(
  ({ name }) =>
    ['mint', 'submitted_at', 'price_at_submission_usd', 'simulated'].includes(name) ||
    SNAPSHOT_FIELDS.some((field) => SNAPSHOT_COLUMNS[field].name === name) ||
    ENRICHED_FIELDS.some((field) => field === name),
)

const passes = (item: MarketItem, { volume24hMin, liquidityMin, holdersMin }: TokenFilter): boolean =>
  (item.volume_24h_usd ?? 0) >= volume24hMin &&
  (item.liquidity_usd ?? 0) >= liquidityMin &&
  (item.holder_count ?? 0) >= holdersMin

/** Writes features down, to be labelled once the market has gone on. */
export class Moments {
  rows = 0
  readonly #app: App
  readonly #filter: TokenFilter
  readonly #path: string

  /** @param folder where it keeps what it has written */
  constructor(app: App, filter: TokenFilter, folder: string) {
    this.#app = app
    this.#filter = filter
    this.#path = join(folder, 'moments.ndjson')
  }

  /** The features of now, of all tokens that match. Rejects where they cannot be written. */
  async take(marketMs: number): Promise<void> {
    const { market } = this.#app
    const { tab, tokensMax } = this.#filter
    const list = market.freeze(tab, 'hot', null)
    const size = tokensMax === 0 ? list.size : Math.min(list.size, tokensMax)
    for (let at = 0; at < size; at += MOMENT_TOKENS_SLICE) {
      const { lines } = list.page('desc', at, Math.min(MOMENT_TOKENS_SLICE, size - at))
      const rows = lines.flatMap((line) => this.#row(JSON.parse(line.toString()) as MarketItem, marketMs))
      this.rows += rows.length
      await appendFile(this.#path, rows.join(''))
    }
  }

  #row(item: MarketItem, marketMs: number): string[] {
    const { market } = this.#app
    if (!passes(item, this.#filter)) return []
    const [values, enriched] = [market.snapshot(item.mint), market.enriched(item.mint)]
    if (values === null || values.priceUsd === null) return []
    const features = Object.fromEntries(
      SNAPSHOT_FIELDS.map((field) => [SNAPSHOT_COLUMNS[field].name, values[field]]),
    )
    const { priceUsd } = values
    const simulated = this.#app.replayed?.simulated ?? null
    const own = { mint: item.mint, submitted_at: marketMs, price_at_submission_usd: priceUsd, simulated }
    return [`${JSON.stringify({ ...own, ...features, ...enriched })}\n`]
  }

  /** Labels what was taken, of a market whose server has stopped. @returns how many rows the file has */
  async label(dataDir: string, outPath: string, knownToMs: number): Promise<number> {
    // There is none where no token was there.
    await appendFile(this.#path, '')
    const spillDir = `${this.#path}.spill`
    try {
      return await labelMoments({
        dataDir,
        momentsPath: this.#path,
        columns: COLUMNS,
        outPath,
        spillDir,
        knownToMs,
      })
    } finally {
      await rm(this.#path, { force: true })
      await rm(spillDir, { recursive: true, force: true })
    }
  }
}
