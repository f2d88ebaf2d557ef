// A list of analyses that stays current, whoever shows it: what is new, labels once they are shown, what the price did afterwards.
// Of the rows that are shown, those that may have changed are read again, and no others but what lies between them.
import { html, nothing, type TemplateResult } from 'lit-html'
import { type AnalysisPage, MintlakeError } from '../../client/index.ts'
import { HORIZON_NAMES, HORIZONS } from '../../schema/vocabulary.ts'
import { errorText, Fetched } from '../api.ts'
import type { ShownAnalysis } from './analyses-table.ts'

/** Rows of a page, of one that is read further down, and of all together: the oldest beyond are not shown. */
const PAGE_ROWS = 50
const FURTHER_ROWS_MAX = 200
const ROWS_MAX = 2_000
/** The list is read again so often, and sooner after a new submission: labels and outcomes come later than it. */
const EVERY_MS = 30_000
const AFTER_NEW_MS = 5_000
/** With these two a busy list takes fewer reads than a page without a key has. */
const APART_MS = 10_000
const PAGES_READ_MAX = 3
/** What is due is read so often in vain: some never comes, such as a return of a token without a price. */
const VAIN_READS_MAX = 10
/** Where a filter takes little, so many pages are read for one. */
const PAGES_SEARCHED_MAX = 5

interface PageQuery {
  /** Undefined: from the newest on. */
  cursor: string | undefined
  limit: number
}

interface Entry {
  analysis: ShownAnalysis
  /** When it was read; -Infinity: the stream told of it, and it was not read yet. */
  readAtMs: number
  /** How many reads had begun when it was told or read last. */
  readsBegun: number
  /** How often it was read without what was due. */
  vainReads: number
  /** Where the rows below it begin, if a page ended with it. */
  cursorBelow?: string | undefined
}

export class AnalysisList {
  /** How the list was read last. */
  readonly latest: Fetched<AnalysisPage>
  readonly #readPage: (query: PageQuery) => Promise<AnalysisPage>
  readonly #nowMs: () => number
  readonly #onChange: () => void
  readonly #entries = new Map<string, Entry>()
  /** Where older ones begin; undefined before the first page, null: there are none. */
  #older: string | null | undefined
  #isLoadingOlder = false
  /** Why older ones could not be read. */
  #olderError: string | null = null
  #readsBegun = 0
  /** Whether nothing is known any more of the rows below the newest page. */
  #beginsAnew = false
  #readSoon: ReturnType<typeof setTimeout> | undefined
  /** When it was last begun to be read, by the browser's clock. */
  #begunAtMs = 0

  /** @param nowMs the server's time */
  constructor(
    readPage: (query: PageQuery) => Promise<AnalysisPage>,
    nowMs: () => number,
    onChange: () => void,
  ) {
    this.#readPage = readPage
    this.#nowMs = nowMs
    this.#onChange = onChange
    // Before that of `latest`: what both ask for is read once.
    document.addEventListener('visibilitychange', this.#comesBack)
    this.latest = new Fetched(() => this.#refresh(), onChange, EVERY_MS)
  }

  stop(): void {
    this.latest.stop()
    clearTimeout(this.#readSoon)
    document.removeEventListener('visibilitychange', this.#comesBack)
  }

  /** Whether anything is known: no rows are an answer too. */
  get isRead(): boolean {
    return this.#older !== undefined
  }

  get hasOlder(): boolean {
    return this.#older != null && !this.isFull
  }

  /** Whether it holds as many rows as are shown. */
  get isFull(): boolean {
    return this.#entries.size >= ROWS_MAX
  }

  /** Newest first. */
  get rows(): ShownAnalysis[] {
    return this.#newestFirst().map(({ analysis }) => analysis)
  }

  /** The stream told of new ones: those of them that belong here. The list has more of them, and may have others. */
  told(analyses: readonly ShownAnalysis[]): void {
    const entry = { readAtMs: -Infinity, readsBegun: this.#readsBegun, vainReads: 0 }
    for (const analysis of analyses)
      if (!this.#entries.has(analysis.analysisId))
        this.#entries.set(analysis.analysisId, { analysis, ...entry })
    this.#forgetOldest()
    // Whoever comes back to the page has it read then.
    if (!document.hidden) this.#refreshIn(AFTER_NEW_MS)
  }

  /** The stream began anew, perhaps of another server: the list does too, from its newest page on. */
  beginAnew(): void {
    this.#beginsAnew = true
    this.#refreshIn(0)
  }

  readonly #comesBack = (): void => {
    if (!document.hidden) this.#refreshIn(0)
  }

  /** Reads it after so long, or later where it was just read. */
  #refreshIn(leastMs: number): void {
    const waitMs = this.#begunAtMs + APART_MS - Date.now()
    this.#readSoon ??= setTimeout(
      () => {
        this.#readSoon = undefined
        void this.latest.refresh()
      },
      Math.max(leastMs, waitMs),
    )
  }

  olderButton(): TemplateResult | typeof nothing {
    if (!this.hasOlder) return nothing
    const error = this.#olderError
    return html`<p class="below actions"><button type="button" ?disabled=${this.#isLoadingOlder} @click=${() => void this.#loadOlder()}>Older</button>
      ${error === null ? nothing : html`<span class="note" role="alert">${error}</span>`}</p>`
  }

  #newestFirst(): Entry[] {
    return [...this.#entries.values()].toSorted((a, b) => newerFirst(a.analysis, b.analysis))
  }

  async #refresh(): Promise<AnalysisPage> {
    const sinceMs = this.#nowMs()
    this.#begunAtMs = Date.now()
    const known = this.#newestFirst().find(({ readAtMs }) => readAtMs !== -Infinity)?.analysis
    const newest = await this.#read({ cursor: undefined, limit: PAGE_ROWS })
    if (this.#older === undefined) this.#older = newest.meta.nextCursor
    if (this.#beginsAnew) {
      this.#beginsAnew = false
      this.#olderError = null
      this.#forgetBelow(newest)
      return newest
    }
    /** The last one of those without a row missing between them. */
    let joined = newest
    try {
      for (let pages = 1; pages < PAGES_READ_MAX; pages++) {
        const gap = gapBelow(joined, known)
        if (gap !== null) joined = await this.#read(gap)
        else if (!(await this.#readDue(sinceMs))) break
      }
    } finally {
      // Also where a read failed: the next one begins at what is known by then, and would leave the gap.
      if (gapBelow(joined, known) !== null) this.#forgetBelow(joined)
    }
    return newest
  }

  /** Reads the rows that may have changed since they were read, from the one that was read longest ago on. @returns whether there are any */
  async #readDue(sinceMs: number): Promise<boolean> {
    const entries = this.#newestFirst()
    const isDue = ({ analysis, readAtMs, vainReads }: Entry) =>
      readAtMs !== -Infinity &&
      readAtMs < sinceMs &&
      vainReads < VAIN_READS_MAX &&
      changesDue(analysis, sinceMs) > 0
    const [due] = entries.filter(isDue).toSorted((a, b) => a.readAtMs - b.readAtMs)
    if (due === undefined) return false
    // A page ended with the row above, or somewhere above it.
    const above = entries
      .slice(0, entries.indexOf(due))
      .findLastIndex((entry) => entry.cursorBelow !== undefined)
    const limit = entries.slice(above + 1, above + 1 + FURTHER_ROWS_MAX).findLastIndex(isDue) + 1
    await this.#read({ cursor: entries[above]?.cursorBelow, limit: Math.max(1, limit) })
    // Also where the server has it no longer: then it is not asked for without an end.
    due.readAtMs = sinceMs
    due.vainReads++
    return true
  }

  async #read(query: PageQuery): Promise<AnalysisPage> {
    const readAtMs = this.#nowMs()
    const readsBegun = ++this.#readsBegun
    const page = await this.#readPage(query)
    this.#forgetMissing(page, query.cursor === undefined, readsBegun)
    for (const analysis of page.data) {
      const before = this.#entries.get(analysis.analysisId)
      const due = changesDue(analysis, readAtMs)
      const isVain = before !== undefined && due > 0 && due === changesDue(before.analysis, readAtMs)
      const vainReads = isVain ? before.vainReads + 1 : 0
      this.#entries.set(analysis.analysisId, {
        analysis,
        readAtMs,
        readsBegun,
        vainReads,
        cursorBelow: before?.cursorBelow,
      })
    }
    const last = this.#entries.get(page.data.at(-1)?.analysisId ?? '')
    if (last !== undefined) last.cursorBelow = page.meta.nextCursor ?? undefined
    this.#forgetOldest()
    if (page.meta.nextCursor === null) this.#older = null
    return page
  }

  /** What was known before a page was asked for, and is not in it where it would stand, the server has no longer. */
  #forgetMissing({ data, meta }: AnalysisPage, isNewest: boolean, readsBegun: number): void {
    const [first, last] = [data[0], data.at(-1)]
    for (const [id, entry] of this.#entries) {
      const isBelowTop = isNewest || (first !== undefined && newerFirst(first, entry.analysis) < 0)
      const isAboveEnd =
        meta.nextCursor === null || (last !== undefined && newerFirst(entry.analysis, last) < 0)
      if (isBelowTop && isAboveEnd && entry.readsBegun < readsBegun) this.#entries.delete(id)
    }
  }

  #forgetOldest(): void {
    if (this.#entries.size <= ROWS_MAX) return
    for (const { analysis } of this.#newestFirst().slice(ROWS_MAX)) this.#entries.delete(analysis.analysisId)
  }

  /** So much is new that it was not read down to what was known: the list ends here, and the rest comes with older ones. */
  #forgetBelow({ data, meta }: AnalysisPage): void {
    const last = data.at(-1)
    if (last === undefined) return
    for (const { analysis } of this.#newestFirst())
      if (newerFirst(last, analysis) < 0) this.#entries.delete(analysis.analysisId)
    this.#older = meta.nextCursor
  }

  async #loadOlder(): Promise<void> {
    this.#isLoadingOlder = true
    this.#onChange()
    try {
      for (let pages = 0, taken = 0; pages < PAGES_SEARCHED_MAX && taken === 0; pages++) {
        const cursor = this.#older
        if (cursor == null) break
        const { data, meta } = await this.#read({ cursor, limit: PAGE_ROWS })
        taken = data.length
        // Unless the list has meanwhile ended elsewhere.
        if (this.#older === cursor) this.#older = meta.nextCursor
      }
      this.#olderError = null
    } catch (error) {
      this.#olderError = errorText(error)
      // Of this place the server knows no longer, as after a restart: the list begins anew.
      if (error instanceof MintlakeError && error.status === 410) this.beginAnew()
    } finally {
      this.#isLoadingOlder = false
      this.#onChange()
    }
  }
}

/** The order of the server's lists. */
const newerFirst = (a: ShownAnalysis, b: ShownAnalysis): number =>
  b.createdAt - a.createdAt || (a.analysisId === b.analysisId ? 0 : a.analysisId > b.analysisId ? -1 : 1)

/** The rows below a page, where it does not reach down to what was known before. */
function gapBelow({ data, meta }: AnalysisPage, known: ShownAnalysis | undefined): PageQuery | null {
  const last = data.at(-1)
  const isReached = known === undefined || (last !== undefined && newerFirst(known, last) <= 0)
  if (isReached || meta.nextCursor === null) return null
  return { cursor: meta.nextCursor, limit: FURTHER_ROWS_MAX }
}

/** How much of an analysis is not known although its time has come. Labels are withheld by the clock on the wall, which in a replay is later. */
function changesDue(
  { createdAt, outcome, labelsAvailableAt, outcomes }: ShownAnalysis,
  marketMs: number,
): number {
  const isLabelDue = labelsAvailableAt != null && labelsAvailableAt <= Math.max(marketMs, Date.now())
  const returns =
    outcome === 'rejected' || outcomes === undefined
      ? []
      : HORIZON_NAMES.filter((name) => outcomes[`fwd_ret_${name}`] === null)
  const returnsDue = returns.filter((name) => createdAt + HORIZONS[name] <= marketMs)
  return returnsDue.length + (isLabelDue ? 1 : 0)
}
