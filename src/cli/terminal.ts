// In: a process. Out: what commands may use of it: its streams, its environment, Ctrl-C. Never ends the process.
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../lib/clock.ts'
import { systemCode } from '../lib/error-text.ts'

/** The process as a command sees it. */
export interface Terminal {
  stdin: Readable
  stdout: Writable
  stderr: Writable
  env: Readonly<Record<string, string | undefined>>
  /** Somebody watches the standard error. */
  isWatched: boolean
  clock: Clock
  /** Calls `act` at Ctrl-C and at SIGTERM; answers how to call it off. */
  onInterrupt(act: () => void): () => void
}

/** Nobody reads on: the reader of a pipe has what it wanted. */
export class ReaderGone extends Error {}

/** Writes, and waits until the stream has room. Rejects with ReaderGone when the other end is closed. */
export async function write(stream: Writable, text: string | Uint8Array): Promise<void> {
  if (stream.errored || stream.destroyed) throw new ReaderGone()
  if (stream.write(text)) return
  try {
    await once(stream, 'drain')
  } catch (error) {
    throw isPipeError(error) ? new ReaderGone() : error
  }
}

export const isPipeError = (error: unknown): boolean => systemCode(error) === 'EPIPE'

/** Everything that a stream has, of at most `bytesMax`. */
export async function readAll(stream: Readable, bytesMax: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > bytesMax) return null
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}
