// In: PumpPortal's WebSocket. Out: events, stamped on receipt, each once. Reconnects are routine: back-off with jitter,
// subscribe again, and say that data may be missing. One connection at a time. Never logs the address: it may hold a key.
import type { Clock } from '../lib/clock.ts'
import type { EventSink } from '../schema/event.ts'
import {
  RECONNECT_MS_MAX,
  RECONNECT_MS_MIN,
  UPSTREAM_CONNECT_MS_MAX,
  UPSTREAM_FRAME_CHARS_MAX,
  UPSTREAM_SIGNATURES_MAX,
  UPSTREAM_SILENCE_MS_MAX,
  UPSTREAM_TRADE_KEYS_MAX,
} from './limits.ts'
import { readFrame } from './pumpportal-frame.ts'
import { RecentMap } from './recent-map.ts'
import { Tally } from './tally.ts'
import { TradeKeys } from './trade-keys.ts'
import type { Feed, FeedLog, FeedStatus } from './types.ts'
import { wait } from './wait.ts'

export interface PumpPortalOptions {
  url?: string
  /** Needed for trades; without it launches and migrations alone are told. */
  apiKey?: string | null
  /** Price of one SOL, USD, until a better one comes: PumpPortal tells none, and no trade has a USD price without. */
  solPriceUsd?: number | null
  silenceMsMax?: number
  tradeKeysMax?: number
  reconnectMsMin?: number
  /** Uniform in [0, 1), for the jitter. */
  random: () => number
}

export const PUMPPORTAL_URL = 'wss://pumpportal.fun/api/data'

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
export function backoffMs(attempt: number, random: number, minMs = RECONNECT_MS_MIN): number {
  const spanMs = Math.min(RECONNECT_MS_MAX, minMs * 2 ** Math.min(attempt + 1, 20))
  return Math.max(minMs, random * spanMs)
}

class PumpPortal implements Feed {
  readonly ready: Promise<void>
  private state: FeedStatus['state'] = 'starting'
  private connects = 0
  private disconnects = 0
  private duplicates = 0
  private attempt = 0
  private latestFrameAtMs: number | null = null
  private readonly seen = new RecentMap<true>(UPSTREAM_SIGNATURES_MAX)
  private readonly tradeKeys: TradeKeys
  private readonly options: PumpPortalOptions
  private readonly address: string
  private readonly tally: Tally
  private readonly clock: Clock
  private readonly log: FeedLog
  private readonly stopping = new AbortController()
  private readonly running: Promise<void>
  private readonly settled = Promise.withResolvers<void>()

  constructor(options: PumpPortalOptions, sink: EventSink, clock: Clock, log: FeedLog) {
    this.options = options
    this.tradeKeys = new TradeKeys(options.tradeKeysMax ?? UPSTREAM_TRADE_KEYS_MAX)
    const address = new URL(options.url ?? PUMPPORTAL_URL)
    if (options.apiKey) address.searchParams.set('api-key', options.apiKey)
    this.address = address.href
    this.tally = new Tally(sink)
    this.clock = clock
    this.log = log
    this.ready = this.settled.promise
    if (options.solPriceUsd) {
      this.tally.apply({ type: 'solPrice', ts: clock.now(), usd: options.solPriceUsd }, clock.now())
    }
    this.running = this.run()
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping
    while (!signal.aborted) {
      await this.connection()
      this.settled.resolve()
      if (signal.aborted) break
      this.state = 'reconnecting'
      await wait(backoffMs(this.attempt++, this.options.random(), this.options.reconnectMsMin), signal)
    }
    this.settled.resolve()
    this.state = 'stopped'
  }

  /** One connection, from the attempt to its end. */
  private connection(): Promise<void> {
    return new Promise((resolve) => {
      const socket = new WebSocket(this.address)
      const { signal } = this.stopping
      let wasOpen = false
      let ended = false
      const end = (): void => {
        if (ended) return
        ended = true
        clearTimeout(connecting)
        clearTimeout(silence)
        signal.removeEventListener('abort', abandon)
        this.ended(wasOpen)
        resolve()
      }
      // A dead peer answers no closing handshake either: it is not waited for.
      const abandon = (): void => {
        socket.close()
        end()
      }
      const connecting = setTimeout(abandon, UPSTREAM_CONNECT_MS_MAX)
      const silence = setTimeout(abandon, this.options.silenceMsMax ?? UPSTREAM_SILENCE_MS_MAX)
      socket.addEventListener('open', () => {
        clearTimeout(connecting)
        wasOpen = !ended
        if (!ended) this.opened(socket)
      })
      socket.addEventListener('message', ({ data }) => {
        if (ended) return
        silence.refresh()
        this.take(socket, data)
      })
      socket.addEventListener('error', end)
      socket.addEventListener('close', end)
      signal.addEventListener('abort', abandon)
    })
  }

  private opened(socket: WebSocket): void {
    this.connects++
    this.state = 'running'
    this.settled.resolve()
    this.log.info({ feed: 'pumpportal', connects: this.connects }, 'connected')
    this.send(socket, { method: 'subscribeNewToken' })
    this.send(socket, { method: 'subscribeMigration' })
    for (const message of this.tradeKeys.all()) this.send(socket, message)
  }

  private ended(wasOpen: boolean): void {
    if (!wasOpen || this.stopping.signal.aborted) return
    this.disconnects++
    const nowMs = this.clock.now()
    this.tally.apply({ type: 'disconnect', ts: nowMs, feed: 'pumpportal' }, nowMs)
    this.log.warn({ feed: 'pumpportal', disconnects: this.disconnects }, 'disconnected: data may be missing')
  }

  private send(socket: WebSocket, message: object): void {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }

  private take(socket: WebSocket, data: unknown): void {
    const nowMs = this.clock.now()
    this.latestFrameAtMs = nowMs
    const reading = readFrame(parse(data), nowMs)
    switch (reading.kind) {
      case 'unknown':
        this.tally.refuse('unknown_frame')
        break
      case 'error':
        this.tally.refuse('upstream_error')
        this.log.warn({ feed: 'pumpportal', message: reading.message }, 'the upstream reports an error')
        break
      case 'events':
        this.attempt = 0
        this.takeEvents(socket, reading, nowMs)
        break
    }
  }

  private takeEvents(
    socket: WebSocket,
    reading: Extract<ReturnType<typeof readFrame>, { kind: 'events' }>,
    nowMs: number,
  ): void {
    if (this.seen.get(reading.key)) {
      this.duplicates++
      return
    }
    this.seen.set(reading.key, true)
    for (const event of reading.events) this.tally.apply(event, nowMs)
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
      withTrades: Boolean(this.options.apiKey),
      tradeKeys: this.tradeKeys.size,
      connects: this.connects,
      disconnects: this.disconnects,
      duplicates: this.duplicates,
      latestFrameAtMs: this.latestFrameAtMs,
      accepted: this.tally.accepted,
      rejected: { ...this.tally.rejected },
    }
  }
}

function parse(data: unknown): unknown {
  if (typeof data !== 'string' || data.length > UPSTREAM_FRAME_CHARS_MAX) return undefined
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
