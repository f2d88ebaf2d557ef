// In: closed bars, as the market closes them. Out: batches of them sent to the lake process, one at a time. The one who
// adds a bar never waits: what the process cannot take stays here up to a bound, then bars are dropped, counted and told of.

import { BARS_SEND_EVERY_MS } from '../limits.ts'
import { startPeriodic } from '../periodic.ts'
import type { BarSink, StoreLog } from '../types.ts'
import { BarBuffer, type ClosedBar } from './bar-batch.ts'
import type { BarDelivery, BarReceipt } from './bars.ts'

/** Turns between two words on dropped bars. */
const DROPPED_TOLD_TURNS = 40

export interface BarOutbox extends BarSink {
  /** Sends what waits, and stops. */
  close(): Promise<void>
}

export interface BarOutboxOptions {
  /** Hands a batch to the lake process, with the market's word on how far it is complete. Not taken: no room just now. */
  send(delivery: BarDelivery): Promise<BarReceipt>
  /** Counts the lake processes there have been. */
  starts(): number
  log: StoreLog
}

export function openBarOutbox({ send, starts, log }: BarOutboxOptions): BarOutbox {
  const buffer = new BarBuffer()
  let completeToMs = 0
  let sentToMs = 0
  let droppedTold = 0
  let turnsUntold = 0
  let isFailing = false
  /** The lake process that has what was sent. */
  let start = starts()
  let sending: Promise<void> | null = null

  /** Sends all that waits now. What is added meanwhile comes with the next turn. */
  async function sendAll(): Promise<void> {
    if (start !== starts()) startAnew()
    const toMs = completeToMs
    let left = buffer.waiting
    while (left > 0 || toMs > sentToMs) {
      const batch = buffer.take() ?? { mints: [], numbers: new Float64Array(0) }
      left -= batch.mints.length
      // Only the last batch makes the bars up to that time complete.
      const isLast = left <= 0
      const arrived = await deliver(batch, isLast ? toMs : sentToMs)
      if (!arrived) return
      if (isLast) sentToMs = Math.max(sentToMs, toMs)
    }
  }

  /** A new process has none of the bars that the old one did not bring to the lake. */
  function startAnew(): void {
    start = starts()
    sentToMs = 0
    buffer.sendAgain()
  }

  async function deliver(batch: BarDelivery['batch'], toMs: number): Promise<boolean> {
    let arrived = false
    try {
      // Another process since: it is to have the bars before these first.
      if (start !== starts()) return false
      const { taken, inLakeBars } = await send({ first: buffer.handedOver, batch, completeToMs: toMs })
      arrived = taken
      buffer.confirm(inLakeBars)
    } finally {
      if (arrived) {
        buffer.sent(batch)
        isFailing = false
      }
      if (!arrived && batch.mints.length > 0) buffer.giveBack(batch)
    }
    return arrived
  }

  /** Not at every turn: a store that is away for long would fill the log. */
  function tellDropped(): void {
    if (buffer.dropped === droppedTold || ++turnsUntold < DROPPED_TOLD_TURNS) return
    turnsUntold = 0
    log.warn({ bars: buffer.dropped - droppedTold }, 'closed bars were dropped: the store does not keep up')
    droppedTold = buffer.dropped
  }

  function flush(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = null
      tellDropped()
    })
    return sending
  }

  function complain(error: unknown): void {
    if (!isFailing)
      log.warn({ error: String(error) }, 'closed bars could not be handed to the store; trying again')
    isFailing = true
  }

  const job = startPeriodic(flush, BARS_SEND_EVERY_MS, complain)

  return {
    add: (bar: ClosedBar) => buffer.add(bar),
    completeTo(timeMs) {
      completeToMs = Math.max(completeToMs, timeMs)
    },
    flush,
    stats: () => ({ waiting: buffer.waiting, dropped: buffer.dropped }),
    async close() {
      job.stop()
      // One turn may be under way that does not know the last bars.
      for (let turn = 0; turn < 2; turn++) {
        await flush().catch(complain)
      }
      if (buffer.waiting > 0) log.warn({ bars: buffer.waiting }, 'the last closed bars are lost')
    },
  }
}
