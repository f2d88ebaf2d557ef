// What the whole market does, in one line above its table.
import { html, type TemplateResult } from 'lit-html'
import type { TotalsAnswer } from '../../../schema/api/market.ts'
import { Fetched, request } from '../../api.ts'
import type { App } from '../../app.ts'
import { isStale, staleBanner } from '../../dom.ts'
import { formatAmount, formatCount, formatPercent, formatUsd } from '../../format.ts'

/** Each is a read: an office may have many consoles behind one address. */
const EVERY_MS = 20_000

export type MarketTotals = Fetched<TotalsAnswer['data']>

export function marketTotals(app: App): MarketTotals {
  const { fetch } = app.session
  const read = async () => (await request<TotalsAnswer>('/api/v1/market/totals', { fetch })).data
  return new Fetched(read, () => app.changed(), EVERY_MS)
}

/** Says that they could not be read again. */
export const totalsBanner = (totals: MarketTotals) => staleBanner(totals, 'The totals were')

export function totalsLine(totals: MarketTotals): TemplateResult {
  const { value } = totals
  const trades = value === null ? 0 : value.buys_24h + value.sells_24h
  const figures: readonly (readonly [string, string])[] = [
    ['Tokens', formatCount(value?.tokens)],
    ['Volume 24h', formatUsd(value?.volume_24h_usd)],
    ['Trades 24h', formatAmount(value?.trades_24h)],
    ['Launches 24h', formatCount(value?.launches_24h)],
  ]
  return html`<dl class="totals ${isStale(totals) ? 'old' : ''}" aria-label="The whole market">
      ${figures.map(([label, text]) => html`<div><dt>${label}</dt><dd>${text}</dd></div>`)}
      <div><dt>Buys</dt><dd>${value === null || trades === 0 ? '–' : html`<span class="up">${formatPercent((100 * value.buys_24h) / trades, 0)}</span>`}</dd></div>
    </dl>`
}
