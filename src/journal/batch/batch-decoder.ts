// Decodes the frame of a batch. The CRC proves that it is what was written; lengths are checked all the same, so that a fault of a
// writer is damage, and not a crash of its readers.
import { z } from 'zod'
import { recordFrom } from '../../lib/record.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import type { EntriesHead } from '../../lib/segments/types.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import type { EventBatch, RecordedEvent, TradeColumns } from '../event-batch.ts'
import { FRAME_HEAD_BYTES, hasQuotes } from '../segments/format.ts'
import { BATCH_HEAD_BYTES, HEAD_FIELDS, NO_TEXT, NUMBER_COLUMNS, QUOTE_COLUMNS } from './batch-layout.ts'

type Head = Readonly<Record<(typeof HEAD_FIELDS)[number], number>>

/** The columns of one trade besides its texts: nine doubles, an index, two lengths, and two bytes. */
const TRADE_BYTES = NUMBER_COLUMNS.length * 8 + 4 + 2 * 2 + 2
/** Those of a trade in a batch with quotes: doubles, and the index of the quote's mint. */
const QUOTE_BYTES = QUOTE_COLUMNS.length * 8 + 4

/** Null where the frame is too short, or its fields contradict each other. */
function readHead(frame: Buffer): Head | null {
  if (frame.length < FRAME_HEAD_BYTES + BATCH_HEAD_BYTES) return null
  const values = HEAD_FIELDS.map((name, index) => [name, frame.readDoubleLE(FRAME_HEAD_BYTES + index * 8)])
  const head: Head = Object.fromEntries(values)
  if (!Object.values(head).every((value) => Number.isSafeInteger(value) && value >= 0)) return null
  const { trades, others, mints, feeds, textUnits, textBytes, jsonBytes } = head
  const tradeBytes = TRADE_BYTES + (hasQuotes(frame) ? QUOTE_BYTES : 0)
  const bytes = trades * tradeBytes + 2 * (mints + feeds) + textBytes + jsonBytes
  const isWhole = FRAME_HEAD_BYTES + BATCH_HEAD_BYTES + bytes === frame.length
  const hasText = textBytes === textUnits || textBytes === 2 * textUnits
  return isWhole && hasText && trades + others > 0 && head.firstEventNo > 0 ? head : null
}

/** The numbers of the batch in a whole frame; null where it holds none. */
export function decodeBatchHead(frame: Buffer): EntriesHead | null {
  const head = readHead(frame)
  if (head === null) return null
  const { firstEventNo: firstNo, syncedEventNo: durableNo, trades, others } = head
  return { kind: 'entries', firstNo, lastNo: firstNo + trades + others - 1, durableNo }
}

/** Cuts columns off the front of a frame. Each is a copy, so that it is aligned and does not keep the frame alive. */
class Columns {
  #at = FRAME_HEAD_BYTES + BATCH_HEAD_BYTES
  readonly #frame: Buffer

  constructor(frame: Buffer) {
    this.#frame = frame
  }

  take(bytes: number): ArrayBuffer {
    const { buffer, byteOffset } = this.#frame
    const copy = new Uint8Array(bytes)
    copy.set(new Uint8Array(buffer, byteOffset + this.#at, bytes))
    this.#at += bytes
    return copy.buffer
  }

  get rest(): Buffer {
    return this.#frame.subarray(this.#at)
  }
}

/** Cuts texts off the front of all texts. Strings are made from bytes: parts of one long string would keep it alive. */
class Texts {
  #at = 0
  readonly #bytes: Buffer
  readonly #unitBytes: number

  constructor(bytes: Buffer, units: number) {
    this.#bytes = bytes
    this.#unitBytes = bytes.length === units ? 1 : 2
  }

  take(units: number): string {
    const from = this.#at
    this.#at += units * this.#unitBytes
    return this.#unitBytes === 1
      ? this.#bytes.toString('latin1', from, this.#at)
      : this.#bytes.toString('utf16le', from, this.#at)
  }

  takeOrNull(units: number): string | null {
    return units === NO_TEXT ? null : this.take(units)
  }
}

/** Decodes the batch in a whole frame; null where it holds none. */
export function decodeBatch(frame: Buffer): EventBatch | null {
  const head = readHead(frame)
  if (head === null) return null
  const { firstEventNo, trades: count, others, textUnits, textBytes } = head
  const columns = new Columns(frame)
  const takeNumbers = () => new Float64Array(columns.take(count * 8))
  const numbers = recordFrom(NUMBER_COLUMNS, takeNumbers)
  const quoteNumbers = hasQuotes(frame) ? recordFrom(QUOTE_COLUMNS, takeNumbers) : null
  const mintIndex = new Uint32Array(columns.take(count * 4))
  /** From 1; 0: none. */
  const quoteIndex = quoteNumbers && new Uint32Array(columns.take(count * 4))
  const [walletUnits, txUnits, mintUnits, feedUnits] = [count, count, head.mints, head.feeds].map(
    (length) => new Uint16Array(columns.take(length * 2)),
  )
  const isBuy = new Uint8Array(columns.take(count))
  const feedIndex = new Uint8Array(columns.take(count))
  const { rest } = columns
  const texts = new Texts(rest.subarray(0, textBytes), textUnits)
  const mints = Array.from(mintUnits, (units) => texts.take(units))
  const feeds = Array.from(feedUnits, (units) => texts.take(units))
  const [wallet, tx]: (string | null)[][] = [[], []]
  for (let trade = 0; trade < count; trade++) {
    wallet.push(texts.takeOrNull(walletUnits[trade]))
    tx.push(texts.takeOrNull(txUnits[trade]))
  }
  const events = readOthers(rest.toString('utf8', textBytes), head)
  if (events === null || mintIndex.some((index) => index >= mints.length)) return null
  if (quoteIndex?.some((index) => index > mints.length) === true) return null
  const trades: TradeColumns = {
    count,
    eventNo: numberTrades(firstEventNo, count, events),
    ...numbers,
    isBuy,
    quotes: quoteNumbers &&
      quoteIndex && {
        ...quoteNumbers,
        quoteMint: Array.from(quoteIndex, (index) => (index === 0 ? null : mints[index - 1])),
      },
    mint: Array.from(mintIndex, (index) => mints[index]),
    feed: Array.from(feedIndex, (index) => feeds[index]),
    wallet,
    tx,
  }
  return { firstEventNo, lastEventNo: firstEventNo + count + others - 1, trades, events }
}

/** Where the event is in the batch, its times, its feed, and the event, whose shape the writer has checked. */
const othersSchema = z.array(
  z.tuple([z.number().int().min(0), z.number(), z.number(), z.string(), z.looseObject({ type: z.string() })]),
)

function readOthers(json: string, { firstEventNo, trades, others }: Head): RecordedEvent[] | null {
  const parsed = parseJson(`[${json}]`)
  const read = safeParse(othersSchema, parsed)
  if (!read.success || read.data.length !== others) return null
  let previous = -1
  for (const [index] of read.data) {
    if (index <= previous || index >= trades + others) return null
    previous = index
  }
  return read.data.map(([index, atMs, receivedAtMs, feed, event]) => ({
    eventNo: firstEventNo + index,
    atMs,
    receivedAtMs,
    feed,
    // The CRC proves that it is the event that was encoded.
    event: event as RecordedEvent['event'],
  }))
}

/** Trades have the numbers that the other events leave. */
function numberTrades(firstEventNo: number, count: number, others: readonly RecordedEvent[]): Float64Array {
  const numbers = new Float64Array(count)
  let eventNo = firstEventNo
  let other = 0
  for (let trade = 0; trade < count; trade++) {
    while (other < others.length && others[other].eventNo === eventNo) {
      other++
      eventNo++
    }
    numbers[trade] = eventNo++
  }
  return numbers
}
