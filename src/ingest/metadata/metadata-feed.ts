import type { Clock } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { RecencyQueue } from '../recency-queue.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import {
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
}

interface KnownDocument {
  uri: string
  /** Until when it is not fetched again, on the monotonic clock. */
  untilMs: number
  /** The token that has it: one that gave way to others and came back has it no more. */
  heldSince: number | null
}

type Fault = DocumentFault | 'address_unknown' | 'malformed'

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
    const known = this.#known.renew(mint)
    const isOfToken = known?.uri === uri && known.heldSince === this.#options.heldSince(mint)
    const isFresh = isOfToken && this.#parts.clock.monotonicMs() < known.untilMs
    if (isFresh && !this.#uris.has(mint)) return
    this.#uris.set(mint, uri)
    if (!this.#running.has(mint)) this.#enqueue(mint)
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
      const forMs = fault === null ? METADATA_FRESH_MS : METADATA_RETRY_MS
      const untilMs = this.#parts.clock.monotonicMs() + forMs
      this.#known.set(mint, { uri, untilMs, heldSince: this.#options.heldSince(mint) })
      if (fault === null) this.#fetched++
      else if (fault !== 'stopped') this.#countFault(fault)
    } catch (error) {
      this.#parts.noteFault(error)
    }
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
    this.#parts.state.set('stopped')
  }

  describe(): FeedStatus {
    return this.#parts.status({
      fetched: this.#fetched,
      fetching: this.#running.size,
      waiting: this.#queue.size,
      displaced: this.#displaced,
      faults: { ...this.#faults },
    })
  }
}
