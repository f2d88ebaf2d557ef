// Which events of a transaction are new: notifications may be repeated, come from both subscriptions, or end early.
import pLimit from 'p-limit'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { within } from '../../lib/wait.ts'
import type { RecordedPlace } from '../types.ts'
import { wait } from '../wait.ts'
import {
  FETCH_ATTEMPTS_MAX,
  FETCH_CONCURRENCY,
  FETCH_RETRY_MS,
  FETCHES_WAITING_MAX,
  PREDECESSOR_MS_MAX,
  TRANSACTIONS_SEEN_MAX,
} from './limits.ts'
import { type Rpc, verdictOf } from './rpc.ts'
import { eventsInTransaction, type RawEvent, readTransaction } from './transaction-events.ts'

/** Which events of a transaction were taken. */
export class SeenTransactions {
  duplicates = 0
  /** Of the runs before: the trades that are recorded. Others may have waited for their predecessor, and are new. */
  readonly #recorded = new BoundedMap<string, number[]>({ entriesMax: TRANSACTIONS_SEEN_MAX })
  readonly #fetched = new BoundedMap<string, true>({ entriesMax: TRANSACTIONS_SEEN_MAX })
  /** Of this run how many: they are taken in their order, so the number says which. */
  readonly #taken = new BoundedMap<string, number>({ entriesMax: TRANSACTIONS_SEEN_MAX })

  /** @param recorded what the runs before have recorded, oldest first */
  constructor(recorded: Iterable<RecordedPlace> = []) {
    for (const { tx, eventIndex } of recorded) {
      const indexes = this.#recorded.get(tx)
      if (indexes === undefined) this.#recorded.set(tx, [eventIndex])
      else indexes.push(eventIndex)
    }
  }

  /** The events that were not taken before. They count as taken. */
  take(signature: string, events: readonly RawEvent[]): readonly RawEvent[] {
    const taken = this.#taken.renew(signature) ?? 0
    const recorded = this.#recorded.get(signature)
    const fresh = events.slice(taken).filter(({ index }) => !recorded?.includes(index))
    this.duplicates += events.length - fresh.length
    this.#taken.set(signature, Math.max(taken, events.length))
    return fresh
  }

  /** Whether a transaction was taken in this run. */
  isTaken(signature: string): boolean {
    return this.#taken.has(signature)
  }

  /** The rest of a transaction with a truncated log is wanted. @returns whether it was not before */
  markFetched(signature: string): boolean {
    const isNew = !this.#fetched.has(signature)
    if (isNew) this.#fetched.set(signature, true)
    return isNew
  }
}

export interface FetchHandlers {
  onEvents(signature: string, slot: number, events: RawEvent[]): void
  onLost(signature: string, reason: string): void
}

/**
 * Fetches transactions whose log was truncated, and reads their events from the inner instructions. A few are asked for at once, and told
 * in the order in which they came: of a token the last trade is its price. One that nobody has holds up those behind it as long as a trade
 * waits for its predecessor, no longer: they would be too late.
 */
export class TransactionFetcher {
  fetched = 0
  /** Transactions that could not be had, or were too many: their events are missing. */
  lost = 0
  readonly #turns = pLimit(FETCH_CONCURRENCY)
  /** How many are not told yet; when the newest of them is, and when all are. */
  #waiting = 0
  #newestTold: Promise<void> = Promise.resolve()
  #allTold: Promise<unknown> = this.#newestTold
  readonly #rpc: Rpc
  readonly #commitment: string
  readonly #signal: AbortSignal
  readonly #handlers: FetchHandlers

  constructor(rpc: Rpc, commitment: string, signal: AbortSignal, handlers: FetchHandlers) {
    this.#rpc = rpc
    // A transaction cannot be fetched before it is confirmed.
    this.#commitment = commitment === 'processed' ? 'confirmed' : commitment
    this.#signal = signal
    this.#handlers = handlers
  }

  /** Resolves when all that was to be fetched by now is told; null: it is. */
  get pending(): Promise<unknown> | null {
    return this.#waiting === 0 ? null : this.#allTold
  }

  fetch(signature: string, slot: number): void {
    if (this.#waiting >= FETCHES_WAITING_MAX) {
      this.#lose(signature, 'too many transactions with a truncated log')
      return
    }
    this.#waiting++
    const asking = this.#turns(() => this.#ask(signature))
    this.#newestTold = this.#tell(signature, slot, asking, this.#newestTold)
    // Without a value: that of all before would be kept.
    this.#allTold = Promise.all([this.#allTold, this.#newestTold]).then(() => undefined)
  }

  async #tell(signature: string, slot: number, asking: Promise<RawEvent[] | string>, before: Promise<void>) {
    const answer = await asking
    await within(PREDECESSOR_MS_MAX, before)
    this.#waiting--
    if (typeof answer !== 'string') {
      this.fetched++
      this.#handlers.onEvents(signature, slot, answer)
    } else if (!this.#signal.aborted) this.#lose(signature, answer)
  }

  #lose(signature: string, reason: string): void {
    this.lost++
    this.#handlers.onLost(signature, reason)
  }

  /** Its events, or why they cannot be had. */
  async #ask(signature: string): Promise<RawEvent[] | string> {
    const options = { encoding: 'json', maxSupportedTransactionVersion: 0, commitment: this.#commitment }
    const tries = Array<number>(this.#rpc.endpointCount).fill(0)
    let reason = 'no endpoint has it'
    for (let attempt = 0; attempt < FETCH_ATTEMPTS_MAX && !this.#signal.aborted; ) {
      const answer = await this.#rpc.call('getTransaction', [signature, options], this.#signal, tries)
      const { endpoint = 0 } = answer
      const isThere = answer.ok && answer.result !== null
      const read = isThere ? readEvents(answer.result, signature) : null
      if (read !== null && typeof read !== 'string') return read
      reason = answer.ok ? (read ?? reason) : answer.message
      tries[endpoint]++
      const verdict = answer.ok ? null : verdictOf(answer)
      if (isThere || verdict === 'refused' || verdict === 'pruned') {
        // What this endpoint says stays so: another one that has not said so is asked at once.
        tries[endpoint] = Number.POSITIVE_INFINITY
        if (Math.min(...tries) === Number.POSITIVE_INFINITY) break
      } else if (++attempt < FETCH_ATTEMPTS_MAX) await wait(FETCH_RETRY_MS, this.#signal)
    }
    return reason
  }
}

/** All events of a transaction; or why an answer does not say them. */
function readEvents(answer: unknown, signature: string): RawEvent[] | string {
  const transaction = readTransaction(answer)
  if (transaction === null || transaction.transaction.signatures[0] !== signature)
    return 'the answer is no transaction'
  const { events, isTruncated } = eventsInTransaction(transaction)
  // Nodes keep inner instructions where they are told to: without them the end of the log is nowhere.
  return isTruncated ? 'the endpoint keeps no inner instructions' : events
}
