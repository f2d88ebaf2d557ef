// The fields of the DataPoint as the token's page groups them, with the format of each.
import type { TemplateResult } from 'lit-html'
import { html, nothing } from 'lit-html'
import type { DataPoint } from '../../../client/index.ts'
import { MARKET_QUOTES } from '../../../schema/quote.ts'
import { untrustedLink } from '../../dom.ts'
import {
  changeClass,
  formatAge,
  formatAmount,
  formatChange,
  formatCount,
  formatPercent,
  formatPrice,
  formatSigned,
  formatUsd,
  shortAddress,
} from '../../format.ts'

interface Field {
  name: keyof DataPoint
  label: string
  text(point: DataPoint): string
  class?(point: DataPoint): string
}

interface Group {
  title: string
  fields: readonly Field[]
}

/** @param format of a value that may be unknown, which is a dash */
const field = <Name extends keyof DataPoint>(
  name: Name,
  label: string,
  format: (value: DataPoint[Name]) => string,
): Field => ({ name, label, text: (point) => format(point[name]) })

const change = (name: 'priceChange6h' | 'priceChange24h', label: string): Field => ({
  ...field(name, label, formatChange),
  class: (point) => changeClass(point[name]),
})

const GROUPS: readonly Group[] = [
  {
    title: 'Value',
    fields: [
      field('priceUsd', 'Price', formatPrice),
      field('priceSol', 'Price in SOL', (sol) => formatPrice(sol).replace('$', '◎ ')),
      field('marketCap', 'Market cap', formatUsd),
      field('fdv', 'Fully diluted', formatUsd),
      field('liquidity', 'Liquidity', formatUsd),
      field('totalSupply', 'Total supply', formatAmount),
      field('bondingProgress', 'Bonding curve', formatPercent),
    ],
  },
  {
    title: 'Trading',
    fields: [
      field('quoteMint', 'Paid in', (mint) => (mint === null ? '–' : quoteName(mint))),
      field('isMayhem', 'Mayhem mode', (isOn) => (isOn === null ? '–' : isOn ? 'yes' : 'no')),
      field('volume1m', 'Volume 1m', formatUsd),
      field('volume1h', 'Volume 1h', formatUsd),
      field('volume6h', 'Volume 6h', formatUsd),
      field('volume24h', 'Volume 24h', formatUsd),
      field('buys24h', 'Buys 24h', formatCount),
      field('sells24h', 'Sells 24h', formatCount),
      field('buySellImbalance1m', 'Imbalance 1m', (ratio) => (ratio === null ? '–' : formatSigned(ratio, 2))),
      change('priceChange6h', 'Change 6h'),
      change('priceChange24h', 'Change 24h'),
    ],
  },
  {
    title: 'Holders',
    fields: [
      field('holderCount', 'Holders', formatCount),
      field('top10HolderPct', 'Ten largest', formatPercent),
      field('creatorHolding', 'Creator', formatPercent),
      field('snipersHolding', 'Snipers', formatPercent),
      field('insidersHolding', 'Insiders', formatPercent),
      field('bundleHolding', 'Bundlers', formatPercent),
      field('freshWalletsHolding', 'Fresh wallets', formatPercent),
    ],
  },
  {
    title: 'On chain',
    fields: [
      field('top10_holder_pct_onchain', 'Ten largest', formatPercent),
      field('unique_wallet_24h', 'Wallets 24h', formatCount),
      field('unique_wallet_1h', 'Wallets 1h', formatCount),
      field('buy_volume_24h_usd', 'Buy volume 24h', formatUsd),
      field('sell_volume_24h_usd', 'Sell volume 24h', formatUsd),
    ],
  },
]

/** Flags of security: `isBad` is the value that warns. */
const FLAGS = [
  { name: 'has_freeze_authority', yes: 'Can be frozen', no: 'Cannot be frozen', isBad: true },
  { name: 'has_mint_authority', yes: 'Supply can grow', no: 'Supply is fixed', isBad: true },
  { name: 'transfer_fee_enabled', yes: 'Transfer fee', no: 'No transfer fee', isBad: true },
  { name: 'is_mutable_metadata', yes: 'Metadata can change', no: 'Metadata is fixed', isBad: true },
] as const

/** What trades are paid in: by its name, where it has one here. */
function quoteName(quoteMint: string): string {
  if (quoteMint === MARKET_QUOTES.sol) return 'SOL'
  return quoteMint === MARKET_QUOTES.usdc ? 'USDC' : shortAddress(quoteMint)
}

/** Whose a field is, and how old, where the DataPoint says so. */
function sourceOf({ enrichedFrom }: DataPoint, name: keyof DataPoint, nowMs: number): string {
  const from = enrichedFrom.find(({ fields }) => fields.some((field) => field === name))
  return from === undefined ? '' : `${from.source}, ${formatAge(from.at, nowMs)} ago`
}

/** Where the fields of a card come from: in its heading where all have one source, else beside each. */
function sourcesOf(point: DataPoint, names: readonly (keyof DataPoint)[], nowMs: number) {
  const sources = new Set(names.map((name) => sourceOf(point, name, nowMs)))
  const [source = ''] = sources
  const isOne = sources.size === 1
  return {
    heading: isOne && source !== '' ? html` <small>${source}</small>` : nothing,
    beside: (name: keyof DataPoint) => {
      const own = isOne ? '' : sourceOf(point, name, nowMs)
      return own === '' ? nothing : html`<small class="dim"> (${own})</small>`
    },
  }
}

function fieldGroup(point: DataPoint, { title, fields }: Group, nowMs: number): TemplateResult {
  const names = fields.map(({ name }) => name)
  const { heading, beside } = sourcesOf(point, names, nowMs)
  return html`<section class="card">
    <h2>${title}${heading}</h2>
    <dl>${fields.map((each) => html`<div><dt>${each.label}</dt><dd class=${each.class?.(point) ?? ''}>${each.text(point)}${beside(each.name)}</dd></div>`)}</dl>
  </section>`
}

/** All groups of fields, each as a list of terms. */
export const fieldGroups = (point: DataPoint, nowMs: number): TemplateResult => html`
  <div class="groups">${GROUPS.map((group) => fieldGroup(point, group, nowMs))}</div>`

/** What can be done to the token's holders, each with a shape and words beside its colour. */
export function securityFlags(point: DataPoint, nowMs: number): TemplateResult {
  const names = FLAGS.map(({ name }) => name)
  const { heading, beside } = sourcesOf(point, names, nowMs)
  return html`<section class="card">
    <h2>Security${heading}</h2>
    <ul class="flags">
      ${FLAGS.map(({ name, yes, no, isBad }) => {
        const value = point[name]
        if (typeof value !== 'boolean') return html`<li class="dim">? ${yes}: unknown</li>`
        return html`<li class=${value === isBad ? 'warn' : 'good'}>${value === isBad ? '⚠' : '✓'} ${value ? yes : no}${beside(name)}</li>`
      })}
    </ul>
    ${point.enriched_at === null ? html`<p class="note">Not looked up yet.</p>` : nothing}
  </section>`
}

export const holdersTable = (point: DataPoint, nowMs: number): TemplateResult => html`
  <section class="card">
    <h2>Largest holders${sourcesOf(point, ['topHolders'], nowMs).heading}</h2>
    ${
      point.topHolders.length === 0
        ? html`<p class="note">None are known.</p>`
        : html`<table class="plain"><thead><tr><th>Wallet</th><th class="num">Share</th></tr></thead>
          <tbody>${point.topHolders
            .slice(0, 10)
            .map(
              ({ address, pct }) =>
                html`<tr><td title=${address}>${shortAddress(address)}</td><td class="num">${formatPercent(pct, 2)}</td></tr>`,
            )}</tbody></table>`
    }
  </section>`

/** Amounts are told in SOL alone: of what is paid in something else there is a dash. */
const paidIn = (quoteMint: string | null) =>
  quoteMint === null || quoteMint === MARKET_QUOTES.sol
    ? nothing
    : html` <small title=${quoteMint}>paid in ${quoteName(quoteMint)}, not in SOL</small>`

export const tradesTable = ({ recentTrades, quoteMint }: DataPoint, nowMs: number): TemplateResult => html`
  <section class="card">
    <h2>Latest trades${paidIn(quoteMint)}</h2>
    <div class="trades-room" tabindex="0" role="region" aria-label="Latest trades">${
      recentTrades.length === 0
        ? html`<p class="note">None yet.</p>`
        : html`<table class="plain"><thead><tr><th>Side</th><th class="num">SOL</th><th>Wallet</th><th class="num">Ago</th></tr></thead>
          <tbody>${recentTrades.map(
            ({ type, sol, wallet, timestamp }) =>
              html`<tr><td class=${type === 'buy' ? 'up' : 'down'}>${type === 'buy' ? '▲ buy' : '▼ sell'}</td><td class="num">${formatAmount(sol)}</td><td title=${wallet ?? nothing}>${shortAddress(wallet)}</td><td class="num">${formatAge(timestamp, nowMs)}</td></tr>`,
          )}</tbody></table>`
    }</div>
  </section>`

/** What the token's creator says. It is shown as text, and links lead outside without a trace. */
export const creatorTexts = (point: DataPoint): TemplateResult => html`
  <section class="card">
    <h2>About</h2>
    <p class="note">Written by the token's creator; nobody checked it.</p>
    <div class="untrusted description" tabindex="0" role="region" aria-label="Description">${point.description ?? 'No description.'}</div>
    <p class="links">
      ${untrustedLink('Website', point.website)} ${untrustedLink('X', point.twitter)} ${untrustedLink('Telegram', point.telegram)}
    </p>
    <p class="mono" title="Mint address">${point.mint}</p>
  </section>`
