// One connection for subscriptions: to the logs of both programs, to slots as its pulse, and to the accounts with the price of SOL.
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { UPSTREAM_CONNECT_MS_MAX } from '../limits.ts'
import { type UpstreamEnd, UpstreamSocket } from '../upstream-socket.ts'
import { FRAME_BYTES_MAX, LOGS_SILENCE_MS_MAX, PAUSE_MS, PULSE_MS_MAX, SUBSCRIBE_MS_MAX } from './limits.ts'
import { AMM_PROGRAM, ORCA_SOL_USDC, PUMP_PROGRAM, PYTH_SOL_USD } from './programs.ts'
import type { ChainTape } from './rpc.ts'

/** What a connection is subscribed to. */
const TOPICS = {
  pump: ['logsSubscribe', PUMP_PROGRAM],
  amm: ['logsSubscribe', AMM_PROGRAM],
  slot: ['slotSubscribe', null],
  pyth: ['accountSubscribe', PYTH_SOL_USD],
  orca: ['accountSubscribe', ORCA_SOL_USDC],
} as const
export type Topic = keyof typeof TOPICS
const TOPIC_NAMES = Object.keys(TOPICS).filter((name): name is Topic => name in TOPICS)
/** Without these the market would be missing, and the connection is no good. */
const NEEDED: readonly Topic[] = ['pump', 'amm', 'slot']
const LOGS: readonly Topic[] = ['pump', 'amm']

/** A transaction that named one of the programs. */
export interface LogsNotification {
  slot: number
  signature: string
  failed: boolean
  lines: readonly string[]
}

export interface SubscriptionHandlers {
  /** All that is needed is subscribed to. */
  onSubscribed(): void
  onSlot(slot: number): void
  /** No slot has come for `PAUSE_MS`: the connection may be dead. A slot then tells that it is not. */
  onPause?(): void
  onResume?(): void
  onLogs(notification: LogsNotification, topic: Topic | undefined): void
  onAccount(topic: 'pyth' | 'orca', value: unknown): void
  /** A frame that is nothing known. */
  onUnknown(): void
  /** A connection of several that a tape holds has ended: what comes is of the next. */
  onNext?(reason: string): void
  /** What an endpoint does not do, though the connection goes on without it. */
  onRefused(topic: Topic, message: string): void
  onHandlerError(error: unknown): void
}

/** The number of the request that a frame answers; null: it answers none. */
export function answeredBy(text: string): unknown {
  return text.includes('"method"') ? null : (Object(parseJson(text)).id ?? null)
}

export interface SubscriptionOptions {
  pulseMsMax?: number
  /** For how long one program may be silent while slots come. */
  logsSilenceMsMax?: number
  /** Told of all that comes in. */
  tape?: ChainTape
}

/** What a connection may have left out before its end, though slots came: since when one of the programs was silent. */
export interface Silence {
  /** For how long, ms. */
  silentMs?: number
  /** The slot of the last log of that program, or the first of the connection; null: it is not known. */
  silentSlot?: number | null
}

const slotNumber = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const context = z.object({ slot: slotNumber })
const frameSchema = z.union([
  z.object({ id: z.number(), error: z.object({ message: z.string() }) }),
  z.object({ id: z.number(), result: z.number() }),
  z.object({
    method: z.literal('logsNotification'),
    params: z.object({
      subscription: z.number().optional(),
      result: z.object({
        context,
        value: z.object({
          signature: z.string().min(1).max(128),
          err: z.unknown(),
          logs: z.array(z.string()),
        }),
      }),
    }),
  }),
  z.object({
    method: z.literal('slotNotification'),
    params: z.object({ result: z.object({ slot: slotNumber }) }),
  }),
  z.object({
    method: z.literal('accountNotification'),
    params: z.object({ subscription: z.number(), result: z.object({ value: z.unknown() }) }),
  }),
])
type Frame = z.infer<typeof frameSchema>

/** Tells what the frames of a connection say. Also reads those of a tape. */
export class FrameReader {
  readonly #topics = new Map<number, Topic>()
  readonly #handlers: SubscriptionHandlers
  readonly #onEnd: (reason: string) => void
  readonly #subscribed = new Set<Topic>()

  constructor(handlers: SubscriptionHandlers, onEnd: (reason: string) => void) {
    this.#handlers = handlers
    this.#onEnd = onEnd
  }

  get isSubscribed(): boolean {
    return NEEDED.every((topic) => this.#subscribed.has(topic))
  }

  read(text: string | null): void {
    const frame = text === null ? undefined : safeParse(frameSchema, parseJson(text)).data
    if (frame === undefined) this.#handlers.onUnknown()
    else if ('method' in frame) this.#readNotification(frame)
    else this.#readAnswer(frame)
  }

  #readNotification(frame: Extract<Frame, { method: string }>): void {
    switch (frame.method) {
      case 'slotNotification':
        this.#handlers.onSlot(frame.params.result.slot)
        break
      case 'logsNotification': {
        const { subscription = -1, result } = frame.params
        const { context: at, value } = result
        const { signature, err, logs: lines } = value
        this.#handlers.onLogs(
          { slot: at.slot, signature, failed: err != null, lines },
          this.#topics.get(subscription),
        )
        break
      }
      case 'accountNotification': {
        const topic = this.#topics.get(frame.params.subscription)
        if (topic === 'pyth' || topic === 'orca') this.#handlers.onAccount(topic, frame.params.result.value)
        else this.#handlers.onUnknown()
        break
      }
    }
  }

  /** An answer to one of our requests, whose number is that of its topic. */
  #readAnswer(frame: Extract<Frame, { id: number }>): void {
    const topic = TOPIC_NAMES[frame.id - 1]
    if (topic === undefined) this.#handlers.onUnknown()
    else if ('result' in frame) this.#onTopic(topic, frame.result)
    else if (NEEDED.includes(topic)) this.#onEnd(`${TOPICS[topic][0]} is refused: ${frame.error.message}`)
    else this.#handlers.onRefused(topic, frame.error.message)
  }

  #onTopic(topic: Topic, subscription: number): void {
    const wasSubscribed = this.isSubscribed
    this.#topics.set(subscription, topic)
    this.#subscribed.add(topic)
    if (this.isSubscribed && !wasSubscribed) this.#handlers.onSubscribed()
  }
}

function requestOf(topic: Topic, id: number, commitment: string): string {
  const [method, address] = TOPICS[topic]
  const params =
    method === 'slotSubscribe'
      ? []
      : method === 'logsSubscribe'
        ? [{ mentions: [address] }, { commitment }]
        : [address, { encoding: 'base64', commitment }]
  return JSON.stringify({ jsonrpc: '2.0', id, method, params })
}

/**
 * Connects once, and resolves when the connection is over: also when no slot came for `PULSE_MS_MAX`, or no log of one of the programs
 * for `LOGS_SILENCE_MS_MAX`, however open its socket: both are traded many times a second.
 */
export async function subscribe(
  address: string,
  commitment: string,
  handlers: SubscriptionHandlers,
  signal: AbortSignal,
  { pulseMsMax = PULSE_MS_MAX, logsSilenceMsMax = LOGS_SILENCE_MS_MAX, tape }: SubscriptionOptions = {},
): Promise<UpstreamEnd & Silence> {
  const end = (reason: string) => socket.end(reason)
  let pulse: NodeJS.Timeout | undefined
  let pause: NodeJS.Timeout | undefined
  let isPaused = false
  let isSubscribed = false
  /** The last log of each program, at first the subscription to it. */
  const heard = new Map<Topic, { atMs: number; slot: number | null }>()
  const hearSlot = (slot: number) => {
    for (const [topic, last] of heard) {
      last.slot ??= slot
      if (performance.now() - last.atMs > logsSilenceMsMax)
        end(`no log of ${topic} for ${logsSilenceMsMax} ms, while slots come`)
    }
  }
  const frames = new FrameReader(
    {
      ...handlers,
      onSubscribed: () => {
        isSubscribed = true
        for (const topic of LOGS) heard.set(topic, { atMs: performance.now(), slot: null })
        clearTimeout(pulse)
        pulse = setTimeout(() => end(`no slot for ${pulseMsMax} ms`), pulseMsMax)
        pause = setTimeout(() => {
          isPaused = true
          handlers.onPause?.()
        }, PAUSE_MS)
        handlers.onSubscribed()
      },
      onSlot: (slot) => {
        if (isSubscribed) for (const timer of [pulse, pause]) timer?.refresh()
        if (isPaused) handlers.onResume?.()
        isPaused = false
        handlers.onSlot(slot)
        hearSlot(slot)
      },
      onLogs: (notification, topic) => {
        if (topic !== undefined) heard.set(topic, { atMs: performance.now(), slot: notification.slot })
        handlers.onLogs(notification, topic)
      },
    },
    end,
  )
  const socket: UpstreamSocket = new UpstreamSocket(
    address,
    {
      onOpen: () => {
        pulse = setTimeout(() => end(`not subscribed within ${SUBSCRIBE_MS_MAX} ms`), SUBSCRIBE_MS_MAX)
        for (const [index, topic] of TOPIC_NAMES.entries())
          socket.send(requestOf(topic, index + 1, commitment))
      },
      onFrame: (text) => {
        if (text !== null) tape?.frame(text)
        frames.read(text)
      },
      onHandlerError: handlers.onHandlerError,
    },
    signal,
    {
      silenceMsMax: UPSTREAM_CONNECT_MS_MAX + SUBSCRIBE_MS_MAX + pulseMsMax,
      frameBytesMax: FRAME_BYTES_MAX,
    },
  )
  const ended = await socket.ended
  for (const timer of [pulse, pause]) clearTimeout(timer)
  const [silent] = [...heard.values()].sort((a, b) => a.atMs - b.atMs)
  if (silent === undefined) return ended
  return { ...ended, silentMs: Math.ceil(performance.now() - silent.atMs), silentSlot: silent.slot }
}
