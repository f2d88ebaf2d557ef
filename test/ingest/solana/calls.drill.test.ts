// @module-tag drill
// A feed asks for as long as it runs: calls must leave nothing behind at the signal by which it stops.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, it, vi } from 'vitest'
import { RpcClient } from '../../../src/ingest/solana/rpc.ts'
import { wait } from '../../../src/ingest/wait.ts'

const ROUND = 20_000
const TIMEOUT_MS = 200
/** Compiled code and caches of the runtime come and go; a hundred bytes kept from each call of a round would be more. */
const GROWTH_BYTES_MAX = 1024 * 1024

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')
const { signal } = new AbortController()
afterEach(() => vi.unstubAllGlobals())

/** When calls of before have had their time, and what was let go of is collected. */
async function heapBytes(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    await wait(TIMEOUT_MS, signal)
    collect()
  }
  return process.memoryUsage().heapUsed
}

it('calls leave nothing behind', async () => {
  // Sockets would take most of the time and of the memory.
  vi.stubGlobal('fetch', (_url: string, { body }: { body: string }) =>
    Promise.resolve(new Response(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result: 1 }))),
  )
  const rpc = new RpcClient({
    endpoints: [{ url: 'http://node.example/', host: 'node' }],
    ...{ requestsPerSecond: 1_000_000, timeoutMs: TIMEOUT_MS },
  })
  const callRound = async () => {
    for (let calls = 0; calls < ROUND; calls++)
      expect(await rpc.call('getSlot', [], signal)).toMatchObject({ ok: true })
  }
  await callRound()
  const warm = await heapBytes()
  await callRound()
  expect((await heapBytes()) - warm).toBeLessThan(GROWTH_BYTES_MAX)
}, 120_000)
