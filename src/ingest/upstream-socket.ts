import type { WebSocket } from 'ws'
import { backoffMs } from '../lib/backoff.ts'
import { lazyPackage } from '../lib/lazy-package.ts'
import {
  RECONNECT_MS_MAX,
  RECONNECT_MS_MIN,
  UPSTREAM_BACKLOG_BYTES_MAX,
  UPSTREAM_CONNECT_MS_MAX,
  UPSTREAM_FRAME_BYTES_MAX,
  UPSTREAM_PING_MS,
  UPSTREAM_RETRY_AFTER_MS_MAX,
  UPSTREAM_SILENCE_MS_MAX,
} from './limits.ts'
import { readRetryAfterMs } from './retry-after.ts'

const ws = lazyPackage<typeof import('ws')>('ws')

export interface UpstreamTiming {
  /** From the attempt to an open connection. */
  connectMsMax?: number
  /** Between two pings; the connection ends when one is unanswered by the time of the next. */
  pingMs?: number
  /** The connection ends when no data came for this long, even if pings are answered. */
  silenceMsMax?: number
  /** A larger frame ends the connection. */
  frameBytesMax?: number
}

export interface UpstreamHandlers {
  onOpen(): void
  /** @param text null for a binary frame. */
  onFrame(text: string | null): void
  /** Called when one of the other handlers has thrown. */
  onHandlerError(error: unknown): void
}

/** Why a connection is over. */
export interface UpstreamEnd {
  reason: string
  /** How long the upstream asks to wait before the next attempt, ms; null or not there: it does not. */
  retryAfterMs?: number | null
}

export interface Reconnects {
  reconnectMsMin?: number
  reconnectMsMax?: number
  /** Uniform in [0, 1), for the jitter. */
  random: () => number
}

/**
 * The wait before attempt number `attempt` (from 0) after such an end: a random share of an exponentially growing span ("full
 * jitter", M. Brooker, "Exponential Backoff and Jitter", 2015), and no less than the shortest wait or what the upstream asks for.
 */
export function reconnectMs(attempt: number, { retryAfterMs }: UpstreamEnd, reconnects: Reconnects): number {
  const {
    random,
    reconnectMsMin: minMs = RECONNECT_MS_MIN,
    reconnectMsMax: maxMs = RECONNECT_MS_MAX,
  } = reconnects
  const ownMs = random() * backoffMs(attempt + 1, minMs, maxMs)
  return Math.max(minMs, ownMs, Math.min(retryAfterMs ?? 0, UPSTREAM_RETRY_AFTER_MS_MAX))
}

/**
 * One connection to the WebSocket server of somebody else. Whatever the peer does, the connection ends in bounded time: there are
 * limits on the handshake, frame sizes, pings, silence and unsent data.
 */
export class UpstreamSocket {
  /** Resolves when the socket is closed. */
  readonly ended: Promise<UpstreamEnd>
  readonly #socket: WebSocket
  readonly #handlers: UpstreamHandlers
  readonly #timers: NodeJS.Timeout[] = []
  #reason: string | null = null
  #retryAfterMs: number | null = null
  #isPingOpen = false

  /** @param signal ends it */
  constructor(address: string, handlers: UpstreamHandlers, signal: AbortSignal, timing: UpstreamTiming) {
    const {
      connectMsMax = UPSTREAM_CONNECT_MS_MAX,
      pingMs = UPSTREAM_PING_MS,
      silenceMsMax = UPSTREAM_SILENCE_MS_MAX,
      frameBytesMax = UPSTREAM_FRAME_BYTES_MAX,
    } = timing
    this.#handlers = handlers
    // No compression: a small frame could expand to a large one, and frames are small anyway.
    this.#socket = new ws.WebSocket(address, {
      maxPayload: frameBytesMax,
      perMessageDeflate: false,
      followRedirects: false,
    })
    // The library's own handshake timeout restarts with each byte that arrives, so a slow peer could delay it for ever.
    const connecting = this.#endAfter(connectMsMax, `no connection within ${connectMsMax} ms`)
    const silence = this.#endAfter(silenceMsMax, `no data for ${silenceMsMax} ms`)
    this.#socket.on('open', () => {
      clearTimeout(connecting)
      silence.refresh()
      this.#timers.push(setInterval(() => this.#ping(pingMs), pingMs))
      this.#callHandler(() => handlers.onOpen())
    })
    this.#socket.on('message', (data: Buffer, isBinary) => {
      silence.refresh()
      this.#onPeerActive()
      if (this.#reason === null)
        this.#callHandler(() => handlers.onFrame(isBinary ? null : data.toString('utf8')))
    })
    this.#socket.on('unexpected-response', (_request, { statusCode, headers }) => {
      this.#retryAfterMs = readRetryAfterMs(headers['retry-after'], headers.date)
      this.end(`refused with status ${statusCode}`)
    })
    this.#socket.on('ping', () => this.#onPeerActive())
    this.#socket.on('pong', () => this.#onPeerActive())
    this.#socket.on('error', (error) => this.end(error.message))
    const stop = () => this.end('stopped')
    this.ended = new Promise((resolve) => {
      this.#socket.on('close', (code) => {
        signal.removeEventListener('abort', stop)
        for (const timer of this.#timers) clearTimeout(timer)
        const reason = this.#reason ?? `closed by the upstream (${code})`
        resolve({ reason, retryAfterMs: this.#retryAfterMs })
      })
    })
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
  }

  /** Sends text if the connection is open, and ends it when too much is unsent. */
  send(text: string): void {
    if (this.#socket.readyState !== ws.WebSocket.OPEN) return
    this.#socket.send(text)
    this.#checkBacklog()
  }

  /** Ends the connection at once, without a closing handshake: the peer may be gone. */
  end(reason: string): void {
    this.#reason ??= reason
    this.#socket.terminate()
  }

  #endAfter(ms: number, reason: string): NodeJS.Timeout {
    const timer = setTimeout(() => this.end(reason), ms)
    this.#timers.push(timer)
    return timer
  }

  #ping(pingMs: number): void {
    if (this.#isPingOpen) {
      this.end(`no answer to a ping within ${pingMs} ms`)
      return
    }
    this.#isPingOpen = true
    this.#socket.ping()
  }

  /** Also checks the backlog: pongs that are sent to a peer that does not read add to it. */
  #onPeerActive(): void {
    this.#isPingOpen = false
    this.#checkBacklog()
  }

  #checkBacklog(): void {
    if (this.#socket.bufferedAmount > UPSTREAM_BACKLOG_BYTES_MAX) this.end('the upstream does not read')
  }

  #callHandler(handler: () => void): void {
    try {
      handler()
    } catch (error) {
      this.#handlers.onHandlerError(error)
    }
  }
}
