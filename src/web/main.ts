// Starts the console: the frame around the views, the live connection, theme and keyboard.
import { html, nothing, render, type TemplateResult } from 'lit-html'
import { createClient, type MintlakeClient } from '../client/index.ts'
import type { HealthAnswer } from '../schema/api/status.ts'
import { request } from './api.ts'
import type { App, View, ViewClass } from './app.ts'
import { emptyState, secondsUntil } from './dom.ts'
import { formatAge, formatTime } from './format.ts'
import { gapReason, gapTimes, KnownGaps } from './gaps.ts'
import { keptInTab } from './kept.ts'
import { Live } from './live.ts'
import { MarketTime } from './market-time.ts'
import { parseRoute, type Route, routeHref } from './router.ts'
import { PageSession } from './session.ts'
import { startTheme, switchTheme } from './theme.ts'
import { dayInZone, onZoneChange, switchTimeZone, zoneChanged, zoneName, zoneParts } from './time-zone.ts'
import { AgentsView } from './views/agents/agents.ts'
import { CalibrationView } from './views/calibration.ts'
import { MarketView } from './views/market/market.ts'
import { Sparklines } from './views/market/sparklines.ts'
import { QueryView } from './views/query/query.ts'
import { SubmissionsView } from './views/submissions.ts'
import { SystemView } from './views/system/system.ts'
import { TokenView } from './views/token/token.ts'
import { TryView } from './views/try-it.ts'

const VIEWS: Readonly<Record<string, { label: string; View: ViewClass; isInMenu: boolean }>> = {
  market: { label: 'Market', View: MarketView, isInMenu: true },
  token: { label: 'Token', View: TokenView, isInMenu: false },
  submissions: { label: 'Submissions', View: SubmissionsView, isInMenu: true },
  agents: { label: 'Agents', View: AgentsView, isInMenu: true },
  calibration: { label: 'Calibration', View: CalibrationView, isInMenu: true },
  system: { label: 'System', View: SystemView, isInMenu: true },
  query: { label: 'Query', View: QueryView, isInMenu: true },
  try: { label: 'Try it', View: TryView, isInMenu: true },
}

/** The agent's key lives as long as the tab. */
const KEY_ITEM = 'mintlake-key'
/** Ages and countdowns are drawn anew so often, and the market's time is asked for. */
const CLOCK_MS = 1_000
/** New data is drawn at most so often. More often nobody can read numbers, and a busy market changes them in every frame. */
const DATA_EVERY_MS = 200

class Console implements App {
  readonly gaps = new KnownGaps()
  readonly session = new PageSession(() => this.invalidate())
  readonly sparklines = new Sparklines(this.session, () => this.changed())
  readonly live = new Live(this.session, {
    onState: () => this.#connectionChanged(),
    onGap: (gap) => {
      this.gaps.take(gap)
      this.changed()
    },
    onMarketTime: (marketMs) => this.#marketTime.take(marketMs, this.session.isReplay),
  })
  route: Route = parseRoute(location.hash)
  client = this.#createClient()
  #view: View
  #isScheduled = false
  #drawnAtMs = 0
  #shownInMenu = ''
  #dataTimer: ReturnType<typeof setTimeout> | undefined
  #isSimulated = false
  #wasLive = false
  /** The ID of an element that gets the focus once it is drawn. */
  #focusNext: string | null = null
  readonly #marketTime = new MarketTime()
  readonly #root: HTMLElement

  constructor(root: HTMLElement) {
    this.#root = root
    this.#view = this.#createView()
  }

  start(): void {
    this.live.start()
    addEventListener('hashchange', () => this.#navigate())
    document.addEventListener('keydown', (event) => this.#keyDown(event))
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.live.askMarketTime()
      this.invalidate()
    })
    onZoneChange(() => this.invalidate())
    setInterval(() => this.#tick(), CLOCK_MS)
    this.invalidate()
  }

  get key(): string | null {
    return keptInTab.get(KEY_ITEM)
  }

  setKey(key: string | null): void {
    keptInTab.set(KEY_ITEM, key)
    this.client = this.#createClient()
    this.invalidate()
  }

  /** Views ask again by themselves, so a call that fails is told at once instead of being tried again. */
  #createClient(): MintlakeClient {
    const { fetch } = this.session
    return createClient({ baseUrl: location.origin, key: this.key ?? undefined, retriesMax: 0, fetch })
  }

  nowMs(): number {
    return this.#marketTime.nowMs()
  }

  #tick(): void {
    // Of a page that nobody looks at, its title is in sight.
    this.#showTitle()
    if (document.hidden) return
    this.live.askMarketTime()
    this.changed()
  }

  invalidate(): void {
    if (this.#isScheduled || document.hidden) return
    this.#isScheduled = true
    requestAnimationFrame(() => {
      this.#isScheduled = false
      this.#drawnAtMs = performance.now()
      clearTimeout(this.#dataTimer)
      this.#dataTimer = undefined
      render(this.#page(), this.#root)
      this.#view.drawn?.()
      this.#moveFocus()
      this.#showPlaceInMenu()
      this.#showTitle()
    })
  }

  #showTitle(): void {
    document.title = `${this.#view.title} · Mintlake`
  }

  changed(): void {
    if (this.#dataTimer !== undefined || document.hidden) return
    const waitMs = this.#drawnAtMs + DATA_EVERY_MS - performance.now()
    this.#dataTimer = setTimeout(() => this.invalidate(), Math.max(0, waitMs))
  }

  #createView(): View {
    const ViewOfRoute = VIEWS[this.route.view]?.View ?? NotFoundView
    return new ViewOfRoute(this)
  }

  #navigate(): void {
    const route = parseRoute(location.hash)
    const isOfView = route.view === this.route.view
    this.route = route
    if (!isOfView || this.#view.update?.(route) !== true) {
      this.#view.stop()
      this.#view = this.#createView()
      this.#focusNext ??= 'main'
      scrollTo(0, 0)
    }
    this.invalidate()
  }

  /** On a phone the menu is wider than the screen. */
  #showPlaceInMenu(): void {
    if (this.route.view === this.#shownInMenu) return
    this.#shownInMenu = this.route.view
    document
      .querySelector('.menu [aria-current]')
      ?.scrollIntoView({ block: 'nearest', inline: 'center', behavior: 'instant' })
  }

  /** Gives the focus to what was asked for as soon as it is there: a new view begins at its top, for Tab and for screen readers. */
  #moveFocus(): void {
    if (this.#focusNext === null) return
    const element = document.getElementById(this.#focusNext)
    if (element === null) return
    this.#focusNext = null
    element.focus({ preventScroll: true })
  }

  /** `/` goes to the search of the market, as on most sites of the kind. */
  #keyDown(event: KeyboardEvent): void {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    const search = document.getElementById('search')
    search?.focus()
    if (search !== null) return
    location.hash = routeHref('market')
    this.#focusNext = 'search'
  }

  /** What the stream tells once, such as gaps, may have been told before it was connected. */
  #connectionChanged(): void {
    const isLive = this.live.state === 'live'
    if (isLive && !this.#wasLive) {
      this.live.askMarketTime()
      void this.#readHealth()
    }
    this.#wasLive = isLive
    this.invalidate()
  }

  async #readHealth(): Promise<void> {
    try {
      const health = await request<HealthAnswer>('/health')
      this.#isSimulated = health.simulated
      this.gaps.replace(health.gaps)
      this.invalidate()
    } catch {
      // The connection's state already says that the server is away.
    }
  }

  #page(): TemplateResult {
    return html`
      <a class="skip" href="#main" @click=${(event: Event) => this.#skip(event)}>To the content</a>
      <header class="top">
        <a class="brand" href=${routeHref('market')}>Mintlake</a>
        <nav class="menu" aria-label="Views">
          ${Object.entries(VIEWS).map(([view, { label, isInMenu }]) =>
            isInMenu
              ? html`<a href=${routeHref(view)} aria-current=${view === this.route.view ? 'page' : nothing}>${label}</a>`
              : nothing,
          )}
          <a href="/docs">API</a>
        </nav>
        <span class="badges">
          ${this.#isSimulated ? html`<span class="badge simulated" title="The market is made up: no token of it is a real asset">SIMULATED</span>` : nothing}
          ${this.#otherDay()} ${this.#feedsAway()}
        </span>
        ${this.#connection()}
        ${zoneButton()}
        <button type="button" class="theme" title="Light or dark" aria-label="Switch between light and dark" @click=${switchTheme}>◐</button>
      </header>
      <main id="main" tabindex="-1" class=${this.live.isAway ? 'away' : ''}>${this.#view.render()}</main>
      ${this.#awayBanner()}`
  }

  #skip(event: Event): void {
    event.preventDefault()
    document.getElementById('main')?.focus()
  }

  /** A replay looks like the market of today, so every view names its day. */
  #otherDay(): TemplateResult | typeof nothing {
    const [marketMs, nowMs] = [this.nowMs(), Date.now()]
    const day = dayInZone(marketMs)
    if (day === dayInZone(nowMs)) return nothing
    return html`<span class="badge other-day" title="The market's time is ${formatTime(marketMs, nowMs)}: ages are counted from it">${day}</span>`
  }

  /** Prices look alive while a feed is away, so every view says it. */
  #feedsAway(): TemplateResult {
    const { open } = this.gaps
    const [gap] = open
    if (gap === undefined) return html`<span class="feeds-away" role="status"></span>`
    const nowMs = this.nowMs()
    const text = open
      .map((each) => `${gapReason(each)} ${gapTimes(each, nowMs)}: events are missing.`)
      .join(' ')
    const label = open.length === 1 ? `${gap.feed ?? 'a feed'} away` : `${open.length} feeds away`
    return html`<span class="feeds-away" role="status"><a class="badge away" href=${routeHref('system')} title=${text}>⚠ ${label}</a></span>`
  }

  /** What is on the page goes grey when nothing renews it any more, and says how old it is. */
  #awayBanner(): TemplateResult | typeof nothing {
    const { isAway, lastMessageMs, retryAtMs, state, refusal } = this.live
    if (!isAway) return nothing
    const there = state === 'warming' ? 'The server is warming up.' : 'The server cannot be reached.'
    const why = state === 'refused' ? refusal : there
    const age = formatAge(lastMessageMs, Date.now())
    return html`<p class="banner floats" role="alert">${why} What you see was true ${age} ago. This page tries again by itself, in ${secondsUntil(retryAtMs)} s.</p>`
  }

  #connection(): TemplateResult {
    const { state, retryAtMs } = this.live
    const again = `, again in ${secondsUntil(retryAtMs)}s`
    // What comes after the first words has no room on a phone.
    const texts = {
      connecting: ['connecting', ''],
      live: ['', 'live'],
      waiting: ['disconnected', again],
      warming: ['warming up', again],
      refused: ['refused', '; waiting'],
    }
    const [text, more] = texts[state]
    return html`<span class="connection ${state}" role="status"><i class="dot" aria-hidden="true"></i><span>${text}<span class="wide-only">${more}</span></span></span>`
  }
}

/** Names the zone of all times of the page. On a phone its distance from UTC has to do. */
function zoneButton(): TemplateResult {
  const nowMs = Date.now()
  const { place, offset } = zoneParts(nowMs)
  const shown =
    place === ''
      ? offset
      : html`<span class="wide-only">${place} (</span>${offset}<span class="wide-only">)</span>`
  return html`<button type="button" class="zone" title="Times of this page: switch between local time and UTC" aria-label="Time zone: ${zoneName(nowMs)}" @click=${switchTimeZone}>${shown}</button>`
}

class NotFoundView implements View {
  readonly title = 'Not found'

  render(): TemplateResult {
    return html`<section><h1 id="view-title">Not found</h1>${emptyState('There is no such page', 'Choose a view from the menu.')}
        <p class="empty"><a href=${routeHref('market')}>To the market</a></p></section>`
  }

  stop(): void {}
}

startTheme()
addEventListener('storage', zoneChanged)
const root = document.getElementById('console')
if (root !== null) {
  root.replaceChildren()
  new Console(root).start()
}
