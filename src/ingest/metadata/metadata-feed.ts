import type { Clock } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import type { EventSink } from '../../schema/event.ts'
import { EventCounters } from '../event-counters.ts'
import { FeedState } from '../feed-state.ts'
import { LogThrottle } from '../log-throttle.ts'
import { RecencyQueue } from '../recency-queue.ts'
import { SinkFaults } from '../sink-faults.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import {
  METADATA_CONCURRENCY,
  METADATA_FRESH_MS,
  METADATA_HOST_PER_MINUTE,
  METADATA_HOSTS_MAX,
  METADATA_KNOWN_MAX,
  METADATA_LOG_EVERY_MS,
  METADATA_RETRY_MS,
  METADATA_WAITING_MAX,
} from './limits.ts'
import { type DocumentFault, fetchPublicDocument, type PublicRequestOptions } from './public-request.ts'
import { fetchableAddress, readTokenDocument } from './token-document.ts'

export const METADATA_FEED = 'metadata'
const MINUTE_MS = 60_000

export interface MetadataOptions extends Omit<PublicRequestOptions, 'admit'> {
  /** A gateway of IPFS; '': documents there are not fetched. */
  gateway: string
  /** Whether the market holds a token: no other is made by its document. */
  holds(mint: string): boolean
  hostPerMinute?: number
}

export interface MetadataFeed extends Feed {
  /** Fetches a token's document, unless it is known. Returns at once. */
  want(mint: string, uri: string): void
  /** A sink that passes all events on to `sink` and fetches the document of each token that is launched. */
  watch(sink: EventSink): EventSink
}

/** Starts the feed of the documents that tokens name. Never part of a submission. */
export const startMetadataFeed = (
  options: MetadataOptions,
  sink: EventSink,
  clock: Clock,
  log: FeedLog,
): MetadataFeed => new MetadataFetcher(options, sink, clock, log)

interface KnownDocument {
  uri: string
  /** Until when it is not fetched again, on the monotonic clock. */
  untilMs: number
}

type Fault = DocumentFault | 'address_unknown' | 'malformed'

class MetadataFetcher implements MetadataFeed {
  readonly ready = Promise.resolve()
  #fetched = 0
  #displaced = 0
  readonly #faults: Partial<Record<Fault, number>> = {}
  readonly #queue = new RecencyQueue(METADATA_WAITING_MAX)
  /** Of tokens that wait or are being fetched. */
  readonly #uris = new Map<string, string>()
  readonly #running = new Map<string, Promise<void>>()
  readonly #known = new BoundedMap<string, KnownDocument>({ entriesMax: METADATA_KNOWN_MAX })
  /** Requests by host in its present minute. */
  readonly #hosts = new BoundedMap<string, { sinceMs: number; count: number }>({
    entriesMax: METADATA_HOSTS_MAX,
  })
  readonly #throttle = new LogThrottle(METADATA_LOG_EVERY_MS)
  readonly #options: MetadataOptions
  readonly #state: FeedState
  readonly #counters: EventCounters
  readonly #sinkFaults: SinkFaults
  readonly #clock: Clock
  readonly #log: FeedLog
  readonly #stopping = new AbortController()

  constructor(options: MetadataOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.#options = options
    this.#state = new FeedState(clock, 'running')
    this.#counters = new EventCounters(METADATA_FEED, sink, clock, log)
    this.#sinkFaults = new SinkFaults(METADATA_FEED, this.#counters, clock, log)
    this.#clock = clock
    this.#log = log
  }

  want(mint: string, uri: string): void {
    if (this.#stopping.signal.aborted || this.#running.has(mint)) return
    const known = this.#known.renew(mint)
    if (known?.uri === uri && this.#clock.monotonicMs() < known.untilMs) return
    this.#uris.set(mint, uri)
    const displaced = this.#queue.add(mint)
    if (displaced !== null) {
      this.#displaced++
      this.#uris.delete(displaced)
    }
    this.#fetchNext()
  }

  #fetchNext(): void {
    while (this.#running.size < METADATA_CONCURRENCY && !this.#stopping.signal.aborted) {
      const mint = this.#queue.take()
      if (mint === null) return
      const fetching = this.#fetch(mint, this.#uris.get(mint) ?? '').finally(() => {
        this.#running.delete(mint)
        this.#fetchNext()
      })
      this.#uris.delete(mint)
      this.#running.set(mint, fetching)
    }
  }

  /** Does not reject. */
  async #fetch(mint: string, uri: string): Promise<void> {
    try {
      const fault = await this.#apply(mint, uri)
      const forMs = fault === null ? METADATA_FRESH_MS : METADATA_RETRY_MS
      this.#known.set(mint, { uri, untilMs: this.#clock.monotonicMs() + forMs })
      if (fault === null) this.#fetched++
      else if (fault !== 'stopped') this.#countFault(fault)
    } catch (error) {
      this.#sinkFaults.note(error)
    }
  }

  /** @returns why the document could not be had; null: it could */
  async #apply(mint: string, uri: string): Promise<Fault | null> {
    const { gateway, holds } = this.#options
    const { signal } = this.#stopping
    const address = fetchableAddress(uri, gateway)
    if (address === null) return 'address_unknown'
    const admit = (host: string) => this.#admit(host)
    const answer = await fetchPublicDocument(address, signal, { ...this.#options, admit })
    if (!answer.ok) return answer.fault
    const fields = readTokenDocument(answer.text, gateway)
    if (fields === null) return 'malformed'
    if (signal.aborted) return 'stopped'
    const nowMs = this.#clock.now()
    if (Object.keys(fields).length > 0 && holds(mint))
      this.#counters.apply({ type: 'patch', mint, ts: nowMs, fields }, nowMs)
    return null
  }

  #admit(host: string): boolean {
    const { hostPerMinute = METADATA_HOST_PER_MINUTE } = this.#options
    const nowMs = this.#clock.monotonicMs()
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
    const suppressed = this.#throttle.due(this.#clock.monotonicMs())
    if (suppressed !== null)
      this.#log.info({ feed: METADATA_FEED, fault, suppressed }, 'the document of a token could not be had')
  }

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
    this.#stopping.abort()
    await Promise.all(this.#running.values())
    this.#state.set('stopped')
  }

  describe(): FeedStatus {
    return {
      feed: METADATA_FEED,
      ...this.#state.describe(),
      simulated: false,
      fetched: this.#fetched,
      fetching: this.#running.size,
      waiting: this.#queue.size,
      displaced: this.#displaced,
      faults: { ...this.#faults },
      ...this.#counters.describe(),
    }
  }
}
