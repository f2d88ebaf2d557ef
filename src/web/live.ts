// The console's one WebSocket: subscribes channels, reconnects by itself, and resumes each channel where it was. What was
// missed meanwhile is told as a gap, never hidden.

import { backoffMs, jittered } from '../lib/backoff.ts'
import type { StreamedSubmission, StreamMessage } from '../schema/api/stream.ts'
import type { Bar } from '../schema/bar.ts'
import type { DataPoint } from '../schema/datapoint.ts'
import type { ToldGap } from '../schema/event.ts'
import { LISTED_FIELDS, type ListedRow } from './listed-fields.ts'
import type { PageSession } from './session.ts'
import type { AnyTopic, WindowListener, WindowQuery, WindowSource } from './window-source.ts'

/** What a channel is of. */
export type Topic = Exclude<AnyTopic, { topic: 'window' | 'market' }>
type TopicName = Topic['topic']

/** What the rows of a topic are. */
interface TopicRows {
  token: DataPoint
  ohlc: Bar
  submissions: StreamedSubmission
}

/** What a channel gives. `snapshot`: all rows, perhaps in several parts; it comes again where changes were lost. */
export interface ChannelListener<Name extends TopicName = TopicName> {
  onRows(rows: readonly TopicRows[Name][], kind: 'snapshot' | 'changes'): void
  onLeft?(mint: string): void
  onError?(message: string, code: string): void
}

/** What is told of the connection and the market, beside the channels. */
export interface LiveListener {
  /** `state` has changed. */
  onState(): void
  /** A gap of the market has begun or ended. */
  onGap(gap: ToldGap): void
  /** @param marketMs the market's time at this moment, Unix ms */
  onMarketTime(marketMs: number): void
}

/** `waiting`: the server is away; `warming`: it does not serve yet; `refused`: it is there, and takes this reader not now. */
export type LiveState = 'connecting' | 'live' | 'waiting' | 'warming' | 'refused'

interface Subscription {
  /** What the server calls it in its reply, with the name of its channel. */
  id: string
  /** As it is sent, without its operation. */
  request: object
  listener: ChannelListener | WindowListener
  /** The last position seen, to resume from; null before the first snapshot is complete, and of windows. */
  seq: number | null
}

const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 15_000
/** After a refusal: limits are of a minute, or of what others have opened. */
const REFUSED_RETRY_MS = 20_000
/** Where the server refuses nothing, and no handshake succeeds. */
const NO_SOCKET = 'The server is there, but no WebSocket to it opens: a proxy between may let none through.'
/** The server sends a heartbeat every 15 seconds; without a message for longer the connection counts as lost. */
const SILENCE_MS_MAX = 40_000
const SILENCE_CHECK_MS = 5_000
const PATH = '/api/v1/stream'
const PROTOCOL = 'mintlake.json'

/** What became of an attempt to connect. */
interface Attempt {
  state: 'refused' | 'warming' | 'waiting'
  /** Why it was refused. */
  refusal?: string
  retryMs?: number
}

/** A browser does not tell why a handshake was refused: a plain request is refused for the same reason, and told it. */
async function whyRefused(ask: typeof fetch): Promise<Attempt> {
  try {
    const response = await ask(PATH, { signal: AbortSignal.timeout(5_000) })
    const { code, error } = await response.json()
    if (code === 'warming_up') return { state: 'warming' }
    if (code === 'upgrade_required') return { state: 'refused', refusal: NO_SOCKET }
    if (code === 'draining' || typeof error !== 'string') return { state: 'waiting' }
    return { state: 'refused', refusal: error, retryMs: REFUSED_RETRY_MS }
  } catch {
    return { state: 'waiting' }
  }
}

export class Live implements WindowSource {
  state: LiveState = 'connecting'
  /** When the next attempt to connect begins, Unix ms; null while connected. */
  retryAtMs: number | null = null
  /** Why it is refused. */
  refusal = ''
  /** When the server told something last, Unix ms; 0: it has not. */
  lastMessageMs = 0
  readonly #session: PageSession
  readonly #listener: LiveListener
  /** By their ids. */
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #idByChannel = new Map<string, string>()
  #count = 0
  #socket: WebSocket | null = null
  #attempts = 0
  /** When a server that ended the socket wants it back. */
  #byeRetryMs = RETRY_MS_MIN
  #isConnecting = false
  #wasLive = false
  /** When the latest connection was begun, Unix ms. */
  #openedMs = 0
  #retry: ReturnType<typeof setTimeout> | undefined

  /** @param session whose reads these are. */
  constructor(session: PageSession, listener: LiveListener) {
    this.#session = session
    this.#listener = listener
    setInterval(() => this.#checkSilence(), SILENCE_CHECK_MS)
    addEventListener('online', () => this.#connectNow())
  }

  /** Whether the connection is lost that there was: what the page shows is old. */
  get isAway(): boolean {
    return this.#wasLive && this.state !== 'live' && this.#socket?.readyState !== WebSocket.OPEN
  }

  start(): void {
    void this.#connect()
  }

  /** Has `onMarketTime` called soon, while connected. It is no read. */
  askMarketTime(): void {
    this.#send({ op: 'ping' })
  }

  /** Subscribes a channel. @returns a function that ends the subscription. */
  subscribe<Name extends TopicName>(
    topic: Extract<Topic, { topic: Name }>,
    listener: ChannelListener<Name>,
  ): () => void {
    return this.#add(topic, listener)
  }

  /** It has no position: after a break it is sent again. */
  subscribeWindow(query: WindowQuery, listener: WindowListener): () => void {
    return this.#add({ topic: 'window', ...query, fields: LISTED_FIELDS }, listener)
  }

  #add(request: object, listener: Subscription['listener']): () => void {
    const id = `${++this.#count}`
    const subscription = { id, request, listener, seq: null }
    this.#subscriptions.set(id, subscription)
    this.#sendSubscribe(subscription)
    return () => {
      if (this.#subscriptions.delete(id)) this.#send({ op: 'unsubscribe', ...request })
    }
  }

  async #connect(): Promise<void> {
    if (this.#socket !== null || this.#isConnecting) return
    this.#isConnecting = true
    this.retryAtMs = null
    this.#setState(this.#attempts === 0 ? 'connecting' : this.state)
    // A server that was started anew knows no session of before.
    if (this.#attempts > 0) await this.#session.open()
    const protocols = await this.#session.protocols()
    this.#isConnecting = false
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws'
    const socket = new WebSocket(`${scheme}://${location.host}${PATH}`, [PROTOCOL, ...protocols])
    this.#socket = socket
    this.#openedMs = Date.now()
    let isOpened = false
    socket.onopen = () => {
      isOpened = true
      this.#attempts = 0
      this.#wasLive = true
      this.#setState('live')
      for (const subscription of this.#subscriptions.values()) this.#sendSubscribe(subscription)
    }
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data))
    socket.onclose = () => {
      if (this.#socket !== socket) return
      this.#socket = null
      void this.#reconnect(isOpened)
    }
  }

  async #reconnect(wasOpened: boolean): Promise<void> {
    const attempt: Attempt = wasOpened ? { state: 'waiting' } : await whyRefused(this.#session.fetch)
    // The browser is online again meanwhile.
    if (this.#socket !== null || this.#isConnecting) return
    const { state, refusal = '', retryMs = 0 } = attempt
    this.#retryLater(Math.max(this.#byeRetryMs, retryMs))
    this.#byeRetryMs = RETRY_MS_MIN
    this.refusal = refusal
    this.#setState(state)
  }

  #connectNow(): void {
    if (this.#socket !== null) return
    clearTimeout(this.#retry)
    void this.#connect()
  }

  /** Waits longer after each failure, with jitter so that many consoles do not return at once. */
  #retryLater(msMin: number): void {
    const waitMs = Math.max(msMin, jittered(backoffMs(this.#attempts++, RETRY_MS_MIN, RETRY_MS_MAX)))
    this.retryAtMs = Date.now() + waitMs
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.#connect(), waitMs)
  }

  /** Browsers wait a minute for the other side of a socket that they close: one that is silent is not waited for. */
  #checkSilence(): void {
    const socket = this.#socket
    if (socket === null || Date.now() - Math.max(this.#openedMs, this.lastMessageMs) < SILENCE_MS_MAX) return
    const wasOpened = socket.readyState !== WebSocket.CONNECTING
    this.#socket = null
    socket.close()
    void this.#reconnect(wasOpened)
  }

  #sendSubscribe({ id, request, seq }: Subscription): void {
    this.#send({ op: 'subscribe', id, ...request, ...(seq !== null && { since: seq }) })
  }

  #send(message: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message))
  }

  #receive(message: StreamMessage): void {
    this.lastMessageMs = Date.now()
    const subscription = this.#subscriptionOf(message)
    const listener: Partial<ChannelListener & WindowListener> = subscription?.listener ?? {}
    switch (message.event) {
      case 'subscribed':
        if (subscription === undefined) return
        for (const [channel, id] of this.#idByChannel)
          if (!this.#subscriptions.has(id)) this.#idByChannel.delete(channel)
        this.#idByChannel.set(message.channel, subscription.id)
        listener.onOpen?.()
        break
      case 'window':
        // They have the fields that were asked for.
        listener.onWindow?.({ ...message, rows: message.rows as readonly ListedRow[] })
        return
      case 'snapshot':
      case 'changes':
        // Rows of these topics are whole, since no fields were asked for.
        listener.onRows?.(message.rows as Parameters<ChannelListener['onRows']>[0], message.event)
        break
      case 'left':
        listener.onLeft?.(message.mint)
        break
      case 'resync':
        if (subscription === undefined) return
        subscription.seq = null
        break
      case 'gap':
        this.#listener.onGap(message)
        break
      case 'pong':
        this.#listener.onMarketTime(message.ts)
        break
      case 'bye':
        this.#byeRetryMs = message.retryAfterMs ?? RETRY_MS_MIN
        break
      case 'error':
        this.#fail(message.error, message.code, subscription)
        return
    }
    if (subscription !== undefined && 'seq' in message && message.seq !== undefined)
      subscription.seq = message.seq
  }

  #subscriptionOf(message: StreamMessage): Subscription | undefined {
    const isReply = message.event === 'subscribed' || message.event === 'error'
    const id = isReply
      ? message.id
      : 'channel' in message
        ? this.#idByChannel.get(message.channel)
        : undefined
    return id === undefined ? undefined : this.#subscriptions.get(id)
  }

  #fail(error: string, code: string, subscription: Subscription | undefined): void {
    if (code === 'read_rate_limited') {
      this.retryAtMs = Date.now() + REFUSED_RETRY_MS
      this.refusal = error
      this.#setState('refused')
      setTimeout(() => {
        if (this.state === 'refused' && this.#socket !== null) {
          this.retryAtMs = null
          this.#setState('live')
        }
        if (subscription !== undefined && this.#subscriptions.has(subscription.id))
          this.#sendSubscribe(subscription)
      }, REFUSED_RETRY_MS)
    }
    subscription?.listener.onError?.(error, code)
  }

  #setState(state: LiveState): void {
    if (this.state === state) return
    this.state = state
    this.#listener.onState()
  }
}
