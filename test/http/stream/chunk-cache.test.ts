// What was sent is not kept: neither by the cache, nor by the collector for the sake of what the cache has left behind.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { Chunk, ChunkCache, positionAt } from '../../../src/http/stream/chunk.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void

const FRAME_BYTES = 1 << 20
const FRAMES = 100
/** Between two young collections: the last one may become old, as the cache still has it. */
const FRAMES_AT_ONCE = 20

it('leaves no frame behind that old memory would keep', () => {
  const cache = new ChunkCache()
  const send = (seq: number) =>
    cache.get(seq, seq - 1, () => {
      const rows = Buffer.allocUnsafeSlow(FRAME_BYTES)
      return new Chunk([{ head: {}, rows, next: positionAt(seq) }], positionAt(seq))
    })
  send(1)
  // What the cache has now is old from here on.
  collect()
  const before = process.memoryUsage().external
  for (let seq = 2; seq <= FRAMES; seq++) {
    send(seq)
    if (seq % FRAMES_AT_ONCE === 0) collect({ type: 'minor' })
  }
  // What a collection frees is counted by the next one.
  collect({ type: 'minor' })
  expect(process.memoryUsage().external - before).toBeLessThan((FRAMES / 4) * FRAME_BYTES)
})
