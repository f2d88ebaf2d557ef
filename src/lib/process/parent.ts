// What a child process has to do with the one that started it.
import { setPriority } from 'node:os'

/**
 * Sends a message to the process that started this one. Where that has just ended, the message is lost: the event `disconnect`
 * follows and decides what this process does.
 */
export function sendToParent(message: object): void {
  // Without a callback, a message that finds nobody would be an uncaught error of this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

/** How a process begins that works for the one that started it: with a low priority, and bound to end with it. */
export function workForParent(niceness: number): void {
  // Threads that start after this inherit the priority.
  setPriority(niceness)
  // Nobody wants the result any more. DuckDB may be working in a thread that only SIGKILL is sure to end.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  // A terminal sends its signals to all processes. The parent decides when this one ends.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
}
