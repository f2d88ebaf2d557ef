// Sends closed bars from the server to the lake process, in batches, one at a time. Adding a bar never waits: bars that the
// lake process cannot take stay here up to BARS_WAITING_MAX; beyond that they are dropped, counted and logged.

import type { ClosedBar } from '../../schema/bar.ts'
import type { RewoundSpan } from '../../schema/event.ts'
import { BARS_SEND_EVERY_MS } from '../limits.ts'
import { PeriodicJob } from '../periodic.ts'
import type { BarSink, StoreLog } from '../types.ts'
import type { SentBars } from './bar-audit.ts'
import { type BarBatch, BarBuffer } from './bar-batch.ts'
import { noBars } from './bar-counts.ts'
import type { BarDelivery, BarReceipt } from './bar-store.ts'

const nothingSent = (): SentBars => ({ toMs: 0, closed: noBars(), dropped: noBars() })

/** Dropped bars are logged at most once in so many flushes. */
const FLUSHES_PER_DROP_LOG = 40

export interface BarOutboxOptions {
  /** Sends a batch to the lake process. Resolves with `taken: false` where it has no room now. */
  send(delivery: BarDelivery): Promise<BarReceipt>
  /** How many lake processes have been started so far. */
  starts(): number
  log: StoreLog
}

export class BarOutbox implements BarSink {
  readonly #options: BarOutboxOptions
  readonly #buffer = new BarBuffer()
  readonly #job: PeriodicJob
  #completeToMs = 0
  /** All of this run: a new lake process is told them again. There is one for each word of an operator. */
  readonly #rewound: RewoundSpan[] = []
  /** How many of them the lake process that runs now was sent. */
  #rewoundSent = 0
  #sent = nothingSent()
  /** How many bars the engine has closed by its own count. */
  #countClosed: () => readonly number[] = () => this.#buffer.closed
  #droppedLogged = 0
  #flushesSinceDropLog = 0
  #isFailing = false
  /** `starts` of the lake process that has the bars sent so far. */
  #start: number
  #sending: Promise<void> | null = null

  constructor(options: BarOutboxOptions) {
    this.#options = options
    this.#start = options.starts()
    this.#job = new PeriodicJob(() => this.#flushQuietly(), BARS_SEND_EVERY_MS)
  }

  add(bar: ClosedBar): void {
    this.#buffer.add(bar)
  }

  completeTo(timeMs: number): void {
    this.#completeToMs = timeMs
  }

  noteRewound(span: RewoundSpan): void {
    this.#rewound.push(span)
  }

  compareWith(countClosed: () => readonly number[]): void {
    this.#countClosed = countClosed
  }

  /** What the lake process that runs now was sent. */
  get sent(): SentBars {
    return this.#sent
  }

  /** Sends every bar that was added before this call. */
  async flush(): Promise<void> {
    // What runs may have begun before the last of them were added.
    if (this.#sending !== null) await this.#sending.catch(() => undefined)
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null
      this.#logDropped()
    })
    await this.#sending
  }

  /** The earliest end of a bar that the lake may not have yet, Unix ms; Infinity: it has all. */
  get firstEndMs(): number {
    return this.#buffer.firstEndMs
  }

  /** So many of the bars that the present lake process was sent are in files. */
  confirm(inLakeBars: number): void {
    if (this.#start === this.#options.starts()) this.#buffer.confirm(inLakeBars)
  }

  stats(): { waiting: number; dropped: number } {
    return { waiting: this.#buffer.waiting, dropped: this.#buffer.dropped }
  }

  /** Sends what waits, and stops. */
  async close(): Promise<void> {
    this.#job.stop()
    await this.#flushQuietly()
    const { waiting } = this.#buffer
    if (waiting > 0) this.#options.log.warn({ bars: waiting }, 'the last closed bars are lost')
  }

  async #flushQuietly(): Promise<void> {
    await this.flush().catch((error: unknown) => this.#logFailure(error))
  }

  /** Sends all bars that wait at the start. Those added meanwhile are for the next flush. */
  async #sendAll(): Promise<void> {
    if (this.#start !== this.#options.starts()) this.#startOver()
    // Copies: all of them change while this waits.
    const end: SentBars = {
      toMs: this.#completeToMs,
      closed: [...this.#countClosed()],
      dropped: [...this.#buffer.droppedBars],
    }
    let left = this.#buffer.waiting
    let isSent = left === 0 && end.toMs === this.#sent.toMs && this.#rewoundSent === this.#rewound.length
    while (!isSent) {
      const batch = this.#buffer.take() ?? { mints: [], numbers: new Float64Array(0) }
      left -= batch.mints.length
      // Only the last batch makes the bars complete up to that time. What has gone back has with the first.
      isSent = left <= 0
      if (!(await this.#send(batch, isSent ? end.toMs : Math.min(end.toMs, this.#sent.toMs)))) return
    }
    this.#sent = end
  }

  /** A new lake process has none of the bars that the old one did not write to files. */
  #startOver(): void {
    this.#start = this.#options.starts()
    this.#sent = nothingSent()
    this.#rewoundSent = 0
    this.#buffer.requeueSent()
  }

  async #send(batch: BarBatch, completeToMs: number): Promise<boolean> {
    let wasTaken = false
    try {
      // A lake process that started since must get the bars before these first.
      if (this.#start !== this.#options.starts()) return false
      const { droppedBars, handedOver: first } = this.#buffer
      const rewound = this.#rewound.slice(this.#rewoundSent)
      const delivery = { first, batch, completeToMs, rewound, dropped: [...droppedBars] }
      const { taken, inLakeBars } = await this.#options.send(delivery)
      wasTaken = taken
      if (taken) this.#rewoundSent += rewound.length
      this.#buffer.confirm(inLakeBars)
    } finally {
      if (wasTaken) {
        this.#buffer.markSent(batch)
        this.#isFailing = false
      }
      if (!wasTaken && batch.mints.length > 0) this.#buffer.requeue(batch)
    }
    return wasTaken
  }

  #logDropped(): void {
    const dropped = this.#buffer.dropped - this.#droppedLogged
    if (dropped === 0 || ++this.#flushesSinceDropLog < FLUSHES_PER_DROP_LOG) return
    this.#flushesSinceDropLog = 0
    this.#options.log.warn({ bars: dropped }, 'closed bars were dropped: the store does not keep up')
    this.#droppedLogged = this.#buffer.dropped
  }

  /** Logs the first of a series of failures. */
  #logFailure(error: unknown): void {
    const message = 'closed bars could not be handed to the store; trying again'
    if (!this.#isFailing) this.#options.log.warn({ error: String(error) }, message)
    this.#isFailing = true
  }
}
