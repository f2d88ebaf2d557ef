// Whether nodes answer the same bytes at the same position.
import { hash } from 'node:crypto'
import { TIMEFRAMES } from '../../../src/schema/bar.ts'
import { KEPT_SORTS, TABS } from '../../../src/schema/vocabulary.ts'
import type { Client } from '../../support/test-server.ts'
import { type Nodes, pause } from './nodes.ts'
import { ANALYSED, TRADED } from './trades.ts'

const CALL_MS_MAX = 5_000
/** Compressed, they would be work for all. */
const PLAIN = { 'Accept-Encoding': 'identity' }
const EQUAL_MS_MAX = 30_000
/** Of a page with a cursor. */
const LIMIT = 50

const LISTS = TABS.flatMap((tab) =>
  // By figures each node ranks by itself, and names its versions so.
  KEPT_SORTS.flatMap((sort) =>
    ['asc', 'desc'].map((order) => `/api/v1/market?tab=${tab}&sort=${sort}&order=${order}`),
  ),
)
/** With cursors, and each filter with some lists. */
const CURSOR_PAGES = LISTS.map(
  (list, at) => `${list}${['', '&search=t', '&max_analyses=0'][at % 3]}&limit=${LIMIT}`,
)
const PAGES = LISTS.flatMap((list, at) => [`${list}&format=ndjson&limit=1000`, CURSOR_PAGES[at]])
const OTHERS = [...TRADED.slice(0, 5), ...ANALYSED.slice(0, 3)].flatMap((mint) => [
  `/api/v1/datapoint?mint=${mint}`,
  ...TIMEFRAMES.map((tf) => `/api/v1/ohlc?mint=${mint}&tf=${tf}&limit=1000`),
])

interface Read {
  status: number
  version: string | null
  etag: string | null
  body: string
}

async function read(node: Client, path: string): Promise<Read | null> {
  const signal = AbortSignal.timeout(CALL_MS_MAX)
  const answer = await fetch(node.url + path, { headers: PLAIN, signal }).catch(() => null)
  const body = await answer?.text().catch(() => null)
  if (!answer || typeof body !== 'string') return null
  const { status, headers } = answer
  return { status, version: headers.get('x-list-version'), etag: headers.get('etag'), body }
}

interface ListPage {
  data: { mint: string }[]
  meta: { total: number; nextCursor: string | null }
}
const pageOf = ({ body }: Read): ListPage => JSON.parse(body) as ListPage
const nextPage = (page: Read): string | null => {
  const { nextCursor } = pageOf(page).meta
  return nextCursor && `/api/v1/market?limit=${LIMIT}&cursor=${nextCursor}`
}

/** Reads pages of all nodes all the time, and compares those with the same ETag, which tells positions and run. */
export class PageSampler {
  readonly faults: string[] = []
  /** Pages that two nodes had with the same ETag; of these, those with a cursor. */
  compared = 0
  comparedCursors = 0
  /** Lists that were read to their end, each page at another node. */
  walked = 0
  readonly #nodes: Nodes
  readonly #everyMs: number
  readonly #seen = new Map<string, { digest: string; from: string; body: string }>()
  #isEnding = false
  /** Counts the nodes that were asked while lists are walked. */
  #at = 0
  readonly #done: Promise<void>

  constructor(nodes: Nodes, everyMs: number) {
    this.#nodes = nodes
    this.#everyMs = everyMs
    this.#done = Promise.all([this.#run(), this.#walkAll()]).then(() => undefined)
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#done
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#isEnding; turn++) {
      const path = PAGES[turn % PAGES.length]
      await Promise.all(this.#nodes.all().map((node) => this.#sample(node, path)))
      await pause(this.#everyMs)
    }
  }

  async #sample(node: Client, path: string): Promise<void> {
    const page = await read(node, path)
    if (page === null || page.status !== 200) return
    const key = `${path} at ${page.etag}`
    const digest = hash('sha1', page.body)
    const other = this.#seen.get(key)
    if (other === undefined) {
      this.#seen.set(key, { digest, from: node.url, body: page.body })
      if (this.#seen.size > 500) this.#seen.delete(this.#seen.keys().next().value ?? '')
    } else if (other.from !== node.url) {
      this.compared++
      if (page.body.includes('"nextCursor":"')) this.comparedCursors++
      if (other.digest !== digest)
        this.faults.push(`${key}: ${difference(other.body, page.body)} (${other.from}, ${node.url})`)
    }
  }

  /** A client that is moved at every page. */
  async #walkAll(): Promise<void> {
    for (let turn = 0; !this.#isEnding; turn++) {
      const path = CURSOR_PAGES[turn % CURSOR_PAGES.length]
      const fault = await this.#walk(path)
      if (fault !== null) this.faults.push(`${path}, each page at another node: ${fault}`)
      await pause(this.#everyMs)
    }
  }

  /** @returns what a list that was read to its end lacks or has twice, or which answer was wrong; null: nothing, or it did not end */
  async #walk(first: string): Promise<string | null> {
    const seen: string[] = []
    for (let path: string | null = first; path !== null; ) {
      const nodes = this.#nodes.all()
      const page = await read(nodes[this.#at++ % nodes.length], path)
      // Nodes are killed and stand still: the list of one that is gone has expired.
      if (page === null || [410, 503].includes(page.status)) return null
      if (page.status !== 200) return `${page.status} ${page.body}`
      const { data, meta } = pageOf(page)
      seen.push(...data.map(({ mint }) => mint))
      path = nextPage(page)
      if (path !== null) continue
      this.walked++
      const found = `${seen.length} rows, ${new Set(seen).size} of them different, of ${meta.total}`
      return seen.length === meta.total && new Set(seen).size === meta.total ? null : found
    }
    return null
  }
}

/** The first lines that differ, shortened around the place. */
function difference(a: string, b: string): string {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  const around = (text: string) => text.slice(Math.max(0, at - 80), at + 60)
  return `"${around(a)}" and "${around(b)}"`
}

/** What differs between two answers to a path; null: nothing. */
function differs(path: string, ours: Read | null, theirs: Read | null): string | null {
  if (ours?.status !== 200 || theirs?.status !== 200) return `${path} was not answered`
  if (ours.version !== theirs.version) return `${path}: positions ${ours.version} and ${theirs.version}`
  if (ours.body !== theirs.body) return `${path}: ${difference(ours.body, theirs.body)}`
  // Those of other answers tell their time besides.
  const isPage = ours.version !== null
  if (isPage && ours.etag !== theirs.etag) return `${path}: ETags ${ours.etag} and ${theirs.etag}`
  return null
}

async function firstDifference(a: Client, b: Client): Promise<string | null> {
  for (const first of [...PAGES, ...OTHERS]) {
    const [ours, theirs] = await Promise.all([read(a, first), read(b, first)])
    const found = differs(first, ours, theirs)
    if (found !== null) return found
    const next = ours !== null && CURSOR_PAGES.includes(first) ? nextPage(ours) : null
    if (next === null) continue
    const foundNext = differs(next, ...(await Promise.all([read(a, next), read(b, next)])))
    if (foundNext !== null) return foundNext
  }
  return null
}

/**
 * Waits until a node answers as the other one does: all pages, cursors, DataPoints and bars. Market time may pass between two reads, so it tries
 * again. Rejects with the first difference where that does not help.
 */
export async function untilEqual(a: Client, b: Client): Promise<void> {
  const untilMs = performance.now() + EQUAL_MS_MAX
  for (;;) {
    const found = await firstDifference(a, b)
    if (found === null) return
    if (performance.now() > untilMs) throw new Error(`${b.url} differs from ${a.url}: ${found}`)
    await pause(50)
  }
}

/** The rows of the whole market, by mint. */
export async function rowsOf(node: Client): Promise<Map<string, string>> {
  const page = await read(node, '/api/v1/market?format=ndjson&limit=1000')
  const lines = page?.body.trimEnd().split('\n') ?? []
  return new Map(
    lines.map((line) => {
      const { seq: _, ...row } = JSON.parse(line) as { seq?: number; mint: string }
      return [row.mint, JSON.stringify(row)]
    }),
  )
}
