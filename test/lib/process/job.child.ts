// A program for tests that does jobs: each task is a list of steps.
import { readFileSync } from 'node:fs'
import { doJobs } from '../../../src/lib/process/parent.ts'

export type Step =
  | { send: number }
  | { bytes: number }
  | { fail: string }
  | { exit: number }
  /** Does nothing, for ever. */
  | 'hang'

export interface Done {
  pid: number
  env: string[]
  /** The limit of its data, as the kernel says it. */
  limit: string
}

async function work(steps: Step[], send: (chunk: Buffer | number) => Promise<void>): Promise<Done> {
  for (const step of steps) {
    if (step === 'hang') await new Promise(() => {})
    else if ('send' in step) await send(step.send)
    else if ('bytes' in step) await send(Buffer.alloc(step.bytes, 7))
    else if ('fail' in step) throw new Error(step.fail)
    else process.exit(step.exit)
  }
  const limits = readFileSync('/proc/self/limits', 'utf8')
  const [, limit = ''] = /^Max data size +(\S+)/m.exec(limits) ?? []
  return { pid: process.pid, env: Object.keys(process.env), limit }
}

doJobs(1, work, (error) => ({ message: String(error), isTold: true }))
