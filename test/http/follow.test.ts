// Follow streams over real HTTP: rows first, then changes; control lines; resuming; readers that do not read.
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openHouse, type TestHouse } from '../support/house.ts'
import { newMint } from '../support/submission.ts'

let house: TestHouse
beforeEach(async () => {
  house = await openHouse()
})
afterEach(() => house.remove())

type Line = Record<string, unknown> & { event?: string; mint?: string; seq?: number }

/** A stream read line by line. */
class Stream {
  #abort = new AbortController()
  #lines: AsyncGenerator<Line>

  constructor(path: string) {
    this.#lines = this.#read(path)
  }

  async *#read(path: string): AsyncGenerator<Line> {
    const response = await fetch(house.url + path, { signal: this.#abort.signal })
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = parts.pop()!
      for (const part of parts) yield JSON.parse(part)
    }
  }

  /** The next line; null at the end. */
  async next(): Promise<Line | null> {
    const { value, done } = await this.#lines.next()
    return done ? null : value
  }

  async until(enough: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const line = await this.next()
      if (line === null) throw new Error('the stream ended')
      if (enough(line)) return line
    }
  }

  close(): void {
    this.#abort.abort()
  }
}

const token = (mint: string, name = 'Name') => ({ type: 'token', mint, ts: Date.now(), name, symbol: 'S' })
const path = (more = '') => `/api/v1/market?format=ndjson&follow=1${more}`

describe('a follow stream', () => {
  it('gives the rows first, then each changed row with its number', async () => {
    const [a, b] = [newMint(), newMint()]
    await house.client.push(token(a), token(b))
    const stream = new Stream(path())
    const opening = [await stream.next(), await stream.next()]
    expect(opening.map((line) => line?.mint).toSorted()).toEqual([a, b].toSorted())
    expect(opening[0]).not.toHaveProperty('seq')
    const heartbeat = (await stream.next())!
    expect(heartbeat).toMatchObject({ event: 'heartbeat', seq: house.market.seq })
    await house.client.push(token(a, 'New name'))
    const changed = (await stream.next())!
    expect(changed).toMatchObject({ mint: a, name: 'New name', seq: house.market.seq })
    const { seq, ...row } = changed
    expect(row).toEqual(house.market.item(a))
    stream.close()
  })

  it('of a tab gives its rows alone, and one last time a row that left it', async () => {
    const [a, b] = [newMint(), newMint()]
    const stream = new Stream(path('&tab=live'))
    expect(await stream.next()).toMatchObject({ event: 'heartbeat' })
    await house.client.push(token(b), token(a), { type: 'live', mint: a, ts: Date.now(), isLive: true })
    expect(await stream.next()).toMatchObject({ mint: a, is_currently_live: true })
    await house.client.push({ type: 'live', mint: a, ts: Date.now(), isLive: false })
    expect(await stream.next()).toMatchObject({ mint: a, is_currently_live: false })
    await house.client.push(token(a, 'not followed'), { type: 'live', mint: b, ts: Date.now(), isLive: true })
    expect(await stream.next()).toMatchObject({ mint: b })
    stream.close()
  })

  it('resumes from a number, and resyncs from one that the tape does not know', async () => {
    const [a, b] = [newMint(), newMint()]
    await house.client.push(token(a))
    const since = house.market.seq
    await house.client.push(token(b), token(b, 'twice'))
    const resumed = new Stream(path(`&since=${since}`))
    expect(await resumed.next()).toMatchObject({ event: 'heartbeat', seq: since })
    expect(await resumed.next()).toMatchObject({ mint: b, name: 'twice', seq: house.market.seq })
    resumed.close()
    const lost = new Stream(path('&since=999999999'))
    expect(await lost.next()).toMatchObject({ event: 'resync', seq: house.market.seq })
    expect([(await lost.next())?.mint, (await lost.next())?.mint].toSorted()).toEqual([a, b].toSorted())
    lost.close()
  })

  it('ends with bye when the server drains', async () => {
    const stream = new Stream(path())
    await stream.next()
    const stopped = house.stop()
    expect(await stream.until(({ event }) => event === 'bye')).toMatchObject({
      event: 'bye',
      reason: 'draining',
    })
    expect(await stream.next()).toBeNull()
    await stopped
  })

  it('that nobody reads holds bounded memory and delays no other', async () => {
    const mints = Array.from({ length: 50 }, newMint)
    await house.client.push(...mints.map((mint) => token(mint)))
    const stalled = Array.from({ length: 20 }, () => {
      const socket = connect(house.port, '127.0.0.1')
      socket.pause()
      socket.write(`GET ${path()} HTTP/1.1\r\nHost: x\r\n\r\n`)
      return socket
    })
    const reader = new Stream(path())
    await reader.until(({ event }) => event === 'heartbeat')
    const before = process.memoryUsage().rss
    let name = ''
    for (let round = 0; round < 300; round++) {
      name = `round ${round} ${'x'.repeat(100)}`
      for (const mint of mints)
        house.market.apply(token(mint, name) as Parameters<typeof house.market.apply>[0], Date.now())
      await reader.until((line) => line.name === name)
    }
    // Unbounded, each of them would hold 300 rounds of 50 rows of 500 bytes: 150 MB in all.
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1_048_576)
    for (const socket of stalled) socket.destroy()
    reader.close()
  })
})
