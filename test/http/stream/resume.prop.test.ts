// Over real HTTP and WebSockets: readers that are cut off anywhere and go on from the last position that they were given
// end with exactly what the market shows, however rows changed, tokens left their tabs, or gave way to others meanwhile.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import type { Tab } from '../../../src/schema/vocabulary.ts'
import { FollowReader } from '../../support/follow-reader.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const RUNS = Number(process.env.MINTLAKE_TEST_RUNS ?? 4)
/** More than one piece of a stream holds, and fewer places than tokens. */
const MINTS = Array.from({ length: 220 }, (_, index) => mintOfSymbol(`token ${index}`))
const TOKENS_MAX = 180
const SENTINEL = mintOfSymbol('sentinel')

let server: TestServer
beforeAll(async () => {
  // Heartbeats so often that a reader never waits long for something to read.
  server = await openTestServer({ 'tokens-max': `${TOKENS_MAX}` }, { follow: { heartbeatMs: 20 } })
})
afterAll(() => server.remove())

type Row = Record<string, unknown> & { mint: string }
/** What a stream says, one thing at a time, whatever carries it. */
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
          // A message is whole or not there, but a client may have come to any row of it.
          entries.push(...rows)
          if (rows.length === 0 || message.event === 'snapshot') entries.push(message)
        }
        return entries.shift()!
      },
      close: () => reader.close(),
    }
  }

/** A client that holds a tab as the stream tells it. */
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

  /** Takes so much of the stream, if it is `patient` beginning with the first position, and is cut off. */
  async take(entries: number, isPatient: boolean): Promise<void> {
    while (isPatient && this.#seq === null) await this.#takeOne()
    for (let taken = 0; taken < entries; taken++) await this.#takeOne()
    this.#connection?.close()
    this.#connection = null
    if (this.#seq !== null) this.cuts++
  }

  /** Goes on until it has seen the last change, and of opening rows all. */
  async finish(name: string): Promise<Row[]> {
    for (let isSeen = false; !isSeen || this.#seq === null; )
      isSeen = (await this.#takeOne()).name === name || isSeen
    this.#connection?.close()
    const rows = [...this.#rows.values()]
    return this.tab === 'live' ? rows.filter((row) => row.is_currently_live) : rows
  }

  async #takeOne(): Promise<Entry> {
    // Who has no position begins anew.
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

it.each([
  ['HTTP', overHttp],
  ['a WebSocket in JSON', overSocket('mintlake.json')],
  ['a WebSocket in msgpack', overSocket('mintlake.msgpack')],
])(
  'over %s a reader that is disconnected anywhere and resumes from its last position misses nothing',
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
        apply([{ type: 'live', mint: SENTINEL, isLive: true }])
        const name = `the end ${changes}`
        apply([{ type: 'token', mint: SENTINEL, name }])
        for (const client of clients) {
          const rows = await client.finish(name)
          expect(byMint(rows)).toEqual(byMint(rowsOf(client.tab)))
          cuts += client.cuts
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
    expect(cuts).toBeGreaterThan(RUNS)
  },
)
