// Jobs in processes of their own: what comes of them, what ends them, and that nothing of them goes on.
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import type { JobError } from '../../../src/lib/process/job.ts'
import { JobProgram, type JobProgramOptions } from '../../../src/lib/process/job-program.ts'
import type { Done, Step } from './job.child.ts'

const PROGRAM = fileURLToPath(new URL('./job.child.ts', import.meta.url))
const LONG_MS = 60_000

type Chunk = Buffer | number
let programs: JobProgram<Step[], Done, Chunk>[] = []

function open(options: Partial<JobProgramOptions<Step[]>> = {}): JobProgram<Step[], Done, Chunk> {
  const usual = { program: PROGRAM, name: 'the process of the test', msMax: LONG_MS, heapMb: 64 }
  const opened = new JobProgram<Step[], Done, Chunk>({ ...usual, ...options })
  programs.push(opened)
  return opened
}

afterEach(async () => {
  await Promise.all(programs.map((each) => each.close()))
  programs = []
})

/** Whether a process is there. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a job', () => {
  test('gives its chunks in their order, bytes as bytes, then its result', async () => {
    const job = open().start([{ send: 1 }, { bytes: 3 }, { send: 2 }])
    expect(await job.next()).toBe(1)
    expect(await job.next()).toEqual(Buffer.from([7, 7, 7]))
    expect(await job.next()).toBe(2)
    expect(await job.next()).toBeNull()
    const { pid } = await job.result
    await job.ended
    expect(isAlive(pid)).toBe(false)
  })

  test('is no further ahead of its reader than it may be', async () => {
    const job = open({ chunksAhead: 2 }).start(Array.from({ length: 5 }, (_, send) => ({ send })))
    const read: unknown[] = []
    for (let waiting = 2; read.length < 5; waiting = Math.min(2, 5 - read.length)) {
      await expect.poll(() => job.held.length).toBe(waiting)
      read.push(await job.next())
    }
    expect(read).toEqual([0, 1, 2, 3, 4])
    await job.result
  })

  test('that throws is told as its program says it, and its process ends', async () => {
    const explained: JobError[] = []
    const explain = (error: JobError): Error => {
      explained.push(error)
      return new Error('explained')
    }
    const job = open({ explain, idleMs: LONG_MS }).start([{ send: 1 }, { fail: 'no' }])
    await expect(job.result).rejects.toThrow('explained')
    await expect(job.next()).rejects.toThrow('explained')
    expect(explained).toMatchObject([
      { fault: 'failed', message: 'Error: no', failure: { message: 'Error: no', isTold: true } },
    ])
    await job.ended
  })

  test.each([
    ['ended', [{ exit: 3 }], {}, 'the process of the test ended with 3'],
    ['late', ['hang'], { msMax: 50 }, 'the process of the test took more than 50 ms'],
    ['late', [{ send: 1 }, { send: 2 }, { send: 3 }], { msMax: 400 }, 'took more than 400 ms'],
  ] as const)('that has %s is an error: %j', async (fault, steps, options, sentence) => {
    const job = open(options).start([...steps])
    await expect(job.result).rejects.toMatchObject({ fault, message: expect.stringContaining(sentence) })
    await job.ended
    expect(job.held).toEqual([])
  })

  test('that is stopped rejects at once, and ends with its process', async () => {
    const program = open({ chunksAhead: 1 })
    const job = program.start([{ send: 1 }, 'hang'])
    expect(await job.next()).toBe(1)
    const waiting = job.next()
    job.stop()
    await expect(waiting).rejects.toMatchObject({ fault: 'stopped' })
    await job.ended
    expect(program.running).toEqual([])
  })

  test('counts as running until its chunks are taken, and its process may do another one meanwhile', async () => {
    const cleaned: number[] = []
    const program = open({
      ...{ chunksAhead: 2, idleMs: LONG_MS },
      cleanUp: async (steps) => void cleaned.push(steps.length),
    })
    const first = program.start([{ send: 1 }, { send: 2 }])
    const { pid } = await first.result
    await expect.poll(() => cleaned).toEqual([2])
    expect(program.running).toEqual([first])
    expect((await program.start([]).result).pid).toBe(pid)
    expect([await first.next(), await first.next()]).toEqual([1, 2])
    await first.ended
    expect(program.running).not.toContain(first)
    expect(isAlive(pid)).toBe(true)
  })
})

describe('a process', () => {
  test('that has no job for a while ends', async () => {
    const { pid } = await open({ idleMs: 20 }).start([]).result
    await expect.poll(() => isAlive(pid)).toBe(false)
  })

  test('that ends while it is idle is not used again', async () => {
    const program = open({ idleMs: LONG_MS })
    const { pid } = await program.start([]).result
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => isAlive(pid)).toBe(false)
    expect((await program.start([]).result).pid).not.toBe(pid)
  })

  test('that is confined has no settings of its parent and no more memory than it may', async () => {
    process.env.MINTLAKE_TEST_KEY = 'secret'
    try {
      const confined = await open({ confinedToMb: 2_048 }).start([]).result
      expect(confined).toMatchObject({ limit: `${2_048 * 1_024 * 1_024}` })
      expect(confined.env).not.toContain('MINTLAKE_TEST_KEY')
      expect((await open().start([]).result).env).toContain('MINTLAKE_TEST_KEY')
    } finally {
      delete process.env.MINTLAKE_TEST_KEY
    }
  })
})

describe('jobs of one program', () => {
  test('take turns where few may run at once', async () => {
    const program = open({ atOnce: 1 })
    const [first, second, third] = [program.start(['hang']), program.start(['hang']), program.start([])]
    expect([program.running, program.waiting]).toEqual([[first], 2])
    expect([first.beganMs !== null, second.beganMs]).toEqual([true, null])
    // One that waits is given up without a process.
    second.stop()
    await second.ended
    expect(program.waiting).toBe(1)
    first.stop()
    await third.result
  })

  test('do not wait longer than they may', async () => {
    const program = open({ atOnce: 1, waitMsMax: 30 })
    program.start(['hang'])
    await expect(program.start([]).result).rejects.toMatchObject({ fault: 'waited' })
    expect(program.waiting).toBe(0)
  })

  test('end when it is closed: those that wait at once, the others after a time', async () => {
    const program = open({ atOnce: 2 })
    const [first, second, waiting] = [program.start(['hang']), program.start(['hang']), program.start([])]
    const cutOff: number[] = []
    const closed = program.close(20, (jobs) => void cutOff.push(jobs))
    await expect(program.start([]).result).rejects.toMatchObject({ fault: 'closing' })
    await expect(waiting.result).rejects.toMatchObject({ fault: 'closing' })
    await closed
    expect(cutOff).toEqual([2])
    for (const job of [first, second]) await expect(job.result).rejects.toMatchObject({ fault: 'stopped' })
    expect(program.running).toEqual([])
  })

  test('that cannot be started are errors', async () => {
    const job = open({ program: `${PROGRAM}.missing`, confinedToMb: 2_048 }).start([])
    await expect(job.result).rejects.toMatchObject({ fault: 'ended' })
    await job.ended
  })
})
