// In: PumpPortal's WebSocket. Out: events, stamped on receipt, each once. Reconnects are routine: back-off with jitter,
// subscribe again, and say that data may be missing. One connection at a time. Never logs the address: it may hold a key.

import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Clock } from '../../lib/clock.ts'
import type { EventSink } from '../../schema/event.ts'
import { EventCounters } from '../event-counters.ts'
import {
  RECONNECT_MS_MAX,
  RECONNECT_MS_MIN,
  UPSTREAM_LOG_EVERY_MS,
  UPSTREAM_SIGNATURES_MAX,
  UPSTREAM_STEADY_MS,
  UPSTREAM_TRADE_KEYS_MAX,
} from '../limits.ts'
import { LogThrottle } from '../log-throttle.ts'
import type { Feed, FeedLog, FeedStatus } from '../types.ts'
import { wait } from '../wait.ts'
import { type FrameReading, readFrame } from './pumpportal-frame.ts'
import { TradeSubscriptions } from './trade-subscriptions.ts'
import { UPSTREAM_TIMING, UpstreamSocket, type UpstreamTiming } from './upstream-socket.ts'

export interface PumpPortalOptions extends Partial<UpstreamTiming> {
  url: string
  /** Needed for trades; without it launches and migrations alone are told. */
  apiKey?: string | null
  tradeKeysMax?: number
  reconnectMsMin?: number
  reconnectMsMax?: number
  /** A connection that lasted so long was a good one: the wait after it is the shortest again. */
  steadyMs?: number
  /** Uniform in [0, 1), for the jitter. */
  random: () => number
}

/** Starts the client. It is ready after its first attempt to connect, whatever came of it: it goes on trying. */
export function startPumpPortal(
  options: PumpPortalOptions,
  sink: EventSink,
  clock: Clock,
  log: FeedLog,
): Feed {
  return new PumpPortal(options, sink, clock, log)
}

/**
 * How long to wait before attempt number `attempt` (from 0), ms: a random share of an exponentially growing span ("full
 * jitter", M. Brooker, "Exponential Backoff and Jitter", 2015), never less than the minimum.
 */
export function backoffMs(
  attempt: number,
  random: number,
  minMs = RECONNECT_MS_MIN,
  maxMs = RECONNECT_MS_MAX,
): number {
  const spanMs = Math.min(maxMs, minMs * 2 ** Math.min(attempt + 1, 20))
  return Math.max(minMs, random * spanMs)
}

const MESSAGE_CHARS_MAX = 200

class PumpPortal implements Feed {
  readonly ready: Promise<void>
  private state: FeedStatus['state'] = 'starting'
  private stateSinceMs: number
  private connects = 0
  private disconnects = 0
  private duplicates = 0
  /** Attempts since a connection lasted. */
  private attempt = 0
  private latestFrameAtMs: number | null = null
  private latestError: { message: string; atMs: number } | null = null
  /** On the monotonic clock; null while there is no connection. */
  private openedAtMs: number | null = null
  private readonly seen = new BoundedMap<string, true>({ entriesMax: UPSTREAM_SIGNATURES_MAX })
  private readonly lines = {
    lost: new LogThrottle(UPSTREAM_LOG_EVERY_MS),
    unreached: new LogThrottle(UPSTREAM_LOG_EVERY_MS),
    reported: new LogThrottle(UPSTREAM_LOG_EVERY_MS),
    fault: new LogThrottle(UPSTREAM_LOG_EVERY_MS),
  }
  private readonly tradeKeys: TradeSubscriptions
  private readonly options: PumpPortalOptions
  private readonly timing: UpstreamTiming
  private readonly address: string
  private readonly counters: EventCounters
  private readonly clock: Clock
  private readonly log: FeedLog
  private readonly stopping = new AbortController()
  private readonly running: Promise<void>
  private readonly settled = Promise.withResolvers<void>()

  constructor(options: PumpPortalOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.options = options
    const { connectMsMax, pingMs, silenceMsMax } = { ...UPSTREAM_TIMING, ...options }
    this.timing = { connectMsMax, pingMs, silenceMsMax }
    this.tradeKeys = new TradeSubscriptions(options.tradeKeysMax ?? UPSTREAM_TRADE_KEYS_MAX)
    const address = new URL(options.url)
    if (options.apiKey) address.searchParams.set('api-key', options.apiKey)
    this.address = address.href
    this.counters = new EventCounters(sink)
    this.clock = clock
    this.log = log
    this.stateSinceMs = clock.now()
    this.ready = this.settled.promise
    this.running = this.run()
  }

  private enter(state: FeedStatus['state']): void {
    if (this.state !== state) this.stateSinceMs = this.clock.now()
    this.state = state
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping
    while (!signal.aborted) {
      try {
        await this.connection()
      } catch (error) {
        this.failed(error)
      }
      this.settled.resolve()
      if (signal.aborted) break
      this.enter('reconnecting')
      const { random, reconnectMsMin, reconnectMsMax } = this.options
      await wait(backoffMs(this.attempt++, random(), reconnectMsMin, reconnectMsMax), signal)
    }
    this.settled.resolve()
    this.enter('stopped')
  }

  /** One connection, from the attempt until its socket is gone. */
  private async connection(): Promise<void> {
    const { signal } = this.stopping
    const socket = new UpstreamSocket(
      this.address,
      {
        opened: () => this.opened(socket),
        frame: (text) => this.take(socket, text),
        fault: (error) => this.failed(error),
      },
      this.timing,
    )
    const stop = () => socket.end('stopped')
    signal.addEventListener('abort', stop)
    const reason = await socket.ended
    signal.removeEventListener('abort', stop)
    this.ended(reason)
  }

  private opened(socket: UpstreamSocket): void {
    this.connects++
    this.openedAtMs = this.clock.monotonicMs()
    this.enter('running')
    this.settled.resolve()
    this.log.info({ feed: 'pumpportal', connects: this.connects }, 'connected')
    this.send(socket, { method: 'subscribeNewToken' })
    this.send(socket, { method: 'subscribeMigration' })
    for (const message of this.tradeKeys.all()) this.send(socket, message)
  }

  private ended(reason: string): void {
    const openedAtMs = this.openedAtMs
    this.openedAtMs = null
    if (this.stopping.signal.aborted) return
    const nowMs = this.clock.now()
    const monotonicMs = this.clock.monotonicMs()
    this.latestError = { message: this.shown(reason), atMs: nowMs }
    const details = { feed: 'pumpportal', error: this.latestError.message }
    if (openedAtMs === null) {
      const unsaid = this.lines.unreached.due(monotonicMs)
      if (unsaid !== null)
        this.log.warn({ ...details, attempt: this.attempt + 1, unsaid }, 'not connected: trying again')
      return
    }
    if (monotonicMs - openedAtMs >= (this.options.steadyMs ?? UPSTREAM_STEADY_MS)) this.attempt = 0
    this.disconnects++
    this.counters.apply({ type: 'disconnect', ts: nowMs, feed: 'pumpportal' }, nowMs)
    const unsaid = this.lines.lost.due(monotonicMs)
    if (unsaid !== null)
      this.log.warn(
        { ...details, disconnects: this.disconnects, unsaid },
        'disconnected: data may be missing; trying again',
      )
  }

  /** What the network says of a failure, without the key that the address holds. */
  private shown(message: string): string {
    const { apiKey } = this.options
    const text = apiKey ? message.replaceAll(apiKey, '…') : message
    return text.slice(0, MESSAGE_CHARS_MAX)
  }

  private send(socket: UpstreamSocket, message: object): void {
    socket.send(JSON.stringify(message))
  }

  private failed(error: unknown): void {
    this.counters.refuse('fault')
    const unsaid = this.lines.fault.due(this.clock.monotonicMs())
    if (unsaid !== null)
      this.log.error({ feed: 'pumpportal', err: error, unsaid }, 'a frame could not be taken')
  }

  private take(socket: UpstreamSocket, text: string | null): void {
    const nowMs = this.clock.now()
    this.latestFrameAtMs = nowMs
    const reading = readFrame(parse(text), nowMs)
    switch (reading.kind) {
      case 'unknown':
        this.counters.refuse('unknown_frame')
        break
      case 'error':
        this.reported(reading.message, nowMs)
        break
      case 'events':
        this.takeEvents(socket, reading, nowMs)
        break
    }
  }

  private reported(message: string, nowMs: number): void {
    this.counters.refuse('upstream_error')
    this.latestError = { message: this.shown(message), atMs: nowMs }
    const unsaid = this.lines.reported.due(this.clock.monotonicMs())
    if (unsaid !== null)
      this.log.warn(
        { feed: 'pumpportal', message: this.latestError.message, unsaid },
        'the upstream reports an error',
      )
  }

  private takeEvents(
    socket: UpstreamSocket,
    reading: Extract<FrameReading, { kind: 'events' }>,
    nowMs: number,
  ): void {
    if (this.seen.renew(reading.key)) {
      this.duplicates++
      return
    }
    this.seen.set(reading.key, true)
    for (const event of reading.events) this.counters.apply(event, nowMs)
    if (!reading.isLaunch || !this.options.apiKey) return
    for (const message of this.tradeKeys.add(reading.mint)) this.send(socket, message)
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await this.running
  }

  describe(): FeedStatus {
    return {
      feed: 'pumpportal',
      state: this.state,
      simulated: false,
      stateSinceMs: this.stateSinceMs,
      isConnected: this.openedAtMs !== null,
      latestError: this.latestError,
      withTrades: Boolean(this.options.apiKey),
      tradeKeys: this.tradeKeys.size,
      connects: this.connects,
      disconnects: this.disconnects,
      duplicates: this.duplicates,
      latestFrameAtMs: this.latestFrameAtMs,
      accepted: this.counters.accepted,
      rejected: { ...this.counters.rejected },
    }
  }

  whyNotReady(): string | null {
    if (this.connects > 0) return null
    const error = this.latestError === null ? '' : `: ${this.latestError.message}`
    return `PumpPortal has not been reached yet${error}`
  }
}

function parse(text: string | null): unknown {
  if (text === null) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
