// The market: one tab of it, every row live.
import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { StreamRow } from '../../../schema/api/stream.ts'
import { TABS, type Tab } from '../../../schema/vocabulary.ts'
import { LOW_COVERAGE_COUNT } from '../../../schema/xp.ts'
import type { App, View } from '../../app.ts'
import { emptyState, meter, SPARKLINE_TO_COME, sparkline, waitingState } from '../../dom.ts'
import { formatAge, formatCount, formatPrice, formatUsd } from '../../format.ts'
import { tokenPicture } from '../../picture.ts'
import { type Route, replaceQuery, routeHref } from '../../router.ts'
import { styles } from '../../styles.ts'
import { isSortKey, type ListFilter, MarketRows, type SortKey } from './market-rows.ts'
import { type Sparklines, sharedSparklines } from './sparklines.ts'
import { visibleSpan } from './virtual-rows.ts'

const ROWS_MAX = 5_000
const ROW_HEIGHT_PX = 48
const REORDER_MS = 1_000
/** How long a row shows which way its price went. */
const MOVE_SHOWN_MS = 900
const NEW_MS = 24 * 3_600_000

const COLUMNS: readonly { key: SortKey; label: string; title: string }[] = [
  { key: 'hot', label: 'Token · hot', title: 'By recent volume' },
  { key: 'price', label: 'Price', title: 'Price in USD' },
  { key: 'marketCap', label: 'Mkt cap', title: 'Market capitalisation, USD' },
  { key: 'volume', label: 'Vol 24h', title: 'Volume of 24 hours, USD' },
  { key: 'liquidity', label: 'Liquidity', title: 'Liquidity, USD' },
  { key: 'holders', label: 'Holders', title: 'Wallets that hold it' },
  { key: 'bonding', label: 'Curve', title: 'Progress on the bonding curve' },
  { key: 'created', label: 'Age', title: 'Time since its launch' },
  {
    key: 'analyses',
    label: 'Analyses',
    title: `Accepted analyses; with fewer than ${LOW_COVERAGE_COUNT} one earns a bonus`,
  },
]

const inTab: Record<Tab, (row: StreamRow, nowMs: number) => boolean> = {
  all: () => true,
  live: (row) => row.is_currently_live,
  new: (row, nowMs) => nowMs - (row.created_timestamp ?? 0) < NEW_MS,
  graduated: (row) => row.complete,
}

const toTab = (text: string | null): Tab => TABS.find((tab) => tab === text) ?? 'all'

class MarketView implements View {
  readonly title = 'Market'
  readonly #app: App
  readonly #tab: Tab
  readonly #rows: MarketRows
  readonly #sparklines: Sparklines
  readonly #unsubscribe: () => void
  readonly #timer: ReturnType<typeof setInterval>
  #sort: SortKey
  #isDescending: boolean
  #filter: ListFilter
  #isLoaded = false
  #isComplete = false
  #isHeld = false
  #hadGap = false
  #error: string | null = null
  #scrollTopPx = 0
  #heightPx = innerHeight
  #drawnKey = ''

  constructor(app: App) {
    this.#app = app
    const { query } = app.route
    this.#tab = toTab(query.get('tab'))
    const sort = query.get('sort') ?? ''
    this.#sort = isSortKey(sort) ? sort : this.#tab === 'new' ? 'created' : 'hot'
    this.#isDescending = query.get('order') !== 'asc'
    this.#filter = {
      search: query.get('search') ?? '',
      isLowCoverage: query.get('coverage') === 'low',
      isLive: query.get('live') === '1',
    }
    this.#rows = new MarketRows((row) => inTab[this.#tab](row, app.nowMs()))
    this.#sparklines = sharedSparklines(app)
    this.#unsubscribe = this.#subscribe()
    this.#timer = setInterval(() => this.#tick(), REORDER_MS)
  }

  update(route: Route): boolean {
    return toTab(route.query.get('tab')) === this.#tab && route.view === 'market' && this.#matches(route)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#sparklines.want([])
    this.#unsubscribe()
  }

  render(): TemplateResult {
    return html`
      <section class="market" aria-labelledby="view-title">
        <header class="toolbar">
          <h1 id="view-title">Market</h1>
          ${this.#tabs()} ${this.#filters()}
          <p class="status" role="status">${this.#status()}</p>
        </header>
        ${this.#error !== null && !this.#isLoaded ? emptyState('The list is not there', this.#error) : this.#table()}
      </section>`
  }

  drawn(): void {
    const { first, end } = this.#span()
    const mints = this.#rows.shown.slice(first, end).map(({ mint }) => mint)
    const key = mints.join()
    if (key === this.#drawnKey) return
    this.#drawnKey = key
    this.#sparklines.want(mints)
  }

  #subscribe(): () => void {
    const topic = { topic: 'market', tab: this.#tab, sort: 'hot', limit: ROWS_MAX } as const
    return this.#app.live.subscribe(topic, {
      onRows: (rows, kind, isLast) => this.#take(rows, kind, isLast),
      onLeft: (mint) => {
        this.#rows.remove(mint)
        this.#app.changed()
      },
      onResync: () => {
        this.#hadGap = true
        this.#app.invalidate()
      },
      onError: (message) => {
        this.#error = message
        this.#app.invalidate()
      },
    })
  }

  #take(rows: readonly StreamRow[], kind: 'snapshot' | 'changes', isLast: boolean): void {
    this.#error = null
    if (kind === 'changes') this.#rows.applyChanges(rows, Date.now())
    else {
      this.#rows.applySnapshot(rows, isLast)
      if (isLast) this.#hadGap = false
      // The hottest rows come first: they can be shown before the others are there.
      if (isLast || (!this.#isLoaded && this.#sort === 'hot' && this.#isDescending)) {
        this.#isLoaded = true
        this.#isComplete = isLast
        this.#reorder()
      }
    }
    this.#app.changed()
  }

  #tick(): void {
    if (this.#isHeld) return
    this.#reorder()
    this.#app.changed()
  }

  #reorder(): void {
    this.#rows.reorder(this.#sort, this.#isDescending, this.#filter)
  }

  #matches({ query }: Route): boolean {
    return (query.get('search') ?? '') === this.#filter.search
  }

  /** After a change of sort or filter: the order at once, and the address so that it can be shared. */
  #changed(): void {
    const { search, isLowCoverage, isLive } = this.#filter
    replaceQuery(this.#app.route, {
      tab: this.#tab === 'all' ? '' : this.#tab,
      sort: this.#sort === 'hot' ? '' : this.#sort,
      order: this.#isDescending ? '' : 'asc',
      search,
      coverage: isLowCoverage ? 'low' : '',
      live: isLive ? '1' : '',
    })
    this.#reorder()
    this.#app.invalidate()
  }

  #tabs(): TemplateResult {
    return html`<nav class="tabs" aria-label="Tabs of the market">
      ${TABS.map(
        (tab) =>
          html`<a href=${routeHref('market', '', { tab: tab === 'all' ? '' : tab })} aria-current=${tab === this.#tab ? 'page' : nothing}>${tab}</a>`,
      )}
    </nav>`
  }

  #filters(): TemplateResult {
    const { search, isLowCoverage, isLive } = this.#filter
    return html`<form class="filters" role="search" @submit=${(event: Event) => event.preventDefault()}>
      <input type="search" id="search" name="search" placeholder="Name, symbol or mint" aria-label="Search tokens" maxlength="64"
        .value=${search} @input=${(event: InputEvent) => this.#search((event.target as HTMLInputElement).value)} />
      <label><input type="checkbox" .checked=${isLowCoverage} @change=${() => this.#toggle('isLowCoverage')} /> low coverage</label>
      <label><input type="checkbox" .checked=${isLive} @change=${() => this.#toggle('isLive')} /> live</label>
    </form>`
  }

  #search(text: string): void {
    this.#filter.search = text.trim()
    this.#changed()
  }

  #toggle(name: 'isLowCoverage' | 'isLive'): void {
    this.#filter[name] = !this.#filter[name]
    this.#changed()
  }

  #status(): string {
    if (this.#hadGap) return 'Changes were missed; loading all rows again'
    const { shown, size, changedCount } = this.#rows
    if (!this.#isLoaded) return ''
    if (!this.#isComplete) return `Loading, ${formatCount(size)} tokens so far`
    const { search, isLowCoverage, isLive } = this.#filter
    const isFiltered = search !== '' || isLowCoverage || isLive
    const count = isFiltered ? `${formatCount(shown.length)} of ${formatCount(size)}` : formatCount(size)
    return this.#isHeld && changedCount > 0
      ? `${count} tokens · order held, ${changedCount} changed`
      : `${count} tokens`
  }

  #span() {
    return visibleSpan(this.#scrollTopPx, this.#heightPx, ROW_HEIGHT_PX, this.#rows.shown.length)
  }

  #table(): TemplateResult {
    const { shown } = this.#rows
    const { first, end } = this.#span()
    this.#rows.renew(first, end)
    return html`<div class="table" role="table" aria-label="Tokens" aria-rowcount=${shown.length + 1} aria-busy=${!this.#isLoaded}
        tabindex="-1" @scroll=${(event: Event) => this.#scrolled(event.currentTarget as HTMLElement)}
        @pointerenter=${() => this.#hold(true)} @pointerleave=${() => this.#hold(false)}>
      <div class="row head" role="row">${COLUMNS.map((column) => this.#heading(column))}</div>
      ${this.#isLoaded ? (shown.length === 0 ? this.#empty() : nothing) : waitingState(this.#app.live)}
      <div class="rows" role="rowgroup" @focusin=${() => this.#hold(true)} @focusout=${() => this.#hold(false)} style=${styles({ height: `${shown.length * ROW_HEIGHT_PX}px` })}>
        ${repeat(
          shown.slice(first, end),
          (row) => row.mint,
          (row, at) => this.#row(row, first + at),
        )}
      </div>
    </div>`
  }

  #empty(): TemplateResult {
    return this.#rows.size > 0
      ? html`${emptyState('No token matches', 'Search for the start of a name, a symbol or a mint, or take the filters away.')}
          <p class="empty"><a href=${routeHref('market')}>Show all tokens</a></p>`
      : emptyState(
          'No tokens yet',
          'The market is empty until a feed brings tokens. Start the server with its simulated market to try it out:',
          'npm start -- --feed simulator',
        )
  }

  #heading({ key, label, title }: (typeof COLUMNS)[number]): TemplateResult {
    const isSorted = key === this.#sort
    const direction = this.#isDescending ? 'descending' : 'ascending'
    return html`<div role="columnheader" class="cell ${key}" aria-sort=${isSorted ? direction : 'none'}>
      <button type="button" title=${title} @click=${() => this.#sortBy(key)}>${label}${isSorted ? (this.#isDescending ? ' ↓' : ' ↑') : ''}</button>
    </div>`
  }

  #sortBy(key: SortKey): void {
    this.#isDescending = key === this.#sort ? !this.#isDescending : true
    this.#sort = key
    this.#changed()
  }

  #row(row: StreamRow, at: number): TemplateResult {
    const { mint, name, symbol } = row
    const nowMs = this.#app.nowMs()
    const move = this.#rows.moves.get(mint)
    const isMoving = move !== undefined && Date.now() - move.atMs < MOVE_SHOWN_MS
    const direction = !isMoving ? '' : move.direction > 0 ? 'up' : 'down'
    const shape = direction === 'up' ? '▲' : direction === 'down' ? '▼' : ''
    return html`<div class="row" role="row" aria-rowindex=${at + 2} style=${styles({ top: `${at * ROW_HEIGHT_PX}px` })}>
      <div class="cell hot" role="cell">
        <a href=${routeHref('token', mint)}>${tokenPicture(mint, row.image_uri)}<span class="names"><b>${symbol}</b><small>${name}</small></span></a>
        ${row.is_currently_live ? html`<span class="badge live">live</span>` : nothing}
      </div>
      <div class="cell price ${direction}" role="cell"><span class="spark-cell">${this.#sparkline(mint)}</span><span class="move" aria-hidden="true">${shape}</span>${formatPrice(row.priceUsd)}</div>
      <div class="cell marketCap" role="cell">${formatUsd(row.usd_market_cap)}</div>
      <div class="cell volume" role="cell">${formatUsd(row.volume_24h_usd)}</div>
      <div class="cell liquidity" role="cell">${formatUsd(row.liquidity_usd)}</div>
      <div class="cell holders" role="cell">${formatCount(row.holder_count)}</div>
      <div class="cell bonding" role="cell">${row.complete ? html`<small>graduated</small>` : meter(row.bonding_progress, 'bonding curve')}</div>
      <div class="cell created" role="cell">${formatAge(row.created_timestamp, nowMs)}</div>
      <div class="cell analyses" role="cell">${formatCount(row.analysis_count)}</div>
    </div>`
  }

  #sparkline(mint: string): TemplateResult | typeof nothing {
    const closes = this.#sparklines.closes(mint)
    return closes === null ? SPARKLINE_TO_COME : sparkline(closes)
  }

  #scrolled(table: HTMLElement): void {
    const before = this.#span()
    this.#scrollTopPx = table.scrollTop
    this.#heightPx = table.clientHeight
    const { first, end } = this.#span()
    if (first !== before.first || end !== before.end) this.#app.invalidate()
  }

  /** Keeps the order while the pointer or the focus is on the list. */
  #hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (!isHeld) this.#reorder()
    this.#app.invalidate()
  }
}

export const marketView = (app: App): View => new MarketView(app)
