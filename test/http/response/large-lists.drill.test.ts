// @module-tag drill
// Requests for the whole market: what they cost other clients, and how much memory many of them take.
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { createBrotliDecompress } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newMint } from '../../support/submission.ts'
import { type ServerProcess, spawnServer } from '../../support/test-server.ts'

const TOKENS = 8_000
const READERS = 16
const DESCRIPTION = 'said at some length, as such descriptions are '.repeat(20)
const MEBIBYTE = 1_048_576
const NEWLINE = 10

let server: ServerProcess
const mints = Array.from({ length: TOKENS }, newMint)
beforeAll(async () => {
  server = await spawnServer({ 'tokens-max': `${TOKENS}` }, undefined, { UV_THREADPOOL_SIZE: '16' })
  const words = { name: 'N', symbol: 'S', description: DESCRIPTION }
  for (let from = 0; from < TOKENS; from += 2_000) {
    const ts = Date.now()
    const part = mints.slice(from, from + 2_000)
    await server.client.push(...part.map((mint) => ({ type: 'token', mint, ts, ...words })))
  }
})
afterAll(() => server.terminate())

const figure = (name: string): number =>
  Number(
    new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))![1],
  ) / 1_024

/** Requests the whole list without reading the body. */
async function ask(): Promise<http.IncomingMessage> {
  const path = `${server.client.url}/api/v1/market?format=ndjson&limit=${TOKENS}`
  const request = http.get(path, { agent: new http.Agent(), headers: { 'Accept-Encoding': 'br' } })
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  return response
}

/** Reads and decompresses a body. Returns the count of its rows and bytes. */
async function read(response: http.IncomingMessage): Promise<{ rows: number; bytes: number }> {
  const isPlain = response.headers['content-encoding'] === undefined
  const body = isPlain ? response : response.pipe(createBrotliDecompress())
  let rows = 0
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) rows++
  }
  return { rows, bytes }
}

it('other clients are served while the rows of a large list are rendered for the first time', async () => {
  let isThere = false
  const list = ask().finally(() => {
    isThere = true
  })
  let served = 0
  for (; !isThere; served++) {
    const { status } = await server.client.get(`/api/v1/datapoint?mint=${mints[served]}`)
    expect(status).toBe(200)
  }
  expect((await read(await list)).rows).toBe(TOKENS)
  // Rendering the rows takes some 32 turns of the event loop. In one turn only earlier look-ups could be served.
  expect(served).toBeGreaterThan(4)
})

it.runIf(process.platform === 'linux')(
  'each reader of a 10 MiB list gets all of it, and together they take less memory than a copy for each',
  async () => {
    const { bytes } = await read(await ask())
    expect(bytes).toBeGreaterThan(8 * MEBIBYTE)
    const before = figure('VmRSS')
    writeFileSync(`/proc/${server.process.pid}/clear_refs`, '5')
    const lists: Promise<{ rows: number; bytes: number }>[] = []
    // Each reader gets another version.
    for (let index = 0; index < READERS; index++) {
      lists.push(ask().then(read))
      await server.client.push({ type: 'live', mint: mints[index], ts: Date.now(), isLive: true })
    }
    for (const { rows } of await Promise.all(lists)) expect(rows).toBe(TOKENS)
    expect(figure('VmHWM') - before).toBeLessThan((READERS * bytes) / MEBIBYTE / 2)
  },
  60_000,
)
