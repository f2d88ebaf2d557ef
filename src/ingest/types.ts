// In: nothing. Out: what every feed looks like from outside: how it is started, stopped and described. Never holds state.

export interface FeedStatus {
  feed: string
  state: 'starting' | 'running' | 'reconnecting' | 'finished' | 'failed' | 'stopped'
  /** True where the data is made up; shown wherever the feed is. */
  simulated: boolean
  /** Unix ms: since when the state is this one; where the feed has a source that it may lose. */
  stateSinceMs?: number
  /** What last went wrong with the source, Unix ms, and null where nothing has. */
  latestError?: { message: string; atMs: number } | null
  /** Events that the market took. */
  accepted: number
  /** Events that the market refused, by reason. */
  rejected: Record<string, number>
  /** What else is worth knowing of this feed; never a secret. */
  [detail: string]: unknown
}

/** A running feed. */
export interface Feed {
  /** Resolves when the market holds what this feed has to offer at the start; rejects when it never will. */
  readonly ready: Promise<void>
  /** Resolves when no further event will come. May be called more than once. */
  stop(): Promise<void>
  /** For `/health`. */
  describe(): FeedStatus
  /** For `/readyz`: a sentence on why the source has brought nothing yet, null when it may have. Where it is left out,
   *  `ready` alone tells. */
  whyNotReady?(): string | null
}

/** The part of a logger that feeds use. pino fits. */
export interface FeedLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
