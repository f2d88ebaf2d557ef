// Reads a file of text in lines: plain, gzip or zstd, in UTF-8 or UTF-16, with bounded memory.
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { TextDecoder } from 'node:util'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { TRADE_LINE_CHARS_MAX, TRADE_TEXT_CHUNK_BYTES } from '../limits.ts'
import { invalid } from './trade-columns.ts'
import { zstdFrames } from './zstd-frames.ts'

const GZIP = [0x1f, 0x8b]
const ZSTD = [0x28, 0xb5, 0x2f, 0xfd]
/** Of a frame that is to be skipped, which may come first: behind a byte from 0x50 to 0x5f. */
const ZSTD_SKIPPABLE = [0x2a, 0x4d, 0x18]
const beginsWith = (bytes: Uint8Array, start: readonly number[]): boolean =>
  start.every((byte, at) => bytes[at] === byte)

/** The bytes of the file, unpacked: what it is says its content, not its name. */
async function* readBytes(path: string): AsyncGenerator<Uint8Array> {
  const file = await open(path)
  const head = new Uint8Array(ZSTD.length)
  await file.read(head, 0, head.length, 0).finally(() => file.close())
  const options = { chunkSize: TRADE_TEXT_CHUNK_BYTES }
  const isZstd =
    beginsWith(head, ZSTD) || (head[0] >> 4 === 5 && beginsWith(head.subarray(1), ZSTD_SKIPPABLE))
  if (isZstd)
    for await (const { from, to } of zstdFrames(path))
      yield* unpacked(readPart(path, from, to), createZstdDecompress(options))
  else if (beginsWith(head, GZIP)) yield* unpacked(readPart(path), createGunzip(options))
  else yield* readPart(path)
}

const readPart = (path: string, start = 0, end = Number.POSITIVE_INFINITY): Readable =>
  createReadStream(path, { start, end: end - 1, highWaterMark: TRADE_TEXT_CHUNK_BYTES })

/** An error of one stream ends the other; whoever iterates gets it. */
const unpacked = (bytes: Readable, unpack: Transform): Readable => pipeline(bytes, unpack, () => {})

function decoderOf(start: Uint8Array): TextDecoder {
  if (beginsWith(start, [0xff, 0xfe])) return new TextDecoder('utf-16le')
  if (beginsWith(start, [0xfe, 0xff])) return new TextDecoder('utf-16be')
  return new TextDecoder('utf-8')
}

/** The lines of a file, some at a time, without their line feeds. Bytes that are no text become U+FFFD. */
export async function* readLines(
  path: string,
  lineCharsMax = TRADE_LINE_CHARS_MAX,
): AsyncGenerator<string[]> {
  let decoder: TextDecoder | null = null
  let lineEnd: string | null = null
  /** The line that has begun, in parts. */
  let parts: string[] = []
  let chars = 0
  for await (const chunk of readBytes(path)) {
    decoder ??= decoderOf(chunk)
    const text = decoder.decode(chunk, { stream: true })
    // Files without any line feed are of old spreadsheets, which end lines with a carriage return.
    lineEnd ??= text.includes('\n') ? '\n' : text.includes('\r') ? '\r' : null
    const lines = lineEnd === null ? [text] : text.split(lineEnd)
    if (lines.length > 1) {
      lines[0] = parts.join('') + lines[0]
      parts = []
      chars = 0
    }
    const rest = lines.pop() ?? ''
    parts.push(rest)
    chars += rest.length
    if (chars > lineCharsMax) throw invalid(`${path} has a line of more than ${lineCharsMax} characters`)
    if (lines.length > 0) yield lines
  }
  const last = parts.join('') + (decoder?.decode() ?? '')
  if (last !== '') yield [last]
}

/** Reads blocks until they have so many items, or to the end. @returns the items; `blocks` goes on behind them. */
export async function readHead<Item>(blocks: AsyncGenerator<Item[]>, itemsMin: number): Promise<Item[]> {
  const head: Item[] = []
  while (head.length < itemsMin) {
    const next = await blocks.next()
    if (next.done === true) break
    for (const item of next.value) head.push(item)
  }
  return head
}
