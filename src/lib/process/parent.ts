// What a child process has to do with the one that started it.
import { setPriority } from 'node:os'
import { errorMessage } from '../error-text.ts'
import { ENDING_SIGNALS } from './ending-signals.ts'
import type { Failure, FromWorker, ToWorker } from './job.ts'

/**
 * Sends a message to the process that started this one. Where that has just ended, the message is lost: the event `disconnect`
 * follows and decides what this process does.
 */
export function sendToParent(message: object): void {
  // Without a callback, a message that finds nobody would be an uncaught error of this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

/** The work of a task: what it returns is the result. `send` takes a chunk once the reader has room for it. */
export type Work<Task, Result, Chunk> = (task: Task, send: (chunk: Chunk) => Promise<void>) => Promise<Result>

/** Takes the messages of a parent, and does one task after another. */
export function takeJobs<Task, Result, Chunk>(
  work: Work<Task, Result, Chunk>,
  post: (message: FromWorker<Result, Chunk>) => void,
  toFailure: (error: unknown) => Failure,
): (message: ToWorker<Task>) => void {
  let room = 0
  let onRoom: () => void = () => {}
  const send = async (chunk: Chunk): Promise<void> => {
    while (room === 0)
      await new Promise<void>((resolve) => {
        onRoom = resolve
      })
    room--
    post({ chunk })
  }
  const run = async (task: Task): Promise<void> => {
    try {
      post({ result: await work(task, send) })
    } catch (error) {
      post({ failure: toFailure(error) })
    }
  }
  return (message) => {
    if (message === 'more') {
      room++
      onRoom()
      return
    }
    room = message.chunksAhead
    void run(message.task)
  }
}

/** Does jobs in this process, one after another, with a low priority, until the one that started it ends. */
export function doJobs<Task, Result, Chunk = never>(
  niceness: number,
  work: Work<Task, Result, Chunk>,
  toFailure: (error: unknown) => Failure = (error) => ({ message: errorMessage(error) }),
): void {
  // Threads that start after this inherit the priority.
  setPriority(niceness)
  // Nobody wants the result any more. DuckDB may be working in a thread that only SIGKILL is sure to end.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  // A terminal sends its signals to all processes. The parent decides when this one ends.
  for (const signal of ENDING_SIGNALS) process.on(signal, () => {})
  process.on('message', takeJobs(work, sendToParent, toFailure))
}
