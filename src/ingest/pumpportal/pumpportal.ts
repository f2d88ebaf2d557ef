// The feed of PumpPortal: one WebSocket connection at a time, with reconnects. The address is never logged: it holds the API key.
import type { Clock } from '../../lib/clock.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import type { EventSink } from '../../schema/event.ts'
import { FeedParts } from '../feed-parts.ts'
import { UPSTREAM_SEEN_MAX, UPSTREAM_STEADY_MS, UPSTREAM_TRADE_KEYS_MAX } from '../limits.ts'
import type { SourceLink } from '../source-link.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import { UnpricedTrades } from '../unpriced-trades.ts'
import {
  type Reconnects,
  reconnectMs,
  type UpstreamEnd,
  UpstreamSocket,
  type UpstreamTiming,
} from '../upstream-socket.ts'
import { wait } from '../wait.ts'
import { type ParsedFrame, parseFrame } from './pumpportal-frame.ts'
import { TradeSubscriptions } from './trade-subscriptions.ts'

export interface PumpPortalOptions extends UpstreamTiming, Reconnects {
  url: string
  /** Needed for trades; without it PumpPortal sends only launches and migrations. */
  apiKey?: string | null
  /** Tokens of the runs before, whose trades are to come too: the one that is given up first where there are too many is the first. */
  tradedBefore?: readonly string[]
  /** After a connection that lasted this long, the wait before the next attempt is the shortest again. */
  steadyMs?: number
}

const MESSAGE_CHARS_MAX = 200

/**
 * The feed is ready after its first attempt to connect, successful or not, and tries again for as long as it runs. Each
 * frame is applied once, and each of several trades of one transaction. Data may be missing until PumpPortal has sent the first
 * frame over a connection, and again from the last frame of a connection that is lost: both is told to the market.
 */
export class PumpPortal implements Feed {
  readonly ready: Promise<void>
  #connects = 0
  #disconnects = 0
  #duplicates = 0
  /** Attempts since the last connection that lasted. */
  #attempt = 0
  #latestFrameAtMs: number | null = null
  /** Until when nothing is missing: the time of the latest frame that was no error, at first that of the start. */
  #wholeUntilMs: number
  #latestError: { message: string; atMs: number } | null = null
  /** When the current connection opened, on the monotonic clock; null while there is none. */
  #openedAtMs: number | null = null
  /** Keys of recent frames. */
  readonly #seen = new BoundedMap<string, true>({ entriesMax: UPSTREAM_SEEN_MAX })
  readonly #subscriptions = new TradeSubscriptions(UPSTREAM_TRADE_KEYS_MAX)
  readonly #options: PumpPortalOptions
  readonly #address: string
  readonly #parts: FeedParts
  readonly #link: SourceLink
  readonly #priced: UnpricedTrades
  readonly #running: Promise<void>
  readonly #firstAttempt = Promise.withResolvers<void>()

  constructor(options: PumpPortalOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.#options = options
    const address = new URL(options.url)
    if (options.apiKey) {
      address.searchParams.set('api-key', options.apiKey)
      for (const mint of options.tradedBefore ?? []) this.#subscriptions.add(mint)
    }
    this.#address = address.href
    this.#parts = new FeedParts('pumpportal', sink, clock, log)
    this.#link = this.#parts.linkOf()
    this.#priced = new UnpricedTrades(this.#parts.counters, this.#parts.linkOf('solPrice'))
    this.#wholeUntilMs = clock.now()
    this.ready = this.#firstAttempt.promise
    this.#running = this.#run()
  }

  async #run(): Promise<void> {
    const { signal } = this.#parts.stopping
    this.#link.lose(this.#wholeUntilMs, this.#parts.clock.now())
    while (!signal.aborted) {
      const end = await this.#connectOnce().catch((error) => ({ reason: errorMessage(error) }))
      if (!signal.aborted) this.#onClose(end)
      this.#firstAttempt.resolve()
      await wait(reconnectMs(this.#attempt++, end, this.#options), signal)
    }
    this.#parts.state.set('stopped')
  }

  /** Connects once. Resolves when the socket is closed again. */
  async #connectOnce(): Promise<UpstreamEnd> {
    const socket = new UpstreamSocket(
      this.#address,
      {
        onOpen: () => this.#onOpen(socket),
        onFrame: (text) => this.#onFrame(socket, text),
        onHandlerError: (error) => this.#parts.noteFault(error),
      },
      this.#parts.stopping.signal,
      this.#options,
    )
    return socket.ended
  }

  #onOpen(socket: UpstreamSocket): void {
    this.#connects++
    this.#openedAtMs = this.#parts.clock.monotonicMs()
    this.#firstAttempt.resolve()
    this.#parts.log.info({ feed: 'pumpportal', connects: this.#connects }, 'connected')
    this.#send(socket, { method: 'subscribeNewToken' })
    this.#send(socket, { method: 'subscribeMigration' })
    for (const message of this.#subscriptions.subscribeAll()) this.#send(socket, message)
  }

  #onClose({ reason }: UpstreamEnd): void {
    const openedAtMs = this.#openedAtMs
    this.#openedAtMs = null
    this.#parts.state.set('reconnecting')
    const nowMs = this.#parts.clock.now()
    this.#latestError = { message: this.#withoutKey(reason), atMs: nowMs }
    const details = { error: this.#latestError.message }
    const { steadyMs = UPSTREAM_STEADY_MS } = this.#options
    if (openedAtMs !== null && this.#parts.clock.monotonicMs() - openedAtMs >= steadyMs) this.#attempt = 0
    if (!this.#link.isUp) {
      const attempt = this.#attempt + 1
      this.#parts.logSeldom('warn', { ...details, attempt }, 'not connected: trying again')
      return
    }
    this.#disconnects++
    this.#link.lose(this.#wholeUntilMs, nowMs)
    this.#parts.logSeldom(
      'warn',
      { ...details, disconnects: this.#disconnects },
      'disconnected: data may be missing; trying again',
    )
  }

  /** A message without the API key, which an error may repeat with the address. */
  #withoutKey(message: string): string {
    const key = this.#options.apiKey ?? ''
    // As it is, and as an address has it.
    const forms = [key, encodeURIComponent(key), new URLSearchParams({ key }).toString().slice('key='.length)]
    const text = key === '' ? message : forms.reduce((masked, form) => masked.replaceAll(form, '…'), message)
    return text.slice(0, MESSAGE_CHARS_MAX)
  }

  #send(socket: UpstreamSocket, message: object): void {
    socket.send(JSON.stringify(message))
  }

  #onFrame(socket: UpstreamSocket, text: string | null): void {
    const nowMs = this.#parts.clock.now()
    this.#latestFrameAtMs = nowMs
    const frame = parseFrame(text === null ? undefined : parseJson(text), nowMs)
    switch (frame.kind) {
      case 'unknown':
        this.#parts.counters.countRejected('unknown_frame', () => this.#withoutKey(text ?? 'a binary frame'))
        break
      case 'error':
        this.#onUpstreamError(frame.message, nowMs)
        break
      case 'notice':
        this.#onAlive(nowMs)
        break
      case 'events':
        this.#onAlive(nowMs)
        this.#applyFrame(socket, frame, nowMs)
        break
    }
  }

  /** PumpPortal has taken a subscription, or delivers: from now on nothing is missing. */
  #onAlive(nowMs: number): void {
    this.#wholeUntilMs = nowMs
    this.#parts.state.set('running')
    this.#link.restore(nowMs)
  }

  #onUpstreamError(message: string, nowMs: number): void {
    this.#latestError = { message: this.#withoutKey(message), atMs: nowMs }
    this.#parts.counters.countRejected('upstream_error', () => this.#withoutKey(message))
    this.#parts.logSeldom('warn', { message: this.#latestError.message }, 'PumpPortal reports an error')
  }

  #applyFrame(socket: UpstreamSocket, frame: Extract<ParsedFrame, { kind: 'events' }>, nowMs: number): void {
    if (this.#seen.renew(frame.key)) {
      this.#duplicates++
      return
    }
    this.#seen.set(frame.key, true)
    if (frame.fault !== null) this.#parts.counters.countRejected(frame.fault)
    for (const event of frame.events) this.#priced.apply(event, nowMs)
    if (!frame.isLaunch || !this.#options.apiKey) return
    for (const message of this.#subscriptions.add(frame.mint)) this.#send(socket, message)
  }

  async stop(): Promise<void> {
    this.#parts.stopping.abort()
    await this.#running
  }

  describe(): FeedStatus {
    return this.#parts.status({
      isConnected: this.#openedAtMs !== null,
      latestError: this.#latestError,
      withTrades: Boolean(this.#options.apiKey),
      tradeKeys: this.#subscriptions.size,
      connects: this.#connects,
      disconnects: this.#disconnects,
      duplicates: this.#duplicates,
      latestFrameAtMs: this.#latestFrameAtMs,
    })
  }

  whyNotReady(): string | null {
    if (this.#connects > 0) return null
    const error = this.#latestError === null ? '' : `: ${this.#latestError.message}`
    return `PumpPortal has not been reached yet${error}`
  }
}
