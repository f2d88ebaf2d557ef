// A burst of market events at a start, while the journal of a killed run is taken over: all that is accepted is in the lake.
// @module-tag drill
import { afterEach, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { crashImage } from '../checkpoint/support.ts'
import { lakeGlob, readSql } from '../store/support.ts'
import { FEED_KEY, openTestServer } from '../support/test-server.ts'

const SETTINGS = { record: 'true', 'lake-flush-ms': '1000' }
const MINTS = Array.from({ length: 50 }, (_, index) => mintOfSymbol(`burst ${index}`))
const BODY_TRADES = 20_000
/** Holds a few slices of a body: a burst of 35 MB has to wait for the disk again and again. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const each of cleanUp.splice(0).reverse()) await each()
})

let sent = 0
function trades(count: number): string {
  const ts = Date.now()
  const lines = Array.from({ length: count }, () => {
    const id = String(sent++).padStart(10, '0')
    const wallet = id.padStart(44, 'w')
    return `{"type":"trade","mint":"${MINTS[sent % MINTS.length]}","ts":${ts},"side":"buy","tokenAmount":1,"priceUsd":1,"wallet":"${wallet}","tx":"${id.padStart(88, 't')}"}`
  })
  return lines.join('\n')
}

async function push(url: string, count: number): Promise<number> {
  const answer = await fetch(`${url}/api/v1/ingest`, {
    method: 'POST',
    body: trades(count),
    headers: { 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` },
  })
  const { accepted } = (await answer.json()) as { accepted: number }
  return accepted
}

/** All bodies at once. @returns how many trades were accepted */
async function burst(url: string, count: number): Promise<number> {
  const bodies = Array.from({ length: count / BODY_TRADES }, () => push(url, BODY_TRADES))
  return (await Promise.all(bodies)).reduce((sum, accepted) => sum + accepted, 0)
}

const countIn = async (dataDir: string, what: string): Promise<number> => {
  const [{ count }] = await readSql(`SELECT ${what}::DOUBLE AS count FROM ${lakeGlob(dataDir, 'trades')}`)
  return count as number
}

test('a burst that is larger than what may wait for the disk waits instead', async () => {
  const first = await openTestServer(SETTINGS)
  cleanUp.push(() => first.remove())
  await burst(first.url, 60_000)
  const image = await crashImage(first)
  const server = await openTestServer(
    SETTINGS,
    { tuning: { journalWaitingBytesMax: WAITING_BYTES_MAX } },
    image,
  )
  cleanUp.push(() => server.remove())
  const flushed = server.store.flushLake()
  expect(await burst(server.url, 100_000)).toBe(100_000)
  await flushed
  expect((await server.client.get('/health')).body.recording.journal.lost).toBe(0)
  await server.stop()
  expect(await countIn(image, 'count(*)')).toBe(160_000)
})
