// What all feeds have in common.
import type { z } from 'zod'
import type { feedStatusSchema, refusalsSchema } from '../schema/api/status.ts'
import type { EventSink } from '../schema/event.ts'

/** A sink that has a time, such as the market. */
export interface TimedSink extends EventSink {
  /** Market time, Unix ms. */
  readonly timeMs: number
}

/**
 * What a feed that can wait asks before it delivers more: null where there is room for more events; otherwise resolves when to ask again.
 */
export type Room = () => Promise<void> | null

export const ALWAYS_ROOM: Room = () => null

/** What of a feed's input was refused, for /health. */
export type RefusalStatus = z.infer<typeof refusalsSchema>

/** As `/health` tells it. Further details of a feed must not hold a secret: they are public. */
export interface FeedStatus extends z.infer<typeof feedStatusSchema> {
  /** What is wrong with it, as a sentence: `/health` is degraded then. */
  problem?: string | null
}

/** A running feed. */
export interface Feed {
  /** Resolves when the market has the feed's initial data; rejects when it will never come. */
  readonly ready: Promise<void>
  /** Resolves when no further event will come. May be called more than once. */
  stop(): Promise<void>
  /** For `/health`. */
  describe(): FeedStatus
  /** For `/readyz`: a sentence that says why the source has delivered nothing yet, or null. Feeds without it are ready when
   *  `ready` resolves. */
  whyNotReady?(): string | null
  /** A sentence that says how far it is, while it brings what the market begins with and the market is answered already; else null. */
  whyWarming?(): string | null
}

/** The part of a pino logger that feeds use. */
export interface FeedLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** What says which trade of the chain a recorded one is: its transaction, and its place among the events there. */
export interface RecordedPlace {
  tx: string
  eventIndex: number
  /** Number of the block; null: it was not recorded. */
  slot: number | null
  /** Of a curve, or of a pool. */
  isCurve: boolean
  /** Unix ms. */
  ts: number
}

/** What a feed finds of the runs before. */
export interface RecordedTo {
  /** Market time of the last event, Unix ms. */
  timeMs: number
  /** Since when the feed was away then, Unix ms; null: it was not. */
  awaySinceMs: number | null
}
