// Over real HTTP and WebSockets: readers that are disconnected anywhere and resume from the last position that they received
// end with exactly the rows of the market, even if tokens changed, left their tabs or were evicted meanwhile.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import type { Tab } from '../../../src/schema/vocabulary.ts'
import { fewAndMany } from '../../support/cases.ts'
import { FollowReader } from '../../support/follow-reader.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

/** More rows than one message of a stream has, and more tokens than the market holds. */
const MINTS = Array.from({ length: 220 }, (_, index) => mintOfSymbol(`token ${index}`))
const TOKENS_MAX = 180
const SENTINEL = mintOfSymbol('sentinel')

let server: TestServer
beforeAll(async () => {
  // Frequent heartbeats, so that a reader never waits long.
  server = await openTestServer(
    { 'tokens-max': `${TOKENS_MAX}` },
    { tuning: { follow: { heartbeatMs: 20 } } },
  )
})
afterAll(() => server.remove())

type Row = Record<string, unknown> & { mint: string }
/** One row or control message of a stream. */
interface Entry {
  event?: string
  mint?: string
  name?: string
  seq?: number
}
interface Connection {
  next(): Promise<Entry>
  close(): void
}
type Connect = (tab: Tab, since: number | null) => Connection

const overHttp: Connect = (tab, since) => {
  const resume = since === null ? '' : `&since=${since}`
  const reader = new FollowReader(
    `${server.url}/api/v1/market?format=ndjson&follow=1&tab=${tab}&limit=500${resume}`,
  )
  return { next: async () => (await reader.next())!, close: () => reader.close() }
}

const overSocket =
  (protocol: string): Connect =>
  (tab, since) => {
    const reader = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`, protocol)
    void reader.send({ op: 'subscribe', topic: 'market', tab, limit: 500, ...(since !== null && { since }) })
    const entries: Entry[] = []
    return {
      async next() {
        while (entries.length === 0) {
          const { rows = [], ...message } = await reader.next()
          // A message arrives as a whole, but a client can have processed only some of its rows.
          entries.push(...rows)
          if (rows.length === 0 || message.event === 'snapshot') entries.push(message)
        }
        return entries.shift()!
      },
      close: () => reader.close(),
    }
  }

/** A client that keeps the rows of a tab up to date from a stream. */
class Client {
  readonly tab: Tab
  readonly #connect: Connect
  #connection: Connection | null = null
  #seq: number | null = null
  #rows = new Map<string, Row>()
  cuts = 0

  constructor(tab: Tab, connect: Connect) {
    this.tab = tab
    this.#connect = connect
  }

  /** Reads `entries` entries and disconnects. A patient client first reads until it has a position. */
  async take(entries: number, isPatient: boolean): Promise<void> {
    while (isPatient && this.#seq === null) await this.#takeOne()
    for (let taken = 0; taken < entries; taken++) await this.#takeOne()
    this.#connection?.close()
    this.#connection = null
    if (this.#seq !== null) this.cuts++
  }

  /** Reads until it has the last change and all rows of a snapshot. */
  async finish(name: string): Promise<Row[]> {
    for (let isSeen = false; !isSeen || this.#seq === null; )
      isSeen = (await this.#takeOne()).name === name || isSeen
    this.#connection?.close()
    const rows = [...this.#rows.values()]
    return this.tab === 'live' ? rows.filter((row) => row.is_currently_live) : rows
  }

  async #takeOne(): Promise<Entry> {
    // Without a position the client starts over.
    if (this.#connection === null && this.#seq === null) this.#rows.clear()
    this.#connection ??= this.#connect(this.tab, this.#seq)
    const entry = await this.#connection.next()
    const { seq } = entry
    if (entry.event === 'resync') {
      this.#rows.clear()
      this.#seq = null
    }
    if (seq !== undefined) {
      expect(seq, 'positions ascend').toBeGreaterThanOrEqual(this.#seq ?? 0)
      this.#seq = seq
    }
    if (entry.event === 'left') this.#rows.delete(entry.mint!)
    if (entry.event === undefined) this.#rows.set(entry.mint!, entry as Row)
    return entry
  }
}

const mint = fc.constantFrom(...MINTS)
const event = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant('token'), mint }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('live'), mint, isLive: fc.boolean() }) },
)
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ events: fc.array(event, { minLength: 1, maxLength: 300, size: 'max' }) }),
  },
  { weight: 2, arbitrary: fc.record({ client: fc.nat(1), entries: fc.nat(40), isPatient: fc.boolean() }) },
)

let [ts, changes] = [1_700_000_000_000, 0]
function apply(events: readonly object[]): void {
  for (const one of events) {
    const texts = { name: `name ${++changes}`, symbol: 'S' }
    server.market.apply({ ...texts, ...one, ts: ++ts } as MarketEvent, ts)
  }
}

const rowsOf = (tab: Tab): Row[] =>
  server.market
    .page({ tab, sort: 'hot', order: 'desc', offset: 0, limit: TOKENS_MAX })
    .lines.map((line) => JSON.parse(line.toString()))

const withoutSeq = ({ seq: _, ...row }: Row) => row
const byMint = (rows: readonly Row[]) => rows.map(withoutSeq).toSorted((a, b) => (a.mint < b.mint ? -1 : 1))

for (const { runs, tags } of fewAndMany(1, 3))
  it.each([
    ['HTTP', overHttp],
    ['a WebSocket in JSON', overSocket('mintlake.json')],
    ['a WebSocket in msgpack', overSocket('mintlake.msgpack')],
  ])(
    `over %s a reader that is disconnected anywhere and resumes from its last position misses nothing: ${runs} cases`,
    { tags },
    async (_, connect) => {
      let cuts = 0
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20, size: 'max' }), async (steps) => {
          const clients = (['all', 'live'] as const).map((tab) => new Client(tab, connect))
          apply(MINTS.map((mint) => ({ type: 'live', mint, isLive: true })))
          for (const one of steps) {
            if ('events' in one) apply(one.events)
            else await clients[one.client].take(one.entries, one.isPatient)
          }
          // Each is cut at least once.
          for (const client of clients) await client.take(1, true)
          apply([{ type: 'live', mint: SENTINEL, isLive: true }])
          const name = `the end ${changes}`
          apply([{ type: 'token', mint: SENTINEL, name }])
          for (const client of clients) {
            const rows = await client.finish(name)
            expect(byMint(rows)).toEqual(byMint(rowsOf(client.tab)))
            cuts += client.cuts
          }
        }),
        { numRuns: runs, endOnFailure: true },
      )
      expect(cuts).toBeGreaterThan(runs)
    },
  )
