// Runs every example of /streams.md against a server: what the document says is what goes over a stream.
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { streamsText } from '../../../src/http/docs/texts/streams.ts'
import { FollowReader } from '../../support/follow-reader.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { newMint, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

/** Members whose value differs from run to run. */
const VOLATILE = new Set([
  'healUntil',
  'seq',
  'ts',
  'from',
  'to',
  't',
  'o',
  'h',
  'l',
  'c',
  'v',
  'n',
  'priceUsd',
])
const TOKENS_MAX = 2

const examplesOf = (text: string): string[][] =>
  [...text.matchAll(/^```text\n([\s\S]*?)^```$/gm)].map(([, lines]) => lines.trimEnd().split('\n'))
const examples = examplesOf(streamsText(''))

let server: TestServer
let mint: string
const closers: (() => void)[] = []
const opened: TestServer[] = []
async function begin(): Promise<void> {
  server = await openTestServer({ 'tokens-max': `${TOKENS_MAX}` })
  opened.push(server)
  mint = newMint()
  await server.client.push({ type: 'token', mint, ts: Date.now(), name: 'Soggy Narwhal', symbol: 'NARWHAL' })
  await trade()
}
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  for (const each of opened.splice(0)) await each.remove()
})

let price = 0.00015
const trade = () => {
  price += 0.00001
  return server.client.push({
    type: 'trade',
    mint,
    ts: Date.now(),
    side: 'buy',
    tokenAmount: 1,
    priceUsd: price,
  })
}
const tell = (type: 'disconnect' | 'reconnect') => {
  const atMs = Date.now()
  server.market.apply({ type, ts: atMs, feed: 'pumpportal' }, atMs)
}
/** What the examples say that happens. */
const actions: Readonly<Record<string, () => Promise<void>>> = {
  'a trade': trade,
  'the token is evicted': async () => {
    for (let token = 0; token < TOKENS_MAX; token++)
      await server.client.push({ type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' })
  },
  'an agent submits': async () => {
    const { status, text } = await submit(server.client, await server.client.register(), submission(mint))
    expect(status, text).toBe(201)
  },
  'a feed loses its source': async () => tell('disconnect'),
  'the feed has it again': async () => tell('reconnect'),
  'a feed that heals loses its source': async () => {
    const ts = Date.now()
    const lost = {
      type: 'disconnect',
      ts,
      feed: 'solana',
      sinceMs: ts - 4_000,
      healUntilMs: ts + 600_000,
    } as const
    server.market.apply(lost, ts)
  },
  'it has brought what it missed, but for the last ten seconds': async () => {
    const ts = Date.now() + 56_000
    const missing = [{ fromMs: ts - 10_000, toMs: ts, reason: 'budget' } as const]
    server.market.apply({ type: 'reconnect', ts, feed: 'solana', healed: true, missing }, Date.now())
  },
  'the server stops': () => server.stop(),
}

// biome-ignore lint/suspicious/noExplicitAny: a message of any kind
type Json = any
/** What is expected of a message: the members of the example, volatile ones as some number. */
function pattern(example: Json): Json {
  if (Array.isArray(example)) return example.map(pattern)
  if (typeof example !== 'object' || example === null) return example
  const members = Object.entries(example).map(([name, value]) => [
    name,
    VOLATILE.has(name) && value !== null ? expect.any(Number) : pattern(value),
  ])
  return expect.objectContaining(Object.fromEntries(members))
}

interface Stream {
  send(message: string): Promise<void>
  /** The next message about the token or the stream. */
  next(): Promise<Json>
}

/** Rows of other tokens are not part of an example. */
const isAboutOthers = (message: Json): boolean => {
  const rows = message.event === undefined ? [message] : (message.rows ?? [])
  return rows.length > 0 && rows.every((row: Json) => row.mint !== undefined && row.mint !== mint)
}

function openStream(address: string | null): Stream {
  const reader =
    address === null
      ? new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`)
      : new FollowReader(server.url + address)
  closers.push(() => reader.close())
  return {
    send: async (message) => {
      if (reader instanceof StreamReader) await reader.send(message)
    },
    next: async () => {
      for (;;) {
        const message = await reader.next()
        if (message === null || !isAboutOthers(message)) return message
      }
    },
  }
}

async function play(lines: readonly string[]): Promise<void> {
  await begin()
  const filled = lines.map((line) => line.replaceAll('MINT', mint).replaceAll('SEQ', `${server.market.seq}`))
  const address = filled[0].startsWith('GET ') ? filled[0].slice('GET '.length) : null
  const stream = openStream(address)
  for (const line of address === null ? filled : filled.slice(1)) {
    const text = line.slice(2)
    if (line.startsWith('>')) await stream.send(text)
    else if (line.startsWith('<'))
      expect(await nextLike(stream, JSON.parse(text)), line).toEqual(pattern(JSON.parse(text)))
    else {
      // A stream that resumes says nothing before something happens: its connection must be there by then.
      if (address !== null && line === filled[1]) await stream.next()
      await actions[text]()
    }
  }
}

/** The next message of the stream; before the end of a stream rows may still come. */
async function nextLike(stream: Stream, example: Json): Promise<Json> {
  for (;;) {
    const message = await stream.next()
    const mayPrecede = example.event === 'left' || example.event === 'bye'
    if (!mayPrecede || message === null || message.event === example.event) return message
  }
}

describe('/streams.md', () => {
  it.each(examples.map((lines) => ({ title: lines.slice(0, 2).join(' '), lines })))(
    '$title',
    { tags: 'drill' },
    ({ lines }) => play(lines),
  )

  it('has an example of every event, operation and topic', () => {
    const text = examples.flat().join('\n')
    for (const event of [
      'subscribed',
      'unsubscribed',
      'snapshot',
      'changes',
      'left',
      'resync',
      'heartbeat',
      'gap',
      'pong',
      'bye',
      'error',
    ])
      expect(text).toContain(`"event":"${event}"`)
    for (const word of ['subscribe', 'unsubscribe', 'ping']) expect(text).toContain(`"op":"${word}"`)
    for (const topic of ['market', 'token', 'ohlc']) expect(text).toContain(`"topic":"${topic}"`)
  })

  it('is what the server and the README of the folder tell', async () => {
    await begin()
    const { text, headers } = await server.client.get('/streams.md')
    expect(headers.get('content-type')).toBe('text/markdown; charset=utf-8')
    expect(text).toBe(streamsText(server.url))
    const readme = readFileSync(new URL('../../../src/http/stream/README.md', import.meta.url), 'utf8')
    expect(examplesOf(readme)).toEqual(examples)
  })

  it('fails where an example says what is not so', { tags: 'drill' }, async () => {
    const [lines] = examples
    await expect(play(lines.map((line) => line.replace('NARWHAL', 'WHALE')))).rejects.toThrow('WHALE')
  })
})
