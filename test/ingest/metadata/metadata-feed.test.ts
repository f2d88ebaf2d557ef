// The feed of documents: four at a time, a budget by host, and nothing of tokens that are not held.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { METADATA_ATTEMPTS_MAX, METADATA_CONCURRENCY } from '../../../src/ingest/metadata/limits.ts'
import { MetadataFeed, type MetadataOptions } from '../../../src/ingest/metadata/metadata-feed.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Market } from '../../../src/market/market.ts'
import type { EventSink } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { hasOpenssl } from '../../cluster/access/certificates.ts'
import { DocumentServer } from '../../support/upstreams/document-server.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const soon = { interval: 5, timeout: 10_000 }
const mint = (index: number) => mintOfSymbol(`document ${index}`)

describe.skipIf(!hasOpenssl)('documents of tokens (skipped without openssl)', () => {
  let server: DocumentServer
  let sink: MemorySink
  let feed: MetadataFeed
  beforeEach(async () => {
    server = await DocumentServer.start()
    sink = new MemorySink()
  })
  afterEach(async () => {
    await feed.stop()
    await server.close()
  })
  function start(more: Partial<MetadataOptions> = {}, to: EventSink = sink): MetadataFeed {
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const options = { resolve, isPublic: () => true, ca: server.ca, heldSince: () => 0, msMax: 5_000 }
    feed = new MetadataFeed(
      { ...options, gateway: server.url(''), ...more },
      to,
      systemClock,
      new MemoryLog(),
    )
    return feed
  }

  it('fill what they say, once for each token', async () => {
    server.serve('/1', { description: 'One', website: 'https://one.example' })
    const watched = start().watch(sink)
    const token = { type: 'token', mint: mint(1), ts: Date.now(), name: 'n', symbol: 's' } as const
    watched.apply({ ...token, uri: server.url('/1') }, Date.now())
    const patch = {
      type: 'patch',
      mint: mint(1),
      fields: { description: 'One', website: 'https://one.example/' },
    }
    await expect.poll(() => sink.data, soon).toContainEqual(expect.objectContaining(patch))
    feed.want(mint(1), server.url('/1'))
    expect(server.requests).toHaveLength(1)
    expect(feed.describe()).toMatchObject({ fetched: 1, faults: {} })
  })

  it('are fetched four at a time', async () => {
    const waiting: (() => void)[] = []
    for (let index = 0; index < 10; index++)
      server.paths.set(`/${index}`, (_, response) => waiting.push(() => response.end('{"description":"x"}')))
    start()
    for (let index = 0; index < 10; index++) feed.want(mint(index), server.url(`/${index}`))
    await expect.poll(() => waiting.length, soon).toBe(METADATA_CONCURRENCY)
    expect(feed.describe()).toMatchObject({ fetching: 4, waiting: 6 })
    for (let done = 0; done < 10; done++) {
      await expect.poll(() => waiting.length, soon).toBeGreaterThan(done)
      expect(waiting.length).toBeLessThanOrEqual(done + METADATA_CONCURRENCY)
      waiting[done]()
    }
    await expect.poll(() => feed.describe().fetched, soon).toBe(10)
  })

  it('are those of the latest address, which may come while another is being fetched', async () => {
    const old: (() => void)[] = []
    server.paths.set('/old', (_, response) => old.push(() => response.end('{"description":"old"}')))
    server.serve('/new', { description: 'new' })
    start()
    feed.want(mint(1), server.url('/old'))
    await expect.poll(() => old.length, soon).toBe(1)
    feed.want(mint(1), server.url('/new'))
    old[0]()
    await expect.poll(() => feed.describe().fetched, soon).toBe(1)
    expect(sink.data).toMatchObject([{ type: 'patch', fields: { description: 'new' } }])
    // And back, while the second is being fetched.
    server.paths.set('/third', (_, response) => old.push(() => response.end('{"description":"third"}')))
    feed.want(mint(1), server.url('/third'))
    await expect.poll(() => old.length, soon).toBe(2)
    feed.want(mint(1), server.url('/new'))
    old[1]()
    await expect.poll(() => feed.describe().fetched, soon).toBe(2)
    expect(feed.describe()).toMatchObject({ fetching: 0, waiting: 0, faults: {} })
    expect(sink.data.map((event) => event.type === 'patch' && event.fields.description)).toEqual([
      'new',
      'new',
    ])
  })

  it('of one host are fetched within its budget, those of others go on', async () => {
    start({ hostPerMinute: 3 })
    for (let index = 0; index < 6; index++) {
      server.serve(`/${index}`, { description: `${index}` })
      feed.want(mint(index), server.url(`/${index}`, 'many.example'))
    }
    server.serve('/other', { description: 'other' })
    feed.want(mint(99), server.url('/other', 'other.example'))
    await expect.poll(() => feed.describe().fetched, soon).toBe(4)
    await expect.poll(() => feed.describe().faults, soon).toEqual({ host_budget: 3 })
  })

  it('of tokens that are not held, or that say nothing, change nothing', async () => {
    server.serve('/1', { description: 'One' })
    server.serve('/2', ['none'])
    start({ heldSince: (held) => (held === mint(1) ? null : 0) })
    feed.want(mint(1), server.url('/1'))
    feed.want(mint(2), server.url('/2'))
    feed.want(mint(3), 'http://plain.example/')
    await expect.poll(() => feed.describe().fetched, soon).toBe(1)
    await expect.poll(() => feed.describe().faults, soon).toEqual({ malformed: 1, address_unknown: 1 })
    expect(sink.data).toEqual([])
  })

  it('that could not be had are fetched again by themselves, some times', async () => {
    let isThere = false
    server.paths.set('/late', (_, response) => {
      if (isThere) response.end('{"description":"late"}')
      else response.writeHead(504).end()
      isThere = true
    })
    start({ retryMs: 1 })
    feed.want(mint(1), server.url('/late'))
    feed.want(mint(2), server.url('/never'))
    feed.want(mint(3), 'http://plain.example/')
    await expect
      .poll(() => feed.describe(), soon)
      .toMatchObject({
        ...{ fetched: 1, fetching: 0, retrying: 0 },
        faults: { status: 1 + METADATA_ATTEMPTS_MAX, address_unknown: 1 },
      })
    expect(sink.data).toMatchObject([{ mint: mint(1), fields: { description: 'late' } }])
    const wanted = () => {
      feed.want(mint(2), server.url('/never'))
      return server.requests.filter(({ path }) => path === '/never').length
    }
    await expect.poll(wanted, soon).toBe(METADATA_ATTEMPTS_MAX + 1)
  })

  it('that wait to be fetched again are not where they have another address, are not held, or when the feed stops', async () => {
    let held: number | null = 1
    start({ retryMs: 500, heldSince: (token) => (token === mint(2) ? held : 1) })
    server.serve('/new', { description: 'new' })
    feed.want(mint(1), server.url('/old'))
    feed.want(mint(2), server.url('/gone'))
    await expect.poll(() => feed.describe(), soon).toMatchObject({ faults: { status: 2 }, fetching: 0 })
    held = null
    feed.want(mint(1), server.url('/new'))
    await expect.poll(() => feed.describe(), soon).toMatchObject({ fetched: 1, fetching: 0, retrying: 0 })
    feed.want(mint(3), server.url('/other'))
    await expect.poll(() => feed.describe().retrying, soon).toBe(1)
    await feed.stop()
    expect(feed.describe().retrying).toBe(0)
    expect(server.requests.map(({ path }) => path).sort()).toEqual(['/gone', '/new', '/old', '/other'])
  })

  it('that could not be had are not fetched again where their token gave way meanwhile', async () => {
    let held: number | null = 1
    server.paths.set('/gone', (_, response) => {
      held = null
      response.writeHead(504).end()
    })
    start({ heldSince: () => held })
    feed.want(mint(1), server.url('/gone'))
    await expect.poll(() => feed.describe(), soon).toMatchObject({ faults: { status: 1 }, fetching: 0 })
    expect(feed.describe().retrying).toBe(0)
  })

  it('are fetched again for a token that gave way to others and came back', async () => {
    server.serve('/1', { description: 'One' })
    const market = new Market({ tokensMax: 2 })
    start({ heldSince: (held) => market.heldSince(held) }, market)
    let ts = Date.now()
    const launch = (index: number) => {
      const token = { type: 'token', mint: mint(index), ts: ++ts, name: 'n', symbol: 's' } as const
      const uri = index === 1 ? server.url('/1') : undefined
      expect(feed.watch(market).apply({ ...token, uri }, ts)).toBeNull()
    }
    const description = () => market.datapoint(mint(1))?.description
    launch(1)
    await expect.poll(description, soon).toBe('One')
    for (const other of [2, 3]) launch(other)
    expect(market.has(mint(1))).toBe(false)
    launch(1)
    await expect.poll(description, soon).toBe('One')
    launch(1)
    expect(server.requests).toHaveLength(2)
  })
})
