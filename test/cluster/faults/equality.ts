// Whether nodes answer the same bytes at the same position.
import { hash } from 'node:crypto'
import { TIMEFRAMES } from '../../../src/schema/bar.ts'
import { SORTS, TABS } from '../../../src/schema/vocabulary.ts'
import type { Client } from '../../support/test-server.ts'
import { type Nodes, pause } from './nodes.ts'
import { ANALYSED, TRADED } from './trades.ts'

const CALL_MS_MAX = 5_000
const EQUAL_MS_MAX = 30_000
const SAMPLE_EVERY_MS = 15

const PAGES = TABS.flatMap((tab) =>
  SORTS.flatMap((sort) =>
    ['asc', 'desc'].map(
      (order) => `/api/v1/market?format=ndjson&tab=${tab}&sort=${sort}&order=${order}&limit=1000`,
    ),
  ),
)
const OTHERS = [...TRADED.slice(0, 5), ...ANALYSED.slice(0, 3)].flatMap((mint) => [
  `/api/v1/datapoint?mint=${mint}`,
  ...TIMEFRAMES.map((tf) => `/api/v1/ohlc?mint=${mint}&tf=${tf}&limit=1000`),
])

interface Read {
  version: string | null
  body: string
}

async function read(node: Client, path: string): Promise<Read | null> {
  const answer = await fetch(node.url + path, { signal: AbortSignal.timeout(CALL_MS_MAX) }).catch(() => null)
  const body = await answer?.text().catch(() => null)
  if (!answer?.ok || typeof body !== 'string') return null
  return { version: answer.headers.get('x-list-version'), body }
}

/** Reads pages of all nodes all the time, and compares those of the same position. */
export class PageSampler {
  readonly faults: string[] = []
  /** Pages that two nodes had at the same position. */
  compared = 0
  readonly #nodes: Nodes
  readonly #seen = new Map<string, { digest: string; from: string; body: string }>()
  #isEnding = false
  readonly #done: Promise<void>

  constructor(nodes: Nodes) {
    this.#nodes = nodes
    this.#done = this.#run()
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#done
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#isEnding; turn++) {
      const path = PAGES[turn % PAGES.length]
      await Promise.all(this.#nodes.all().map((node) => this.#sample(node, path)))
      await pause(SAMPLE_EVERY_MS)
    }
  }

  async #sample(node: Client, path: string): Promise<void> {
    const page = await read(node, path)
    if (page === null) return
    const key = `${path} at ${page.version}`
    const digest = hash('sha1', page.body)
    const other = this.#seen.get(key)
    if (other === undefined) {
      this.#seen.set(key, { digest, from: node.url, body: page.body })
      if (this.#seen.size > 500) this.#seen.delete(this.#seen.keys().next().value ?? '')
    } else if (other.from !== node.url) {
      this.compared++
      if (other.digest !== digest)
        this.faults.push(`${key}: ${difference(other.body, page.body)} (${other.from}, ${node.url})`)
    }
  }
}

/** The first lines that differ, shortened around the place. */
function difference(a: string, b: string): string {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  const around = (text: string) => text.slice(Math.max(0, at - 80), at + 60)
  return `"${around(a)}" and "${around(b)}"`
}

async function firstDifference(a: Client, b: Client): Promise<string | null> {
  for (const path of [...PAGES, ...OTHERS]) {
    const [ours, theirs] = await Promise.all([read(a, path), read(b, path)])
    if (ours === null || theirs === null) return `${path} was not answered`
    if (ours.version !== theirs.version) return `${path}: positions ${ours.version} and ${theirs.version}`
    if (ours.body !== theirs.body) return `${path}: ${difference(ours.body, theirs.body)}`
  }
  return null
}

/**
 * Waits until a node answers as the other one does: all pages, DataPoints and bars. Market time may pass between two reads, so it tries
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
