import { Chunk, type StreamPosition } from './chunk.ts'

/** All rows of a channel, chunk by chunk as the socket takes them. They are sent before any change. */
export interface StreamSnapshot {
  next(): { chunk: Chunk; isLast: boolean }
}

/** Something to follow: a tab of the market list, a window of a list, a token, or the bars of a token. Its followers share what is encoded. */
export interface Channel {
  /** As messages on a WebSocket name it. */
  readonly name: string
  /** Followers of channels with the same key are sent the same. */
  readonly key: string
  /** Whether it is read once in a while instead of at every change. */
  readonly isPaced: boolean
  /** The token whose changes alone matter to the channel; null for a tab. */
  readonly mint: string | null
  /** Whether the changes after a position are unknown: it is too old, of an earlier run, or was never reached. */
  isLost(position: StreamPosition): boolean
  /** The changes after a position, or the first of them; null if there are none. @param asOf of a tab: null if there are none up to here */
  changes(position: StreamPosition, asOf: number): Chunk | null
  /** Of one that is read once in a while: where the market was when it was read. */
  readonly readSeq?: number
  /** Every row, for a follower that has missed changes. */
  reopen(): StreamSnapshot
  /** Asked once in a while: whether it may have changed by the passing of time, or its time has come. Without it: never. */
  hasMoved?(): boolean
}

/** A snapshot of one chunk. */
export const singleSnapshot = (chunk: Chunk): StreamSnapshot => ({ next: () => ({ chunk, isLast: true }) })

/** Rows of a channel that sends all it has at once. A snapshot is a message though it has no rows. @param told further members of the head */
export function rowsChunk(
  event: 'changes' | 'snapshot',
  channel: string,
  rows: Buffer,
  next: StreamPosition,
  told: object = {},
): Chunk {
  const isSnapshot = event === 'snapshot'
  const head = { event, channel, seq: next.seq, ...told, ...(isSnapshot && { last: true }) }
  return new Chunk(rows.length > 0 || isSnapshot ? [{ head, rows, next }] : [], next)
}

/** The message that a token was evicted. */
export const leftMessageHead = (channel: string, mint: string, seq: number) => ({
  event: 'left',
  channel,
  mint,
  seq,
})

/** State of a position whose owner has been told that the token was evicted. */
const LEFT = 'left'

/** What the followers of an evicted token are sent: once that it left, then nothing. */
export function leftChunk(
  channel: string,
  mint: string,
  position: StreamPosition,
  seq: number,
): Chunk | null {
  if (position.state === LEFT) return null
  const next = { seq, barMs: position.barMs, state: LEFT }
  return new Chunk([{ head: leftMessageHead(channel, mint, seq), rows: null, next }], next)
}
