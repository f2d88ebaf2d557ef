// In: the address of a WebSocket server of somebody else. Out: its text frames, and how the connection ended. Whatever the
// peer does, the connection ends: a handshake, a frame, a ping and what waits to be sent have their bounds, and an end is
// not told of before the socket is gone. Never connects twice, never logs.
import { WebSocket } from 'ws'
import {
  UPSTREAM_BACKLOG_BYTES_MAX,
  UPSTREAM_CONNECT_MS_MAX,
  UPSTREAM_FRAME_BYTES_MAX,
  UPSTREAM_PING_MS,
  UPSTREAM_SILENCE_MS_MAX,
} from '../limits.ts'

export interface UpstreamTiming {
  /** From the attempt to an open connection. */
  connectMsMax: number
  /** Between two pings; one that is unanswered when the next is due ends the connection. */
  pingMs: number
  /** A connection on which no data came for so long is taken for dead, whether pings are answered or not. */
  silenceMsMax: number
}

export interface UpstreamHandlers {
  opened(): void
  /** A text frame; null: one that is binary. */
  frame(text: string | null): void
  /** Code that took a frame threw. */
  fault(error: unknown): void
}

export const UPSTREAM_TIMING: UpstreamTiming = {
  connectMsMax: UPSTREAM_CONNECT_MS_MAX,
  pingMs: UPSTREAM_PING_MS,
  silenceMsMax: UPSTREAM_SILENCE_MS_MAX,
}

/** One connection to an upstream. */
export class UpstreamSocket {
  /** Why it ended; resolves when the socket is gone. */
  readonly ended: Promise<string>
  private readonly socket: WebSocket
  private readonly handlers: UpstreamHandlers
  private readonly timers: NodeJS.Timeout[] = []
  private reason: string | null = null
  private isPingOpen = false

  constructor(address: string, handlers: UpstreamHandlers, timing: UpstreamTiming = UPSTREAM_TIMING) {
    this.handlers = handlers
    // Compression is not offered: a small frame could unfold to a large one, and frames are small.
    this.socket = new WebSocket(address, {
      maxPayload: UPSTREAM_FRAME_BYTES_MAX,
      perMessageDeflate: false,
      followRedirects: false,
    })
    // A time limit of the library's would begin anew with each byte of a handshake that drips in.
    const { connectMsMax, pingMs, silenceMsMax } = timing
    const connecting = this.later(connectMsMax, `no connection within ${connectMsMax} ms`)
    const silence = this.later(silenceMsMax, `no data for ${silenceMsMax} ms`)
    this.socket.on('open', () => {
      clearTimeout(connecting)
      silence.refresh()
      this.timers.push(setInterval(() => this.ping(pingMs), pingMs))
      this.guarded(() => handlers.opened())
    })
    this.socket.on('message', (data: Buffer, isBinary) => {
      silence.refresh()
      this.heard()
      if (this.reason === null) this.guarded(() => handlers.frame(isBinary ? null : data.toString('utf8')))
    })
    this.socket.on('ping', () => this.heard())
    this.socket.on('pong', () => this.heard())
    this.socket.on('error', (error) => this.end(error.message))
    this.ended = new Promise((resolve) => {
      this.socket.on('close', (code) => {
        for (const timer of this.timers) clearTimeout(timer)
        resolve(this.reason ?? `closed by the upstream (${code})`)
      })
    })
  }

  /** Sends text, where the connection is open. An upstream that does not read what it is sent is given up. */
  send(text: string): void {
    if (this.socket.readyState !== WebSocket.OPEN) return
    this.socket.send(text)
    this.checkBacklog()
  }

  /** Ends the connection without asking the peer, which may be dead. */
  end(reason: string): void {
    this.reason ??= reason
    this.socket.terminate()
  }

  private later(ms: number, reason: string): NodeJS.Timeout {
    const timer = setTimeout(() => this.end(reason), ms)
    this.timers.push(timer)
    return timer
  }

  private ping(pingMs: number): void {
    if (this.isPingOpen) {
      this.end(`no answer to a ping within ${pingMs} ms`)
      return
    }
    this.isPingOpen = true
    this.socket.ping()
  }

  /** The peer lives. Pongs that it is sent and does not read are a backlog too. */
  private heard(): void {
    this.isPingOpen = false
    this.checkBacklog()
  }

  private checkBacklog(): void {
    if (this.socket.bufferedAmount > UPSTREAM_BACKLOG_BYTES_MAX) this.end('the upstream does not read')
  }

  private guarded(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.handlers.fault(error)
    }
  }
}
