// What commands may use of the process: its streams, environment and signals.
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../lib/clock.ts'
import { systemCode } from '../lib/error-text.ts'

/** The process, as far as commands see it. */
export interface Terminal {
  stdin: Readable
  stdout: Writable
  stderr: Writable
  env: Readonly<Record<string, string | undefined>>
  /** Whether standard error is a terminal. */
  isWatched: boolean
  clock: Clock
  /** Calls `act` on Ctrl-C, SIGTERM and a closed terminal. Returns a function that removes the handler. */
  onInterrupt(act: () => void): () => void
}

/** The reader of the pipe has closed it. */
export class ReaderGone extends Error {}

/** Writes, and waits until the stream takes more. Rejects with ReaderGone when the pipe is closed, or with why it takes nothing. */
export async function write(stream: Writable, text: string | Uint8Array): Promise<void> {
  if (stream.errored) throw whyNotWritten(stream.errored)
  if (stream.destroyed) throw new ReaderGone()
  if (stream.write(text)) return
  try {
    await once(stream, 'drain')
  } catch (error) {
    throw whyNotWritten(error)
  }
}

const whyNotWritten = (error: unknown): unknown => (isPipeError(error) ? new ReaderGone() : error)

export const isPipeError = (error: unknown): boolean => systemCode(error) === 'EPIPE'
