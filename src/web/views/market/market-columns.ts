// The columns of the market's table: what each shows, and the list's sort that its heading asks for.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { Sort } from '../../../schema/vocabulary.ts'
import { LOW_COVERAGE_COUNT } from '../../../schema/xp.ts'
import {
  changeClass,
  formatAge,
  formatAmount,
  formatChangeShort,
  formatCount,
  formatPrice,
  formatUsd,
  symbolText,
} from '../../format.ts'
import type { ListedRow } from '../../listed-fields.ts'
import { tokenPicture } from '../../picture.ts'
import { routeHref } from '../../router.ts'

/** What a cell needs beside its row. */
export interface CellContext {
  nowMs: number
  /** Which way the price has just gone. */
  direction: 'up' | 'down' | ''
  sparkline: TemplateResult | typeof nothing
  /** Whether this row is the one that Tab leads to. */
  isTabStop: boolean
}

export interface MarketColumn {
  sort: Sort
  /** Of the cell, for its width and for where it is shown. */
  name: string
  label: string
  title: string
  cell(row: ListedRow, context: CellContext): unknown
  class?(row: ListedRow, context: CellContext): string
}

const MOVE_SHAPES = { up: '▲', down: '▼', '': '' } as const

type ChangeName = 'change_5m' | 'change_1h' | 'change_6h' | 'change_24h'
const change = (name: ChangeName): MarketColumn => {
  const label = name.slice('change_'.length)
  return {
    sort: name,
    name: `change c${label}`,
    label,
    title: `Change of the price in ${label}`,
    cell: (row) => formatChangeShort(row[name]),
    class: (row) => changeClass(row[name], 'short'),
  }
}

const token: MarketColumn = {
  sort: 'hot',
  name: 'token',
  label: 'Token · hot',
  title: 'By recent volume',
  cell: ({ mint, name, symbol, image_uri, is_currently_live, complete }, { isTabStop }) => html`
    <a href=${routeHref('token', mint)} tabindex=${isTabStop ? '0' : '-1'} title="${symbol} ${name}">${tokenPicture(mint, image_uri)}<span class="names"><b>${symbolText(symbol, mint)}</b><small class="token-name">${name}</small></span></a>
    ${is_currently_live ? html`<span class="live-mark" title="Its creator streams live" role="img" aria-label="live">●</span>` : nothing}
    ${complete ? html`<span class="graduated-mark" title="Graduated: its bonding curve is sold out" role="img" aria-label="graduated">✓</span>` : nothing}`,
}

export const COLUMNS: readonly MarketColumn[] = [
  token,
  {
    sort: 'price',
    name: 'price',
    label: 'Price',
    title: 'Price in USD',
    cell: ({ priceUsd }, { direction, sparkline }) =>
      html`<span class="spark-cell">${sparkline}</span><span class="move" aria-hidden="true">${MOVE_SHAPES[direction]}</span>${formatPrice(priceUsd)}`,
    class: (_, { direction }) => direction,
  },
  ...(['change_5m', 'change_1h', 'change_6h', 'change_24h'] as const).map(change),
  {
    sort: 'volume_24h',
    name: 'volume',
    label: 'Vol 24h',
    title: 'Volume of 24 hours, USD',
    cell: ({ volume_24h_usd }) => formatUsd(volume_24h_usd),
  },
  {
    sort: 'buys_24h',
    name: 'buys',
    label: 'Buys',
    title: 'Buys in 24 hours',
    cell: ({ buys_24h }) => formatAmount(buys_24h),
    class: () => 'up',
  },
  {
    sort: 'sells_24h',
    name: 'sells',
    label: 'Sells',
    title: 'Sells in 24 hours',
    cell: ({ sells_24h }) => formatAmount(sells_24h),
    class: () => 'down',
  },
  {
    sort: 'market_cap',
    name: 'cap',
    label: 'Mkt cap',
    title: 'Market capitalisation, USD',
    cell: ({ usd_market_cap }) => formatUsd(usd_market_cap),
  },
  {
    sort: 'liquidity',
    name: 'liquidity',
    label: 'Liquidity',
    title: 'Liquidity, USD',
    cell: ({ liquidity_usd }) => formatUsd(liquidity_usd),
  },
  {
    sort: 'holders',
    name: 'holders',
    label: 'Holders',
    title: 'Wallets that hold it',
    cell: ({ holder_count }) => formatCount(holder_count),
  },
  {
    sort: 'created_timestamp',
    name: 'age',
    label: 'Age',
    title: 'Time since its launch, the youngest first',
    cell: ({ created_timestamp }, { nowMs }) => formatAge(created_timestamp, nowMs),
  },
  {
    sort: 'analyses',
    name: 'analyses',
    label: 'Analyses',
    title: `Accepted analyses; with fewer than ${LOW_COVERAGE_COUNT} one earns a bonus`,
    cell: ({ analysis_count }) => formatCount(analysis_count),
  },
]

export const SORT_DEFAULT: Sort = 'hot'
export const toSort = (text: string | null): Sort | null =>
  COLUMNS.find(({ sort }) => sort === text)?.sort ?? null
