// The market: one sorted, filtered list of all of it, of which the rows in sight are live.
import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import { type Sort, TABS, type Tab } from '../../../schema/vocabulary.ts'
import { LOW_COVERAGE_COUNT } from '../../../schema/xp.ts'
import type { App, View } from '../../app.ts'
import { emptyState, enteredText, SPARKLINE_TO_COME, sparkline, waitingState } from '../../dom.ts'
import { formatCount, sentence } from '../../format.ts'
import { keptForGood } from '../../kept.ts'
import type { ListedRow } from '../../listed-fields.ts'
import { type Route, replaceQuery, routeHref } from '../../router.ts'
import { type GridPlace, gridMove } from './grid-keys.ts'
import { type CellContext, COLUMNS, type MarketColumn, SORT_DEFAULT, toSort } from './market-columns.ts'
import { type MarketTotals, marketTotals, totalsBanner, totalsLine } from './market-totals.ts'
import { type ListQuery, MarketWindow } from './market-window.ts'
import { type Span, visibleSpan } from './virtual-rows.ts'

const ROW_PX = 48
const DENSE_ROW_PX = 30
const HEAD_PX = 36
/** Of a row that is kept where it is though its token is elsewhere in the list now. */
const LEFT_TITLE = 'No longer here in the list: these are its last figures from when it was.'
/** How long a row shows which way its price went. */
const MOVE_SHOWN_MS = 900
/** Typing pauses so long before the server is asked. */
const SEARCH_PAUSE_MS = 200
const DENSE_ITEM = 'mintlake-dense'

/** What a filter of a figure offers, in USD. */
const LEAST_USD = ['', '1000', '10000', '100000', '1000000'] as const
const LEAST_LABELS = ['any', '$1K+', '$10K+', '$100K+', '$1M+'] as const

const toTab = (text: string | null): Tab => TABS.find((tab) => tab === text) ?? 'all'
const toLeast = (text: string | null): string => LEAST_USD.find((least) => least === text) ?? ''
const sortOfTab = (tab: Tab): Sort => (tab === 'new' ? 'created_timestamp' : SORT_DEFAULT)

/** What the address says of the list. */
type ListState = ReturnType<typeof toState>

const toState = ({ query }: Route) => {
  const tab = toTab(query.get('tab'))
  return {
    tab,
    sort: toSort(query.get('sort')) ?? sortOfTab(tab),
    isDescending: query.get('order') !== 'asc',
    /** As it stands in its field. */
    search: query.get('search') ?? '',
    /** Tokens with fewer analyses than earn the bonus. */
    isLowCoverage: query.get('coverage') === 'low',
    /** Least volume and liquidity, as in LEAST_USD. */
    volume: toLeast(query.get('volume')),
    liquidity: toLeast(query.get('liquidity')),
  }
}

const toAddress = (state: ListState): Record<string, string> => ({
  tab: state.tab === 'all' ? '' : state.tab,
  sort: state.sort === sortOfTab(state.tab) ? '' : state.sort,
  order: state.isDescending ? '' : 'asc',
  search: state.search,
  coverage: state.isLowCoverage ? 'low' : '',
  volume: state.volume,
  liquidity: state.liquidity,
})

const toQuery = (state: ListState): ListQuery => ({
  tab: state.tab,
  sort: state.sort,
  order: state.isDescending ? 'desc' : 'asc',
  ...(state.search.trim() !== '' && { search: state.search.trim() }),
  ...(state.isLowCoverage && { max_analyses: LOW_COVERAGE_COUNT - 1 }),
  ...(state.volume !== '' && { min_volume_24h: Number(state.volume) }),
  ...(state.liquidity !== '' && { min_liquidity: Number(state.liquidity) }),
})

/** Whether the focus goes from one element within the table to another. */
const staysWithin = ({ currentTarget, relatedTarget }: FocusEvent): boolean =>
  (currentTarget as Node).contains(relatedTarget as Node | null)

export class MarketView implements View {
  readonly title = 'Market'
  readonly #app: App
  readonly #window: MarketWindow
  readonly #totals: MarketTotals
  #state: ListState
  #isDense = keptForGood.get(DENSE_ITEM) !== null
  #isPointed = false
  #error: string | null = null
  #scrollTopPx = 0
  /** Where the list goes once it is drawn in its new height; null: it stays. */
  #scrollToPx: number | null = null
  #heightPx = Math.max(200, innerHeight - 200)
  #drawnKey = ''
  /** Where Tab leads to within the grid, and whether the keyboard is there. */
  #place: GridPlace = { row: 0, column: 0 }
  #hasFocus = false
  #focusNext = false
  #isDrawing = false
  #searchPause: ReturnType<typeof setTimeout> | undefined

  constructor(app: App) {
    this.#app = app
    this.#state = toState(app.route)
    this.#window = new MarketWindow(app.live, toQuery(this.#state), {
      onChange: () => {
        this.#error = null
        app.changed()
      },
      onError: (message) => {
        this.#error = message
        app.invalidate()
      },
    })
    this.#totals = marketTotals(app)
    this.#look()
  }

  /** Another tab, or an address that somebody has written, is another list of the same view. */
  update(route: Route): boolean {
    const state = toState(route)
    if (JSON.stringify(state) !== JSON.stringify(this.#state)) this.#show(state)
    return true
  }

  stop(): void {
    clearTimeout(this.#searchPause)
    this.#app.sparklines.want([])
    this.#totals.stop()
    this.#window.stop()
  }

  render(): TemplateResult {
    this.#isDrawing = true
    this.#keepPlace()
    return html`
      <section class="market ${this.#isDense ? 'dense' : ''}" aria-labelledby="view-title">
        <header class="toolbar">
          <h1 id="view-title">Market</h1>
          ${this.#tabs()} ${this.#filters()}
          <p class="status" role="status">${this.#status()}</p>
        </header>
        ${totalsLine(this.#totals)}
        ${this.#banner()}
        ${this.#table()}
      </section>`
  }

  drawn(): void {
    this.#isDrawing = false
    this.#scrollOn()
    this.#measure()
    this.#moveFocus()
    const { first, end } = this.#span()
    const mints = this.#isDense ? [] : this.#rowsOf(first, end).map(({ row }) => row.mint)
    const key = mints.join()
    if (key === this.#drawnKey) return
    this.#drawnKey = key
    this.#app.sparklines.want(mints)
  }

  get #rowPx(): number {
    return this.#isDense ? DENSE_ROW_PX : ROW_PX
  }

  /** Rows that there is room for. */
  get #total(): number {
    return this.#window.shownTotal ?? 0
  }

  /** Asks for another list, from its top. */
  #show(state: ListState): void {
    this.#state = state
    this.#error = null
    this.#scrollTopPx = 0
    this.#place = { row: this.#place.row === -1 ? -1 : 0, column: this.#place.column }
    const table = document.querySelector('.table')
    if (table !== null) table.scrollTop = 0
    this.#window.show(toQuery(state))
    this.#app.invalidate()
  }

  /** After a change of sort or filter: the list, and the address so that it can be shared. */
  #change(changed: Partial<ListState>): void {
    const state = { ...this.#state, ...changed }
    replaceQuery(this.#app.route, toAddress(state))
    this.#show(state)
  }

  #tabs(): TemplateResult {
    return html`<nav class="tabs" aria-label="Tabs of the market">
      ${TABS.map((tab) => html`<a href=${routeHref('market', '', this.#addressOfTab(tab))} aria-current=${tab === this.#state.tab ? 'page' : nothing}>${tab}</a>`)}
    </nav>`
  }

  /** The filters stay, and the sort is that of the tab. */
  #addressOfTab = (tab: Tab): Record<string, string> =>
    toAddress({ ...this.#state, tab, sort: sortOfTab(tab), isDescending: true })

  #filters(): TemplateResult {
    const { search, isLowCoverage, volume, liquidity } = this.#state
    return html`<form class="filters" role="search" @submit=${(event: Event) => event.preventDefault()}>
      <input type="search" id="search" name="search" placeholder="Name, symbol or mint" aria-label="Search tokens" maxlength="64"
        .value=${search} @input=${(event: InputEvent) => this.#search(enteredText(event))} />
      ${this.#least('Volume', volume, (least) => this.#change({ volume: least }))}
      ${this.#least('Liquidity', liquidity, (least) => this.#change({ liquidity: least }))}
      <label><input type="checkbox" .checked=${isLowCoverage} @change=${() => this.#change({ isLowCoverage: !isLowCoverage })} /> low coverage</label>
      <label><input type="checkbox" .checked=${this.#isDense} @change=${() => this.#switchDense()} /> dense</label>
    </form>`
  }

  #least(label: string, chosen: string, choose: (least: string) => void): TemplateResult {
    return html`<label class="least">${label}
      <select aria-label="Least ${label.toLowerCase()}" @change=${(event: Event) => choose(enteredText(event))}>
        ${LEAST_USD.map((least, at) => html`<option value=${least} ?selected=${least === chosen}>${LEAST_LABELS[at]}</option>`)}
      </select></label>`
  }

  #search(search: string): void {
    this.#state = { ...this.#state, search }
    // The addresses of the tabs have it too.
    this.#app.invalidate()
    clearTimeout(this.#searchPause)
    this.#searchPause = setTimeout(() => this.#change({}), SEARCH_PAUSE_MS)
  }

  #switchDense(): void {
    const first = this.#scrollTopPx / this.#rowPx
    this.#isDense = !this.#isDense
    this.#scrollToPx = first * this.#rowPx
    keptForGood.set(DENSE_ITEM, this.#isDense ? '1' : null)
    this.#look()
    this.#app.invalidate()
  }

  #status(): string {
    const { total, movedCount } = this.#window
    if (total === null) return ''
    const count = `${formatCount(total)} ${total === 1 ? 'token' : 'tokens'}`
    return this.#isHeld && movedCount > 0 ? `${count} · order held, ${movedCount} moved` : count
  }

  #span(): Span {
    return visibleSpan(this.#scrollTopPx, this.#heightPx, this.#rowPx, this.#total)
  }

  /** The rows to draw that are known, and the one with the focus wherever it is. */
  #rowsOf(first: number, end: number): { row: ListedRow; index: number }[] {
    const indexes = Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at)
    const { row: focused } = this.#place
    if (this.#hasFocus && focused >= 0 && (focused < first || focused >= end)) indexes.push(focused)
    return indexes.flatMap((index) => {
      const row = this.#window.at(index)
      return row === undefined ? [] : [{ row, index }]
    })
  }

  #table(): TemplateResult {
    const { first, end } = this.#span()
    const isLoaded = this.#window.shownTotal !== null
    const rows = this.#rowsOf(first, end)
    const rowPx = this.#rowPx
    return html`<div class="table" role="grid" aria-label="Tokens" aria-rowcount=${this.#total + 1} aria-busy=${!isLoaded}
        tabindex="-1" @scroll=${(event: Event) => this.#scrolled(event.currentTarget as HTMLElement)}
        @keydown=${(event: KeyboardEvent) => this.#keyDown(event)}
        @focusin=${() => this.#focused(true)} @focusout=${(event: FocusEvent) => this.#focused(staysWithin(event))}
        @pointerenter=${() => this.#pointed(true)} @pointerleave=${() => this.#pointed(false)}>
      <div class="row head" role="row" aria-rowindex="1">${COLUMNS.map((column, at) => this.#heading(column, at))}</div>
      ${isLoaded ? (this.#total === 0 ? this.#empty() : nothing) : this.#waiting()}
      <div class="rows" role="rowgroup" .style=${`height: ${this.#total * rowPx}px; --step: ${rowPx}px`}>
        ${repeat(
          rows,
          ({ row }) => row.mint,
          ({ row, index }) => this.#row(row, index),
        )}
      </div>
    </div>`
  }

  /** Over a list of which no more can be read: it stands still. Banners lie in one place, so there is one at a time. */
  #banner(): TemplateResult | typeof nothing {
    if (this.#error === null || this.#window.total === null) return totalsBanner(this.#totals)
    return html`<p class="banner floats" role="alert">${sentence(this.#error)} The list is not renewed meanwhile.</p>`
  }

  #waiting(): TemplateResult {
    if (this.#error !== null) return emptyState('The list is not there', sentence(this.#error))
    return waitingState(this.#app.live)
  }

  #empty(): TemplateResult {
    const { search, isLowCoverage, volume, liquidity, tab } = this.#state
    const isFiltered = search !== '' || isLowCoverage || volume !== '' || liquidity !== ''
    if (this.#totals.value?.tokens === 0 || (!isFiltered && tab === 'all'))
      return emptyState(
        'No tokens yet',
        'The market is empty until a feed brings tokens. Start the server with its simulated market to try it out:',
        'npm start -- --feed simulator',
      )
    const advice = isFiltered
      ? 'Search for the start of a word of a name or symbol, or of a mint, or take the filters away.'
      : 'Tokens come into this list as the market goes on.'
    return html`${emptyState('No token matches', advice)}
      <p class="empty"><a href=${routeHref('market')}>Show all tokens</a></p>`
  }

  #heading({ sort, name, label, title }: MarketColumn, at: number): TemplateResult {
    const isSorted = sort === this.#state.sort
    const { isDescending } = this.#state
    const isTabStop = this.#place.row === -1 && this.#place.column === at
    return html`<div role="columnheader" class="cell ${name}" aria-sort=${isSorted ? (isDescending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" title=${title} tabindex=${isTabStop ? '0' : '-1'} @click=${() => this.#sortBy(sort)}><span class="sort-mark" aria-hidden="true">${isSorted ? (isDescending ? '↓' : '↑') : ''}</span>${label}</button>
    </div>`
  }

  #sortBy(sort: Sort): void {
    const isSame = sort === this.#state.sort
    this.#change({ sort, isDescending: isSame ? !this.#state.isDescending : true })
  }

  #row(row: ListedRow, index: number): TemplateResult {
    const move = this.#window.moves.get(row.mint)
    const isMoving = move !== undefined && Date.now() - move.atMs < MOVE_SHOWN_MS
    const context: CellContext = {
      nowMs: this.#app.nowMs(),
      direction: !isMoving ? '' : move.direction > 0 ? 'up' : 'down',
      sparkline: this.#isDense ? nothing : this.#sparkline(row.mint),
      isTabStop: index === this.#tabRow,
    }
    const hasLeft = this.#window.hasLeft(row.mint)
    return html`<div class="row ${hasLeft ? 'old' : ''}" title=${hasLeft ? LEFT_TITLE : nothing} role="row" aria-rowindex=${index + 2} data-index=${index} .style=${`top: ${index * this.#rowPx}px`}>
      ${COLUMNS.map((column) => html`<div class="cell ${column.name} ${column.class?.(row, context) ?? ''}" role="gridcell">${column.cell(row, context)}</div>`)}
    </div>`
  }

  /** The row that Tab leads to: where the keyboard was, if that is drawn. */
  get #tabRow(): number {
    const { row } = this.#place
    if (row === -1) return -1
    const { first, end } = this.#span()
    return this.#hasFocus || (row >= first && row < end) ? row : first
  }

  #sparkline(mint: string): TemplateResult | typeof nothing {
    const closes = this.#app.sparklines.closes(mint)
    return closes === null ? SPARKLINE_TO_COME : sparkline(closes)
  }

  #scrolled(table: HTMLElement): void {
    const before = this.#span()
    this.#scrollTopPx = table.scrollTop
    const { first, end } = this.#span()
    if (first === before.first && end === before.end) return
    this.#look()
    this.#app.invalidate()
  }

  #scrollOn(): void {
    const table = document.querySelector('.table')
    if (table !== null && this.#scrollToPx !== null) table.scrollTop = this.#scrollToPx
    this.#scrollToPx = null
  }

  #measure(): void {
    const height = document.querySelector('.table')?.clientHeight ?? this.#heightPx
    if (height === this.#heightPx) return
    this.#heightPx = height
    this.#look()
    this.#app.invalidate()
  }

  /** Asks for the rows in sight. */
  #look(): void {
    const first = Math.floor(this.#scrollTopPx / this.#rowPx)
    this.#window.look(first, first + Math.ceil(this.#heightPx / this.#rowPx))
  }

  get #isHeld(): boolean {
    return this.#isPointed || this.#hasFocus
  }

  /** The order is kept while the pointer or the focus is on the list. */
  #pointed(isPointed: boolean): void {
    this.#isPointed = isPointed
    this.#window.hold(this.#isHeld)
    this.#app.invalidate()
  }

  #focused(hasFocus: boolean): void {
    // The row that had the focus is being taken away, or moved: nobody has left the grid.
    if (this.#isDrawing) return
    this.#hasFocus = hasFocus
    if (hasFocus) this.#takePlace()
    else this.#focusNext = false
    this.#window.hold(this.#isHeld)
    this.#app.invalidate()
  }

  /** The keyboard goes on from where the focus came by Tab or a click. */
  #takePlace(): void {
    const element = document.activeElement
    const index = element?.closest<HTMLElement>('.rows .row')?.dataset.index
    if (index !== undefined) this.#place = { ...this.#place, row: Number(index) }
    const heading = element?.closest('[role=columnheader]')
    if (heading?.parentElement != null)
      this.#place = { row: -1, column: [...heading.parentElement.children].indexOf(heading) }
  }

  #keyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const pageRows = Math.max(1, Math.floor((this.#heightPx - HEAD_PX) / this.#rowPx) - 1)
    const size = { rows: this.#total, columns: COLUMNS.length, pageRows }
    const place = gridMove(event.key, this.#place, size)
    if (place === null) return
    event.preventDefault()
    this.#place = place
    this.#focusNext = true
    // The row with the focus goes when it is scrolled out of sight, which may be before the next one has come from the server.
    // The table takes the keys meanwhile.
    if (this.#atPlace() === null) (event.currentTarget as HTMLElement).focus({ preventScroll: true })
    if (place.row >= 0) this.#reveal(place.row)
    this.#app.invalidate()
  }

  /** In a list that has become shorter than where the keyboard was, it is at the last row. */
  #keepPlace(): void {
    const { row, column } = this.#place
    if (this.#window.shownTotal !== null && row >= this.#total)
      this.#place = { row: Math.max(0, this.#total - 1), column }
  }

  /** Scrolls so far that a row is in sight. */
  #reveal(row: number): void {
    const table = document.querySelector('.table')
    if (table === null) return
    const [topPx, rowPx] = [row * this.#rowPx, this.#rowPx]
    const bottomPx = topPx + rowPx + HEAD_PX
    if (topPx < table.scrollTop) table.scrollTop = topPx
    else if (bottomPx > table.scrollTop + table.clientHeight) table.scrollTop = bottomPx - table.clientHeight
  }

  /** A row may have to come from the server before it can have the focus. One that went has left it to its place. */
  #moveFocus(): void {
    if (this.#hasFocus && document.activeElement === document.body) this.#focusNext = true
    const target = this.#focusNext ? this.#atPlace() : null
    if (target === null) return
    this.#focusNext = false
    target.focus({ preventScroll: this.#place.row !== -1 })
  }

  /** What has the focus where the keyboard is; null: it is not drawn. */
  #atPlace(): HTMLElement | null {
    const { row, column } = this.#place
    if (row >= 0) return document.querySelector(`.rows .row[data-index="${row}"] a`)
    return document.querySelectorAll<HTMLElement>('.row.head button')[column] ?? null
  }
}
