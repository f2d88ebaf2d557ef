// Followers who write the same changes share what is compressed, whenever they came, and each gets a whole gzip body of what it wrote.
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { BodyWriter } from '../../../src/http/context.ts'
import type { WriteKind } from '../../../src/http/stream/follower.ts'
import { GzipWriter, SharedGzip } from '../../../src/http/stream/gzip-stream.ts'

class Sink implements BodyWriter {
  readonly parts: Buffer[] = []
  write(bytes: Buffer, _kind?: WriteKind, tail?: Buffer): boolean {
    this.parts.push(bytes)
    if (tail !== undefined) this.parts.push(tail)
    return true
  }
  end(last: Buffer): void {
    this.parts.push(last)
  }
  fail(): void {}
  onWritable(): void {}
  onClosed(): void {}
}

const FOLLOWERS = 4
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ change: fc.string({ maxLength: 400 }) }) },
  { weight: 1, arbitrary: fc.record({ large: fc.integer({ min: 1, max: 90_000 }) }) },
  { weight: 2, arbitrary: fc.record({ control: fc.nat(FOLLOWERS - 1) }) },
  { weight: 2, arbitrary: fc.record({ rows: fc.nat(FOLLOWERS - 1) }) },
  { weight: 1, arbitrary: fc.record({ skip: fc.nat(FOLLOWERS - 1), change: fc.string() }) },
  { weight: 2, arbitrary: fc.record({ passMs: fc.constantFrom(10, 1_000) }) },
)

it('every body is a whole gzip of what its follower was sent, whatever the others were sent', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let nowMs = 0
      const shared = new SharedGzip(() => nowMs)
      const followers = Array.from({ length: FOLLOWERS }, () => {
        const sink = new Sink()
        return { sink, writer: new GzipWriter(sink, shared), sent: [] as Buffer[] }
      })
      const write = (index: number, bytes: Buffer, kind: 'changes' | 'rows' | 'control') => {
        followers[index].sent.push(bytes)
        followers[index].writer.write(bytes, kind)
      }
      for (const one of steps) {
        if ('passMs' in one) nowMs += one.passMs
        if ('control' in one) write(one.control, Buffer.from('{"event":"heartbeat"}\n'), 'control')
        if ('rows' in one) write(one.rows, Buffer.from('{"mint":"a"}\n'.repeat(20)), 'rows')
        if (!('change' in one) && !('large' in one)) continue
        const bytes = 'change' in one ? Buffer.from(one.change) : Buffer.alloc(one.large, 'abcdefg')
        for (let index = 0; index < FOLLOWERS; index++)
          if (!('skip' in one) || one.skip !== index) write(index, bytes, 'changes')
      }
      for (const { sink, writer, sent } of followers) {
        writer.end(Buffer.from('bye\n'))
        expect(
          gunzipSync(Buffer.concat(sink.parts)).equals(Buffer.concat([...sent, Buffer.from('bye\n')])),
        ).toBe(true)
      }
    }),
    { numRuns: 200 },
  )
})

it('is made once for all who are sent the same, also for one who came later, and later bytes refer to earlier ones', () => {
  let nowMs = 0
  const shared = new SharedGzip(() => nowMs)
  const [first, late] = [new Sink(), new Sink()]
  const writers = [new GzipWriter(first, shared)]
  const row = (index: number) =>
    Buffer.from(
      `{"mint":"7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU","priceUsd":${index / 7},"holder_count":12}\n`,
    )
  for (let index = 0; index < 300; index++) {
    if (index === 100) writers.push(new GzipWriter(late, shared))
    if (index % 50 === 0) nowMs += 1_000
    const bytes = row(index)
    for (const writer of writers) writer.write(bytes, 'changes')
  }
  // From the first new beginning on they are the same buffers, not only equal ones.
  expect(late.parts.slice(-150).every((part, index) => part === first.parts.slice(-150)[index])).toBe(true)
  const [plain, sent] = [300 * row(1).length, first.parts.reduce((sum, part) => sum + part.length, 0)]
  expect(sent).toBeLessThan(plain / 2)
})
