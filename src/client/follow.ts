// Follows the market list over NDJSON, and resumes after every disconnect.
import type { MarketItem } from '../schema/market-item.ts'
import type { Order, Sort, Tab } from '../schema/vocabulary.ts'
import { type LineBounds, readLines } from './body.ts'
import { MintlakeError } from './errors.ts'
import { FOLLOW_PROMPT_BACKOFF_MS_MAX, FOLLOW_PROMPT_MS, RETRIES_MAX, RETRY_AFTER_MS_MAX } from './limits.ts'
import { mayPass, parseObject, type QueryValues, type Transport } from './transport.ts'
import { backoffMs, Deadline, wait } from './waiting.ts'

export interface FollowQuery {
  tab?: Tab | undefined
  /** Which rows come first, and how many. They do not limit which changes follow. */
  sort?: Sort | undefined
  order?: Order | undefined
  limit?: number | undefined
  offset?: number | undefined
  /** What rows have: `compact`, or names with commas between; all that rows have by themselves unless given. */
  fields?: string | undefined
  /** Only what changed after this position: the `seq` of an item that an earlier call received. */
  since?: number | undefined
}

/**
 * `row`: a token of the tab, at the beginning (`seq` null) or because it changed; a row that left the tab comes once more. `left`:
 * the token was evicted. `gap`: changes may have been missed. After `resync` every row of the tab is sent again, after `restart`
 * the first rows; whoever keeps a table empties it.
 */
export type FollowItem =
  | { type: 'row'; row: MarketItem; seq: number | null }
  | { type: 'left'; mint: string; seq: number }
  | { type: 'gap'; reason: 'resync' | 'restart' }

export interface FollowOptions extends LineBounds {
  /** Ends the stream, which rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Called when a connection ended or failed, before the wait for the next. */
  onDisconnect?: ((disconnect: Disconnect) => void) | undefined
}

export interface Disconnect {
  /** null: the server ended the stream. */
  error: MintlakeError | null
  /** Why the server did, if it said so. */
  reason: string | null
  retryInMs: number
}

/** A line of the stream: a row with or without `seq`, or a line about the stream. Unknown members and events are ignored. */
export type Line =
  | (MarketItem & { event?: never; seq?: number })
  | { event: 'left'; mint: string; seq: number }
  | { event: 'window'; seq: number; ts: number; offset: number; total: number; order?: string[] }
  | { event: 'heartbeat' | 'resync' | 'bye'; seq?: number; reason?: string; retryAfterMs?: number }

/** What one call knows across its connections. */
export class Progress {
  /** Everything up to this position was received; null: not all of the first rows were. */
  since: number | null
  hasReceived = false
  /** Whether any connection has brought a line: an address that is not Mintlake's may answer 200 too. */
  wasConnected = false
  /** When the last connection was opened, by `performance.now`; null: it failed before. */
  openedAtMs: number | null = null
  /** What the server said at the end of the last connection. */
  byeReason: string | null = null
  /** When the server wants to be asked again, if it said so then. */
  byeRetryAfterMs = 0

  constructor(since: number | null) {
    this.since = since
  }
}

/** See `MintlakeClient.follow`. */
export function follow(
  transport: Transport,
  { since, ...query }: FollowQuery,
  options: FollowOptions,
): AsyncGenerator<FollowItem, void, undefined> {
  const connect = (progress: Progress) => connection(transport, query, options, progress)
  return reconnecting(transport, options, new Progress(since ?? null), connect)
}

/** The items of one connection after another, without an end. */
export async function* reconnecting<Item>(
  transport: Transport,
  options: FollowOptions,
  progress: Progress,
  connect: (progress: Progress) => AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Item, void, undefined> {
  const { backoff } = transport.options
  let brokeOffAtMs = 0
  for (let failures = 0; ; ) {
    let error: MintlakeError | null = null
    try {
      yield* connect(progress)
    } catch (thrown) {
      if (!(thrown instanceof MintlakeError) || options.signal?.aborted) throw thrown
      error = thrown
    }
    // A connection that lived as long as the longest back-off was a good one.
    const livedMs = progress.openedAtMs === null ? 0 : performance.now() - progress.openedAtMs
    failures = livedMs < backoff.maxMs ? failures + 1 : 1
    if (failures === 1) brokeOffAtMs = performance.now()
    if (error !== null && !mayResume(error, progress, failures, transport)) throw error
    const retryAfterMs = Math.min(error?.retryAfterMs ?? progress.byeRetryAfterMs, RETRY_AFTER_MS_MAX)
    const isPrompt = performance.now() - brokeOffAtMs < FOLLOW_PROMPT_MS
    const maxMs = isPrompt ? Math.min(backoff.maxMs, FOLLOW_PROMPT_BACKOFF_MS_MAX) : backoff.maxMs
    const retryInMs = Math.max(retryAfterMs, backoffMs(failures, { ...backoff, maxMs }))
    options.onDisconnect?.({ error, reason: progress.byeReason, retryInMs })
    if (error !== null) await wait(retryInMs, options.signal)
    // In a backtest nothing is missed that the market has not waited for. Where it cannot be asked for its time, the next connection tells why.
    else
      await transport.pause(retryInMs, options.signal).catch((failure) => {
        if (!(failure instanceof MintlakeError) || options.signal?.aborted) throw failure
      })
  }
}

/**
 * Whether the stream goes on after a failure. Until it was connected once it fails like any other call, so that a wrong address
 * is noticed; from then on only an answer that the next attempt would get again ends it.
 */
function mayResume(
  error: MintlakeError,
  { wasConnected }: Progress,
  failures: number,
  { options: { retriesMax = RETRIES_MAX, waitForLimits } }: Transport,
): boolean {
  const isLimit = error.status === 429
  if (!wasConnected) return failures <= retriesMax && (mayPass(error, 'any') || (isLimit && waitForLimits))
  return isLimit || (error.status ?? 0) >= 500 || mayPass(error, 'any')
}

/** The items of one connection. Returns when the server ends it. */
async function* connection(
  transport: Transport,
  query: Omit<FollowQuery, 'since'>,
  options: FollowOptions,
  progress: Progress,
): AsyncGenerator<FollowItem, void, undefined> {
  const since = progress.since ?? undefined
  const isRestart = since === undefined && progress.hasReceived
  for await (const line of linesOf(transport, { ...query, follow: 1, since }, options, progress)) {
    if (line === null) {
      if (isRestart) yield { type: 'gap', reason: 'restart' }
      continue
    }
    const item = itemOf(line)
    if (item !== null) {
      progress.hasReceived = true
      yield item
    }
    // Only now: a caller that fails on an item may ask for it again.
    if ('seq' in line && line.seq !== undefined) progress.since = line.seq
  }
}

/** null once the connection is open, then its lines. */
export async function* linesOf(
  transport: Transport,
  query: QueryValues,
  options: FollowOptions,
  progress: Progress,
): AsyncGenerator<Line | null, void, undefined> {
  progress.byeReason = null
  progress.byeRetryAfterMs = 0
  progress.openedAtMs = null
  const { signal } = options
  const request = transport.prepare({
    method: 'GET',
    path: '/api/v1/market',
    query: { ...query, format: 'ndjson' },
  })
  const deadline = new Deadline(transport.options.timeoutMs, signal)
  try {
    const body = await transport.open(request, deadline)
    progress.openedAtMs = performance.now()
    yield null
    for await (const text of readLines(body, deadline, options)) {
      const line = parseObject<Line>(text)
      progress.wasConnected = true
      yield line
      if (line.event === 'bye') {
        progress.byeReason = line.reason ?? null
        progress.byeRetryAfterMs = line.retryAfterMs ?? 0
      }
    }
    if (!progress.wasConnected)
      throw new MintlakeError('invalid_response', 'The address answered without a line')
  } catch (error) {
    if (error instanceof MintlakeError || signal?.aborted) throw error
    if (deadline.isOver) throw new MintlakeError('timeout', 'The stream is silent', { cause: error })
    throw new MintlakeError('network_error', 'The stream broke off', { cause: error })
  } finally {
    deadline.end()
  }
}

/** What the caller is told of a line; null: nothing. */
function itemOf(line: Line): FollowItem | null {
  if (line.event === undefined) {
    const { seq = null, ...row } = line
    return { type: 'row', row, seq }
  }
  if (line.event === 'left') return { type: 'left', mint: line.mint, seq: line.seq }
  return line.event === 'resync' ? { type: 'gap', reason: 'resync' } : null
}
