import { AMOUNT_MAX, PRICE_MIN } from '../../schema/bounds.ts'
import type { EventRejection, EventSink, MarketEvent, TradeEvent } from '../../schema/event.ts'
import { INGEST_ERRORS_MAX, INGEST_RECORD_BYTES_MAX } from '../limits.ts'
import { isFault, type RecordFault, readRecord, timeFault } from './record.ts'

export interface IngestError {
  /** Which record, from 0; blank lines are not counted. */
  index: number
  code: string
  message: string
}

export interface IngestResult {
  accepted: number
  rejected: number
  /** The first `INGEST_ERRORS_MAX`. */
  errors: IngestError[]
}

const REJECTION_MESSAGES = {
  not_recorded:
    'the disk of the server takes no more events, which other nodes would lack: send it again later',
  late: 'ts: older than the bars still open to late trades',
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
  readonly #errors: IngestError[] = []
  readonly #sink: RecordSink

  constructor(sink: RecordSink, receivedAtMs: number) {
    this.#sink = sink
    this.receivedAtMs = receivedAtMs
  }

  /** Whether the list of errors has reached its maximum; further ones are only counted. */
  get isErrorListFull(): boolean {
    return this.#errors.length >= INGEST_ERRORS_MAX
  }

  /** Adds one parsed record of unknown shape. */
  addRecord(record: unknown): void {
    this.#deliver(readRecord(record, this.receivedAtMs))
  }

  /** Adds a trade whose fields were checked already; only its time is checked here. */
  addTrade(trade: TradeEvent): void {
    this.#deliver(timeFault(trade.ts, this.receivedAtMs) ?? trade)
  }

  #deliver(event: MarketEvent | RecordFault): void {
    if (isFault(event)) {
      this.reject(event.code, event.message)
      return
    }
    const rejection = this.#sink.apply(event, this.receivedAtMs)
    if (rejection === null) this.#accepted++
    else this.#note(rejection, REJECTION_MESSAGES[rejection])
  }

  /** Counts a record that is not delivered. */
  reject(code: string, message: string): void {
    this.#sink.countRejected?.(code, () => message)
    this.#note(code, message)
  }

  #note(code: string, message: string): void {
    if (!this.isErrorListFull) this.#errors.push({ index: this.#accepted + this.#rejected, code, message })
    this.#rejected++
  }

  rejectTooLarge(): void {
    this.reject('record_too_large', `a record may hold at most ${INGEST_RECORD_BYTES_MAX} bytes`)
  }

  result(): IngestResult {
    return { accepted: this.#accepted, rejected: this.#rejected, errors: this.#errors }
  }
}

/** A body being read. */
export interface BodyReader {
  /** Adds up to `recordsMax` more records to the batch. @returns whether any are left. */
  read(recordsMax: number): boolean
}
