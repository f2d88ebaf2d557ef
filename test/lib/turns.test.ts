import { expect, test } from 'vitest'
import { threadCpuMs } from '../../src/lib/turns.ts'

test('the processor time of the thread goes on between ticks of the kernel, so that a slice of a millisecond is one', () => {
  for (let spin = 0; spin < 20; spin++) {
    const beforeMs = threadCpuMs()
    for (const startedAtMs = performance.now(); performance.now() - startedAtMs < 0.5; );
    expect(threadCpuMs() - beforeMs).toBeGreaterThan(0)
  }
})
