import { controlFrame, rowsFrame, type StreamFormat } from '../encode/stream-frame.ts'
import { FOLLOW_CHUNKS_MAX } from '../limits.ts'

/** How far a subscriber has read a channel. */
export interface StreamPosition {
  /** Position of the market up to which it has been sent everything. */
  seq: number
  /** For bars: start of the first one that could still change then, Unix ms; otherwise 0. */
  barMs: number
  /** For bars: the state that it has been sent. Also marks that it has been told of an eviction. */
  state: string
}

export const positionAt = (seq: number): StreamPosition => ({ seq, barMs: 0, state: '' })

/** A message of a stream: a head with rows, or a head alone. */
export interface Message {
  head: object
  rows: Buffer | null
  /** Lines have no head of rows: where the head says more than the rows, it follows them as a line of its own. */
  hasHeadLine?: true
  /** The position of a subscriber that has been sent the message. */
  next: StreamPosition
}

/** Bytes that are written at once. */
export interface Frame {
  bytes: Buffer
  /** The position of a subscriber that has been sent them. */
  next: StreamPosition
}

/** The messages that lead from one position to the next. Each format is encoded once, when it is first needed. */
export class Chunk {
  readonly next: StreamPosition
  readonly #messages: readonly Message[]
  readonly #frames = new Map<StreamFormat, readonly Frame[]>()

  constructor(messages: readonly Message[], next: StreamPosition) {
    this.#messages = messages
    this.next = next
  }

  /** In NDJSON all messages are one frame. */
  frames(format: StreamFormat): readonly Frame[] {
    let frames = this.#frames.get(format)
    if (frames === undefined) {
      frames =
        format === 'ndjson'
          ? this.#ndjsonFrames()
          : this.#messages.map((message) => messageFrame(message, format))
      this.#frames.set(format, frames)
    }
    return frames
  }

  #ndjsonFrames(): Frame[] {
    const parts = this.#messages.flatMap(({ head, rows, hasHeadLine }) => {
      // A stream over HTTP has one channel, so its lines do not name it.
      const line = () => controlFrame('ndjson', { ...head, channel: undefined })
      if (rows === null) return line()
      return hasHeadLine ? [rows, line()] : rows
    })
    const [first] = parts
    // Joining copies, which a single part does not need.
    const bytes = first !== undefined && parts.length === 1 ? first : Buffer.concat(parts)
    return bytes.length === 0 ? [] : [{ bytes, next: this.next }]
  }
}

const messageFrame = ({ head, rows, next }: Message, format: StreamFormat): Frame => ({
  bytes: rows === null ? controlFrame(format, head) : rowsFrame(format, head, rows),
  next,
})

/** Chunks that followers at the same position share, until the channel's state changes. Empty again at its maximum. */
export class ChunkCache {
  /** Not cleared but made anew: in V8 the table that a map leaves keeps what was in it, and points to the next one. Once such a table has
   *  been taken for old, all that follow are kept until old memory is collected: every frame that was sent. */
  #chunks = new Map<number, Chunk>()
  #state: number | string = -1

  /**
   * The chunk for `position`, made if it is not cached.
   * @param state drops all cached chunks when it differs from that of the last call.
   */
  get(state: number | string, position: number, make: () => Chunk): Chunk {
    if (state !== this.#state || this.#chunks.size >= FOLLOW_CHUNKS_MAX) this.#chunks = new Map()
    this.#state = state
    let chunk = this.#chunks.get(position)
    if (chunk === undefined) {
      chunk = make()
      this.#chunks.set(position, chunk)
    }
    return chunk
  }
}
