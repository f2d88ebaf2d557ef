import type { Clock } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { RecencyQueue } from '../recency-queue.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import {
  METADATA_ATTEMPTS_MAX,
  METADATA_CONCURRENCY,
  METADATA_FRESH_MS,
  METADATA_HOST_PER_MINUTE,
  METADATA_HOSTS_MAX,
  METADATA_KNOWN_MAX,
  METADATA_RETRY_MS,
  METADATA_WAITING_MAX,
} from './limits.ts'
import { type DocumentFault, fetchPublicDocument, type PublicRequestOptions } from './public-request.ts'
import { fetchableAddress, readTokenDocument } from './token-document.ts'

export const METADATA_FEED = 'metadata'

export interface MetadataOptions extends Omit<PublicRequestOptions, 'admit'> {
  /** A gateway of IPFS; '': documents there are not fetched. */
  gateway: string
  /** Since when the market holds a token; null: it does not, and none is made by its document. */
  heldSince(mint: string): number | null
  hostPerMinute?: number
  retryMs?: number
}

interface KnownDocument {
  uri: string
  /** Until when it is not fetched again, on the monotonic clock. */
  untilMs: number
  /** The token that has it: one that gave way to others and came back has it no more. */
  heldSince: number | null
  /** Attempts that have failed, since it could be had the last time. */
  failures: number
}

type Fault = DocumentFault | 'address_unknown' | 'malformed'
/** Of these another try may be without: documents in IPFS are often to be had some minutes after the launch. */
const PASSING: readonly Fault[] = ['timeout', 'unreachable', 'status', 'host_budget']

/** The feed of the documents that tokens name. Never part of a submission. */
export class MetadataFeed implements Feed {
  readonly ready = Promise.resolve()
  #fetched = 0
  #displaced = 0
  readonly #faults: Partial<Record<Fault, number>> = {}
  readonly #queue = new RecencyQueue(METADATA_WAITING_MAX)
  /** The latest address of each token that waits or whose document is being fetched. */
  readonly #uris = new Map<string, string>()
  readonly #running = new Map<string, Promise<void>>()
  readonly #known = new BoundedMap<string, KnownDocument>({ entriesMax: METADATA_KNOWN_MAX })
  /** Timers of documents that are fetched again. */
  readonly #retries = new BoundedMap<string, NodeJS.Timeout>({
    entriesMax: METADATA_WAITING_MAX,
    onEvict: (_mint, timer) => clearTimeout(timer),
  })
  /** Requests by host in its present minute. */
  readonly #hosts = new BoundedMap<string, { sinceMs: number; count: number }>({
    entriesMax: METADATA_HOSTS_MAX,
  })
  readonly #options: MetadataOptions
  readonly #parts: FeedParts

  constructor(options: MetadataOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.#options = options
    this.#parts = new FeedParts(METADATA_FEED, sink, clock, log, 'running')
  }

  /** Fetches a token's document, unless it is known. The latest address counts. Returns at once. */
  want(mint: string, uri: string): void {
    if (this.#parts.stopping.signal.aborted) return
    const known = this.#knownOf(mint, uri)
    const isFresh = known !== undefined && this.#parts.clock.monotonicMs() < known.untilMs
    if (isFresh && !this.#uris.has(mint)) return
    this.#uris.set(mint, uri)
    if (!this.#running.has(mint)) this.#enqueue(mint)
  }

  /** What is known of the document at this address, for the token that is held now. */
  #knownOf(mint: string, uri: string): KnownDocument | undefined {
    const known = this.#known.renew(mint)
    return known?.uri === uri && known.heldSince === this.#options.heldSince(mint) ? known : undefined
  }

  #enqueue(mint: string): void {
    const displaced = this.#queue.add(mint)
    if (displaced !== null) {
      this.#displaced++
      this.#uris.delete(displaced)
    }
    this.#fetchNext()
  }

  #fetchNext(): void {
    while (this.#running.size < METADATA_CONCURRENCY && !this.#parts.stopping.signal.aborted) {
      const mint = this.#queue.take()
      if (mint === null) return
      const uri = this.#uris.get(mint) ?? ''
      const fetching = this.#fetch(mint, uri).finally(() => {
        this.#running.delete(mint)
        if (this.#uris.get(mint) !== uri) this.#enqueue(mint)
        else {
          this.#uris.delete(mint)
          this.#fetchNext()
        }
      })
      this.#running.set(mint, fetching)
    }
  }

  /** Does not reject. */
  async #fetch(mint: string, uri: string): Promise<void> {
    try {
      const fault = await this.#apply(mint, uri)
      this.#learn(mint, uri, fault)
      if (fault === null) this.#fetched++
      else if (fault !== 'stopped') this.#countFault(fault)
    } catch (error) {
      this.#parts.noteFault(error)
    }
  }

  #learn(mint: string, uri: string, fault: Fault | null): void {
    const { heldSince, retryMs = METADATA_RETRY_MS } = this.#options
    const failures = fault === null ? 0 : (this.#knownOf(mint, uri)?.failures ?? 0) + 1
    const untilMs = this.#parts.clock.monotonicMs() + (fault === null ? METADATA_FRESH_MS : retryMs)
    this.#known.set(mint, { uri, untilMs, heldSince: heldSince(mint), failures })
    clearTimeout(this.#retries.get(mint))
    this.#retries.delete(mint)
    if (fault === null || !PASSING.includes(fault) || failures >= METADATA_ATTEMPTS_MAX) return
    // Its token has given way meanwhile: nothing would take the document.
    if (heldSince(mint) === null) return
    const waitMs = retryMs * 2 ** (failures - 1)
    this.#retries.set(mint, setTimeout(() => this.#retry(mint, uri), waitMs).unref())
  }

  /** Unless the token has given way, or has another address, or waits already. */
  #retry(mint: string, uri: string): void {
    this.#retries.delete(mint)
    if (this.#uris.has(mint) || this.#knownOf(mint, uri) === undefined) return
    this.#uris.set(mint, uri)
    this.#enqueue(mint)
  }

  /** @returns why the document could not be had; null: it could */
  async #apply(mint: string, uri: string): Promise<Fault | null> {
    const { gateway, heldSince } = this.#options
    const { signal } = this.#parts.stopping
    const address = fetchableAddress(uri, gateway)
    if (address === null) return 'address_unknown'
    const admit = (host: string) => this.#admit(host)
    const answer = await fetchPublicDocument(address, signal, { ...this.#options, admit })
    if (!answer.ok) return answer.fault
    const fields = readTokenDocument(answer.text, gateway)
    if (fields === null) return 'malformed'
    if (signal.aborted || this.#uris.get(mint) !== uri) return 'stopped'
    const nowMs = this.#parts.clock.now()
    if (Object.keys(fields).length > 0 && heldSince(mint) !== null)
      this.#parts.counters.apply({ type: 'patch', mint, ts: nowMs, fields }, nowMs)
    return null
  }

  #admit(host: string): boolean {
    const { hostPerMinute = METADATA_HOST_PER_MINUTE } = this.#options
    const nowMs = this.#parts.clock.monotonicMs()
    const known = this.#hosts.get(host)
    const present =
      known !== undefined && nowMs - known.sinceMs < MINUTE_MS ? known : { sinceMs: nowMs, count: 0 }
    if (present.count >= hostPerMinute) return false
    this.#hosts.set(host, { ...present, count: present.count + 1 })
    return true
  }

  /** The address is a stranger's: it is not logged. */
  #countFault(fault: Fault): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1
    this.#parts.logSeldom('info', { fault }, 'the document of a token could not be had')
  }

  /** A sink that passes all events on to `sink` and fetches the document of each token that is launched. */
  watch(sink: EventSink): EventSink {
    return {
      prefetch: (mints) => sink.prefetch?.(mints),
      apply: (event, receivedAtMs) => {
        const rejection = sink.apply(event, receivedAtMs)
        if (rejection === null && event.type === 'token' && event.uri) this.want(event.mint, event.uri)
        return rejection
      },
    }
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await Promise.all(this.#running.values())
    for (const { value } of this.#retries.entries()) clearTimeout(value)
    this.#retries.clear()
    this.#parts.state.set('stopped')
  }

  describe(): FeedStatus {
    return this.#parts.status({
      fetched: this.#fetched,
      fetching: this.#running.size,
      waiting: this.#queue.size,
      retrying: this.#retries.size,
      displaced: this.#displaced,
      faults: { ...this.#faults },
    })
  }
}
