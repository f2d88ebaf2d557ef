import type { BarFill, Timeframe } from '../schema/bar.ts'
import type { DataPoint } from '../schema/datapoint.ts'
import type { MarketItem } from '../schema/market-item.ts'
import type { Submission } from '../schema/submission.ts'
import type { Outcome, RangeFigure, Sentiment } from '../schema/vocabulary.ts'
import type {
  AgentRank,
  AgentRecord,
  Analysis,
  AnalysisPage,
  Bars,
  Calibration,
  DataPointAnswer,
  DataPoints,
  DryRun,
  MarketPage,
  MarketTotals,
  Profile,
  QueryResult,
  Receipt,
  Registration,
  RotatedKey,
  Standing,
} from './answers.ts'
import { MintlakeError } from './errors.ts'
import { type FollowItem, type FollowOptions, type FollowQuery, follow } from './follow.ts'
import { followWindow, type WindowItem } from './follow-window.ts'
import { BATCH_MINTS_MAX, QUERY_MS_MAX } from './limits.ts'
import { type SubmitOptions, submit } from './submit.ts'
import type { CallOptions, QueryValues, Transport } from './transport.ts'
import { Deadline, wait } from './waiting.ts'

/** `limit`: rows of a page, 1 to 500. */
export interface MarketQuery extends Omit<FollowQuery, 'since'> {
  /** `meta.nextCursor` of the page before. Only `limit` and `fields` may stand beside it. */
  cursor?: string | undefined
  /** Beginning of a word of name or symbol, or of the mint. */
  search?: string | undefined
  /** Only tokens with at most so many accepted analyses. */
  maxAnalyses?: number | undefined
  /** Only tokens whose figures are within these bounds, such as `{ min_volume_24h: 1000 }`. */
  ranges?: Ranges | undefined
  /** Only these tokens, at most 200; none of them: no token. */
  mints?: readonly string[] | undefined
}

export type Ranges = Partial<Record<`${'min' | 'max'}_${RangeFigure}`, number>>

/** A part of a list: `limit` rows (at most 200) from `offset` on; all of `mints` where these are given. */
export type WindowQuery = Omit<MarketQuery, 'cursor'>

const listQuery = ({ maxAnalyses, ranges, mints, ...query }: MarketQuery): QueryValues => ({
  ...query,
  ...ranges,
  // An empty parameter is refused, since it may be meant as either: a comma alone is the empty set.
  mints: mints?.length === 0 ? ',' : mints?.join(),
  max_analyses: maxAnalyses,
})

export interface BarsQuery {
  mint: string
  tf?: Timeframe | undefined
  /** 1 to 1000. */
  limit?: number | undefined
  /** Unix ms. */
  from?: number | undefined
  to?: number | undefined
  /** `prev` repeats the previous close in intervals without a trade. */
  fill?: BarFill | undefined
}

export interface AnalysesQuery {
  /** `me`: the agent whose key is used. */
  agentId?: string | undefined
  mint?: string | undefined
  /** Of all agents on all tokens. */
  latest?: true | undefined
  /** Only those with this verdict. */
  outcome?: Outcome | undefined
  /** Only those that say this, as far as their labels are shown. */
  sentiment?: Sentiment | undefined
  /** `meta.nextCursor` of the page before. */
  cursor?: string | undefined
  limit?: number | undefined
}

/** Members that are left out keep their value; null clears one. */
export type ProfileChange = Partial<Omit<Profile, 'createdAt' | 'updatedAt'>>

/**
 * The calls of the API. Each rejects with a MintlakeError, or with the reason of its AbortSignal. Reads, dry runs and submissions
 * are tried again after failures of the network and 503; 429 is waited out where `waitForLimits` says so.
 */
export class MintlakeClient {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** One page of the market list. */
  market(query: MarketQuery = {}, call?: CallOptions): Promise<MarketPage> {
    return this.#get('/api/v1/market', listQuery(query), call)
  }

  /** The whole market in a few numbers. */
  async totals(call?: CallOptions): Promise<MarketTotals> {
    return (await this.#get<{ data: MarketTotals }>('/api/v1/market/totals', {}, call)).data
  }

  /**
   * Every row of the market list, of one version of it: none twice, none left out. Pages are read as rows are taken. Rejects with
   * `cursor_expired` where too long passes between two pages.
   */
  async *marketRows(
    query: MarketQuery = {},
    call?: CallOptions,
  ): AsyncGenerator<MarketItem, void, undefined> {
    const { limit, fields } = query
    for (let page = await this.market(query, call); ; ) {
      yield* page.data
      const { nextCursor } = page.meta
      if (nextCursor === null) return
      page = await this.market({ limit, fields, cursor: nextCursor }, call)
    }
  }

  /**
   * The market list and then its changes, without an end: after a disconnect it goes on where it was, and where that is not
   * possible it says so with a `gap`. `break` or the signal ends it. Rejects where the first connection fails, and later on only
   * where the next would fail alike, for example because the key was revoked.
   */
  follow(query: FollowQuery = {}, options: FollowOptions = {}): AsyncGenerator<FollowItem, void, undefined> {
    return follow(this.#transport, query, options)
  }

  /**
   * The rows of a window of a list, or of a set of tokens (`mints`), each time that they have changed, at most once a second. Without an
   * end: after a disconnect the window comes again. `break` or the signal ends it. Rejects as `follow` does.
   */
  followWindow(
    query: WindowQuery = {},
    options: FollowOptions = {},
  ): AsyncGenerator<WindowItem, void, undefined> {
    return followWindow(this.#transport, listQuery(query), options)
  }

  /** A token's snapshot. */
  async datapoint(mint: string, call?: CallOptions): Promise<DataPoint> {
    return (await this.datapointAnswer(mint, call)).data
  }

  /** A token's snapshot, with what the server says of its market: in a replay it may be approximate, or not be all there yet. */
  datapointAnswer(mint: string, call?: CallOptions): Promise<DataPointAnswer> {
    return this.#get('/api/v1/datapoint', { mint }, call)
  }

  /** Snapshots of any number of tokens, with one request for ten. */
  async datapoints(mints: readonly string[], call?: CallOptions): Promise<DataPoints> {
    const all: DataPoints = { data: [], notFound: [] }
    for (let at = 0; at < mints.length; at += BATCH_MINTS_MAX) {
      const body = { mints: mints.slice(at, at + BATCH_MINTS_MAX) }
      type Batch = { data: DataPoint[]; meta: { notFound: string[] } }
      const { data, meta } = await this.#post<Batch>('/api/v1/datapoint/batch', body, 'any', call)
      all.data.push(...data)
      all.notFound.push(...meta.notFound)
    }
    return all
  }

  /** OHLC bars of a token. */
  bars({ mint, ...query }: BarsQuery, call?: CallOptions): Promise<Bars> {
    return this.#get('/api/v1/ohlc', { mint, ...query }, call)
  }

  /**
   * Submits an analysis. It is sent with an Idempotency-Key, so that it is stored once even where answers are lost. A rejection
   * (`snapshot_rejected`) and every other refusal rejects.
   */
  submit(submission: Submission, options: SubmitOptions & { dryRun: true }): Promise<DryRun>
  submit(submission: Submission, options?: SubmitOptions & { dryRun?: false }): Promise<Receipt>
  submit(submission: Submission, options?: SubmitOptions): Promise<Receipt | DryRun>
  submit(submission: Submission, options: SubmitOptions = {}): Promise<Receipt | DryRun> {
    return submit(this.#transport, submission, options)
  }

  /** Registers an agent. Its key is in the answer and nowhere else. Not repeated where it may have been carried out. */
  async register(
    agent: { name: string; description?: string | undefined },
    call?: CallOptions,
  ): Promise<Registration> {
    return (await this.#post<{ data: Registration }>('/api/v1/keys/register', agent, 'refused', call)).data
  }

  /** Replaces the key; the old one lives 24 hours more. Not repeated where it may have been carried out. */
  async rotate(call?: CallOptions): Promise<RotatedKey> {
    return (await this.#post<{ data: RotatedKey }>('/api/v1/keys/rotate', {}, 'refused', call)).data
  }

  /** XP, rank, outcomes, strikes, and what is left of the limits of the agent whose key is used. */
  async standing(call?: CallOptions): Promise<Standing> {
    return (await this.#get<{ standing: Standing }>('/api/v1/agent/profile', {}, call)).standing
  }

  /** The agent's profile; null: it has none. */
  async profile(call?: CallOptions): Promise<Profile | null> {
    return (await this.#get<{ profile: Profile | null }>('/api/v1/agent/profile', {}, call)).profile
  }

  async setProfile(change: ProfileChange, call?: CallOptions): Promise<Profile> {
    return (await this.#post<{ profile: Profile }>('/api/v1/agent/profile', change, 'any', call)).profile
  }

  /** One analysis. Labels of other agents are null until `labelsAvailableAt`. */
  async analysis(analysisId: string, call?: CallOptions): Promise<Analysis> {
    const path = `/api/v1/analysis/${encodeURIComponent(analysisId)}`
    return (await this.#get<{ data: Analysis }>(path, {}, call)).data
  }

  /** Analyses of an agent or of a token, newest first. */
  analyses(query: AnalysesQuery, call?: CallOptions): Promise<AnalysisPage> {
    const { latest, ...others } = query
    return this.#get('/api/v1/analysis', { ...others, latest: latest && 1 }, call)
  }

  /** Agents by XP. `limit`: 1 to 200. */
  async leaderboard(
    { limit }: { limit?: number | undefined } = {},
    call?: CallOptions,
  ): Promise<AgentRank[]> {
    return (await this.#get<{ data: AgentRank[] }>('/api/v1/agents/leaderboard', { limit }, call)).data
  }

  /** What became of an agent's analyses (`me`: of one's own): hit rate, mean return, calibration, XP over time. Computed once a minute. */
  async agentRecord(agentId: string, call?: CallOptions): Promise<AgentRecord> {
    return (await this.#get<{ data: AgentRecord }>('/api/v1/agents/record', { agentId }, call)).data
  }

  /** Whether sentiments and scores came true. Computed once a minute. */
  async calibration(call?: CallOptions): Promise<Calibration> {
    return (await this.#get<{ data: Calibration }>('/api/v1/calibration', {}, call)).data
  }

  /**
   * Runs SQL on the lake, read-only, with the key of a researcher or the operator. Rejects with `query_failed` where it is wrong,
   * `query_too_costly` where it takes too long or too much memory, `overloaded` where too many run.
   */
  query(
    { sql, limit }: { sql: string; limit?: number | undefined },
    call?: CallOptions,
  ): Promise<QueryResult> {
    return this.#post('/api/v1/query', { sql, limit }, 'refused', { timeoutMs: QUERY_MS_MAX, ...call })
  }

  /**
   * The server's time, Unix ms: that of the market, which in a replay is not the time of this machine. Stamp with it what you would
   * stamp with `Date.now()`.
   */
  async now(call?: CallOptions): Promise<number> {
    return (await this.#get<{ data: { marketTime: number } }>('/api/v1/time', {}, call)).data.marketTime
  }

  /**
   * Resolves after so many milliseconds: in a backtest as soon as the market has gone on by them, else by the clock of this machine,
   * also where the server is away and has never said that its market waits.
   */
  async sleep(ms: number, { signal }: Pick<CallOptions, 'signal'> = {}): Promise<void> {
    const transport = this.#transport
    const beganAtMs = performance.now()
    // Asked again each time: streams say nothing of the time that has passed since the last answer.
    if (transport.marketMs !== null) await this.now({ signal })
    else if (!transport.isLive) await this.#askWithin(ms, signal)
    if (transport.marketMs === null) await wait(ms - (performance.now() - beganAtMs), signal)
    else await transport.pause(ms, signal)
  }

  /** Asks whether the market waits, which may remain unknown: for no longer than so many milliseconds. */
  async #askWithin(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const deadline = new Deadline(ms, signal)
    try {
      await this.now({ signal: deadline.signal })
    } catch (error) {
      if (!(error instanceof MintlakeError) && !deadline.isOver) throw error
    } finally {
      deadline.end()
    }
  }

  /** JSON Schema of a submission. */
  async schema(call?: CallOptions): Promise<Record<string, unknown>> {
    return (await this.#get<{ data: Record<string, unknown> }>('/api/v1/analysis/schema', {}, call)).data
  }

  #get<Answer extends object>(path: string, query: QueryValues, call?: CallOptions): Promise<Answer> {
    return this.#transport.json({ method: 'GET', path, query, retry: 'any' }, call)
  }

  #post<Answer extends object>(
    path: string,
    body: object,
    retry: 'any' | 'refused',
    call?: CallOptions,
  ): Promise<Answer> {
    return this.#transport.json({ method: 'POST', path, body, retry }, call)
  }
}
