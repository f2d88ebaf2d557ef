import type { z } from 'zod'
import { isRecord } from '../../lib/record.ts'
import { truncateText } from '../../lib/text/truncate-text.ts'
import type { ingestAnswerSchema } from '../../schema/api/ingest.ts'
import { IGNORED_NAME_CHARACTERS_MAX, IGNORED_NAMES_MAX } from '../../schema/api/parts.ts'
import { AMOUNT_MAX, PRICE_MIN } from '../../schema/bounds.ts'
import { patchFieldsSchema } from '../../schema/datapoint.ts'
import {
  type EventRejection,
  type EventSink,
  type MarketEvent,
  PREFETCHED_MAX,
  type TradeEvent,
} from '../../schema/event.ts'
import { INGEST_ERRORS_MAX, INGEST_RECORD_BYTES_MAX } from '../limits.ts'
import { isFault, type RecordFault, readRecord, readTrade, timeFault } from './record.ts'

/** What became of the records of a body, of which blank lines are none. */
export type IngestResult = Omit<z.infer<typeof ingestAnswerSchema>, 'ok'>

const REJECTION_MESSAGES = {
  not_recorded:
    'the disk of the server takes no more events, which other nodes would lack: send it again later',
  late: 'ts: more than 5 s older than the newest trade of its token, or than the market’s time where the token was silent',
  sol_price_unknown: 'priceUsd is missing and no solPrice has come yet',
  sol_price_stale: 'priceUsd is missing and the latest solPrice is too old (max-age-ms of --sol-price)',
  price_unknown: `no price from ${PRICE_MIN} to ${AMOUNT_MAX} USD follows from this trade`,
  volume_too_large: `priceUsd times tokenAmount is above ${AMOUNT_MAX} USD`,
} as const satisfies Record<EventRejection, string>

/** Where records are delivered. */
export interface RecordSink extends EventSink {
  /** Called with the code of each record that is refused before it becomes an event. */
  countRejected?(code: string, sample: () => string): void
}

/** Delivers the records of one body to the sink and counts what became of each. A bad record does not affect the others. */
export class IngestBatch {
  /** Unix ms; the time of receipt of the records that are added now. */
  receivedAtMs: number
  #accepted = 0
  #rejected = 0
  /** The first `INGEST_ERRORS_MAX`. */
  readonly #errors: IngestResult['errors'] = []
  readonly #ignored = new Set<string>()
  /** Trades that were read and not delivered yet, PREFETCHED_MAX at most, and their mints. */
  readonly #trades: TradeEvent[] = []
  readonly #mints: string[] = []
  readonly #sink: RecordSink

  constructor(sink: RecordSink, receivedAtMs: number) {
    this.#sink = sink
    this.receivedAtMs = receivedAtMs
  }

  /** Whether the list of errors has reached its maximum; further ones are only counted. */
  get isErrorListFull(): boolean {
    return this.#errors.length >= INGEST_ERRORS_MAX
  }

  /** Adds one parsed record of unknown shape. A trade may wait for others until `flush`. @param areTextsOwn none of its texts is cut out of a larger one */
  addRecord(record: unknown, areTextsOwn = false): void {
    const trade = isRecord(record) && record.type === 'trade' ? readTrade(record, areTextsOwn) : null
    if (trade !== null) {
      this.#trades.push(trade)
      this.#mints.push(trade.mint)
      if (this.#trades.length === PREFETCHED_MAX) this.flush()
      return
    }
    this.flush()
    const event = readRecord(record, this.receivedAtMs)
    this.#deliver(event)
    if (!isFault(event) && event.type === 'patch') this.#noteIgnored(record as { fields: object })
  }

  /** Delivers the trades that wait. */
  flush(): void {
    const trades = this.#trades
    if (trades.length > 1) this.#sink.prefetch?.(this.#mints)
    for (let at = 0; at < trades.length; at++)
      this.#deliver(timeFault(trades[at].ts, this.receivedAtMs) ?? trades[at])
    trades.length = 0
    this.#mints.length = 0
  }

  #deliver(event: MarketEvent | RecordFault): void {
    if (isFault(event)) {
      this.#refuse(event.code, event.message)
      return
    }
    const rejection = this.#sink.apply(event, this.receivedAtMs)
    if (rejection === null) this.#accepted++
    else this.#note(rejection, REJECTION_MESSAGES[rejection])
  }

  /** Counts a record that is not delivered. */
  reject(code: string, message: string): void {
    this.flush()
    this.#refuse(code, message)
  }

  #refuse(code: string, message: string): void {
    this.#sink.countRejected?.(code, () => message)
    this.#note(code, message)
  }

  #note(code: string, message: string): void {
    if (!this.isErrorListFull) this.#errors.push({ index: this.#accepted + this.#rejected, code, message })
    this.#rejected++
  }

  #noteIgnored({ fields }: { fields: object }): void {
    for (const name of Object.keys(fields))
      if (!Object.hasOwn(patchFieldsSchema.shape, name) && this.#ignored.size < IGNORED_NAMES_MAX)
        this.#ignored.add(truncateText(name, IGNORED_NAME_CHARACTERS_MAX))
  }

  rejectTooLarge(): void {
    this.reject('record_too_large', `a record may hold at most ${INGEST_RECORD_BYTES_MAX} bytes`)
  }

  result(): IngestResult {
    this.flush()
    const counts = { accepted: this.#accepted, rejected: this.#rejected, errors: this.#errors }
    return this.#ignored.size === 0 ? counts : { ...counts, ignored: [...this.#ignored] }
  }
}

/** A body being read. */
export interface BodyReader {
  /** Adds the records of the next slice to the batch, and has all of them delivered. @returns whether any are left. */
  readSlice(): boolean
}
