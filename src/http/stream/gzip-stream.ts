// Compresses what followers are sent, once for all who are sent the same. A gzip body is a row of blocks, and a block may refer back
// to the 32 KiB before it (RFC 1951). So a block serves every follower whose last bytes are the same: those who are sent the same
// changes one after another. Now and then all begin anew without a past, so that those who came later share from then on.
import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { BodyWriter } from '../context.ts'
import { GZIP_EPOCH_BYTES_MAX, GZIP_EPOCH_MS_MAX } from '../limits.ts'
import { combineCrc32, type LengthOperator, lengthOperator } from './crc32.ts'
import type { WriteKind } from './follower.ts'

/** As far back as a block may refer. */
const HISTORY_BYTES = 32 * 1024
const OPTIONS = { level: 3, finishFlush: constants.Z_SYNC_FLUSH } as const
/**
 * How every flushed block ends (RFC 1951, an empty stored block): nothing that was compressed is in it. It goes out as a chunk of its own,
 * because the engine sends the end of a chunk with the next one, and some readers (urllib3, and so Python's requests) hand out no byte
 * of a chunk before its end: without this they would be told of each change at the next one.
 */
const FLUSH_END = Buffer.from([0, 0, 0xff, 0xff])
/** The header of a gzip body without a name or a time (RFC 1952), and an empty last block. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])
const LAST_BLOCK = Buffer.from([3, 0])

/** Bytes that some followers were sent, in the form in which they were sent. */
interface Step {
  /** Without `FLUSH_END`. */
  deflated: Buffer
  crc: number
  length: LengthOperator
  /** The last bytes up to here, to which the next block may refer. */
  history: Buffer
  /** What followed, by its bytes. */
  next: WeakMap<Buffer, Step>
  epoch: number
}

const NO_HISTORY = Buffer.alloc(0)
const NOTHING = { deflated: NO_HISTORY, crc: 0, length: lengthOperator(0), history: NO_HISTORY }

/** What the followers of one server share. */
export class SharedGzip {
  readonly #now: () => number
  #start: Step
  #bytes = 0
  #endsAtMs = 0

  /** @param now a monotonic clock, ms */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#start = { ...NOTHING, next: new WeakMap(), epoch: 0 }
  }

  /** The step that these bytes are after an earlier one; null: they refer to nothing. */
  step(after: Step | null, bytes: Buffer): Step {
    const from = after?.epoch === this.#start.epoch ? after : this.#start
    const known = from.next.get(bytes)
    if (known !== undefined) return known
    const { history, epoch } = from
    const dictionary = history.length > 0 ? { dictionary: history } : {}
    const deflated = deflateRawSync(bytes, { ...OPTIONS, ...dictionary }).subarray(0, -FLUSH_END.length)
    const made: Step = {
      deflated,
      crc: crc32(bytes),
      length: lengthOperator(bytes.length),
      history: Buffer.concat([history, bytes]).subarray(-HISTORY_BYTES),
      next: new WeakMap(),
      epoch,
    }
    from.next.set(bytes, made)
    this.#bytes += bytes.length
    return made
  }

  /** Whether it is time to begin anew; then all who are sent something from now on do. */
  turn(): void {
    if (this.#bytes < GZIP_EPOCH_BYTES_MAX && this.#now() < this.#endsAtMs) return
    this.beginAnew()
  }

  beginAnew(): void {
    this.#endsAtMs = this.#now() + GZIP_EPOCH_MS_MAX
    this.#bytes = 0
    this.#start = { ...NOTHING, next: new WeakMap(), epoch: this.#start.epoch + 1 }
  }
}

/** Writes a gzip body to an open response. */
export class GzipWriter implements BodyWriter {
  readonly #writer: BodyWriter
  readonly #shared: SharedGzip
  #last: Step | null = null
  #crc = 0
  #bytes = 0
  #hasHeader = false

  constructor(writer: BodyWriter, shared: SharedGzip) {
    this.#writer = writer
    this.#shared = shared
  }

  write(bytes: Buffer, kind: WriteKind = 'control'): boolean {
    return this.#writer.write(this.#deflate(bytes, kind), kind, FLUSH_END)
  }

  end(bytes: Buffer): void {
    const parts = [this.#deflate(bytes, 'control'), FLUSH_END, LAST_BLOCK, this.#trailer()]
    this.#writer.end(Buffer.concat(parts))
  }

  fail(): void {
    this.#writer.fail()
  }

  onWritable(onWritable: () => void): void {
    this.#writer.onWritable(onWritable)
  }

  onClosed(onClosed: () => void): void {
    this.#writer.onClosed(onClosed)
  }

  #deflate(bytes: Buffer, kind: WriteKind): Buffer {
    if (kind === 'changes') this.#shared.turn()
    const step = this.#shared.step(kind === 'changes' ? this.#last : null, bytes)
    // Others were not sent this: whoever goes on from here would share with nobody.
    this.#last = kind === 'changes' ? step : null
    if (kind === 'control') this.#shared.beginAnew()
    this.#crc = combineCrc32(this.#crc, step.crc, step.length)
    this.#bytes += bytes.length
    if (this.#hasHeader) return step.deflated
    this.#hasHeader = true
    return Buffer.concat([HEADER, step.deflated])
  }

  #trailer(): Buffer {
    const trailer = Buffer.alloc(8)
    trailer.writeUInt32LE(this.#crc, 0)
    trailer.writeUInt32LE(this.#bytes % 2 ** 32, 4)
    return trailer
  }
}
