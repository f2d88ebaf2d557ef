// Writes a row of the table `tokens` for each version of a token's profile. Changes that come close together are one version.
// Profiles are read when they are written, never during a write of the market.
import { hash } from 'node:crypto'
import { BoundedMap } from '../lib/collections/bounded-map.ts'
import type { Market } from '../market/market.ts'
import type { TokenProfile } from '../market/types.ts'
import { LAKE_SCHEMA_VERSION, type Row } from '../schema/tables.ts'

/** Profiles in one commit. */
const COMMIT_ROWS_MAX = 256
/** Tokens that wait to be written. A change of a further one is dropped and counted; the token's next change includes it. */
const TOKENS_WAITING_MAX = 131_072
/** Tokens whose last version is remembered. Beyond it the oldest is forgotten, and its version may be written twice. */
const TOKENS_REMEMBERED_MAX = 262_144
/** Hexadecimal digits of a version's digest that a double holds. */
const DIGEST_DIGITS = 12
/** The latest time that both a Date and the store can hold. */
const TIMESTAMP_MS_MAX = 8.64e15

const OPTIONAL_TEXTS = ['description', 'image_uri', 'creator', 'website', 'twitter', 'telegram']

export interface TokenProfileStats {
  /** Tokens that wait to be written. */
  waiting: number
  /** Changes that were dropped because too many tokens waited. */
  dropped: number
  /** Versions that the store refused though it took others. Such a token is tried again with its next change. */
  refused: number
}

export class TokenProfileRecorder {
  readonly #send: (rows: readonly Row[]) => Promise<void>
  readonly #onRefused: (mint: string, error: unknown) => void
  readonly #waiting = new Set<string>()
  /** Digest of the last version written, by mint; the oldest first. */
  readonly #written = new BoundedMap<string, number>({ entriesMax: TOKENS_REMEMBERED_MAX })
  /** Tokens whose row was in a commit that failed, and how many commits had succeeded by then. */
  readonly #suspects = new Map<string, number>()
  #commitRowsMax = COMMIT_ROWS_MAX
  #commits = 0
  #dropped = 0
  #refused = 0

  /**
   * @param send writes rows as one commit; rejects where the store cannot take them.
   * @param onRefused called with a token whose row the store refuses though it takes others.
   */
  constructor(
    send: (rows: readonly Row[]) => Promise<void>,
    onRefused: (mint: string, error: unknown) => void,
  ) {
    this.#send = send
    this.#onRefused = onRefused
  }

  /** The profile of a token may have changed. */
  note(mint: string): void {
    if (this.#waiting.size < TOKENS_WAITING_MAX) this.#waiting.add(mint)
    else if (!this.#waiting.has(mint)) this.#dropped++
  }

  stats(): TokenProfileStats {
    return { waiting: this.#waiting.size, dropped: this.#dropped, refused: this.#refused }
  }

  /**
   * Writes profiles that changed, one commit of them. A commit that fails is retried in ever smaller parts, so that a row that
   * cannot be stored costs its own token alone.
   * @returns whether more wait. Rejects when the commit failed; its tokens wait again.
   */
  async write(market: Pick<Market, 'profile' | 'timeMs'>): Promise<boolean> {
    const versions = this.#takeWaiting().flatMap((mint) => this.#newVersion(mint, market.profile(mint)))
    const updatedAtMs = market.timeMs
    if (versions.length === 0) return this.#waiting.size > 0
    const rows = versions.map(({ row }) => ({
      ...row,
      updated_at: updatedAtMs,
      schema_version: LAKE_SCHEMA_VERSION,
    }))
    try {
      await this.#send(rows)
    } catch (error) {
      const mints = versions.map(({ mint }) => mint)
      if (this.#refuseAlone(mints, error)) return this.#waiting.size > 0
      this.#retryLater(mints)
      throw error
    }
    this.#commits++
    this.#commitRowsMax = Math.min(COMMIT_ROWS_MAX, 2 * this.#commitRowsMax)
    for (const { mint, digest } of versions) {
      this.#suspects.delete(mint)
      this.#written.set(mint, digest)
    }
    return this.#waiting.size > 0
  }

  #takeWaiting(): string[] {
    const mints = [...this.#waiting.values().take(this.#commitRowsMax)]
    for (const mint of mints) this.#waiting.delete(mint)
    return mints
  }

  /** None where the token was evicted, its profile is empty, or the version is the one that was written last. */
  #newVersion(mint: string, profile: TokenProfile | null): { mint: string; row: Row; digest: number }[] {
    if (profile !== null) {
      const row = toRow(mint, profile)
      const digest = digestRow(row)
      if (!isEmptyProfile(row) && this.#written.get(mint) !== digest) return [{ mint, row, digest }]
    }
    this.#suspects.delete(mint)
    return []
  }

  /**
   * A commit failed. A token that was alone in it is given up when the store has taken other commits since the token's row first
   * failed: then the row is at fault, not the store.
   * @returns whether it was given up.
   */
  #refuseAlone(mints: readonly string[], error: unknown): boolean {
    const [mint] = mints
    if (mint === undefined || mints.length > 1) return false
    const commitsBefore = this.#suspects.get(mint)
    if (commitsBefore === undefined || this.#commits <= commitsBefore) return false
    this.#suspects.delete(mint)
    this.#commitRowsMax = 1
    this.#refused++
    this.#onRefused(mint, error)
    return true
  }

  /** The tokens of a failed commit wait again, behind the others; the next commit is half as large. */
  #retryLater(mints: readonly string[]): void {
    this.#commitRowsMax = Math.max(1, Math.floor(mints.length / 2))
    for (const mint of mints) {
      if (!this.#suspects.has(mint)) this.#suspects.set(mint, this.#commits)
      this.note(mint)
    }
  }
}

function toRow(mint: string, profile: TokenProfile): Row {
  const { createdAtMs } = profile
  return {
    mint,
    name: profile.name,
    symbol: profile.symbol,
    description: profile.description,
    image_uri: profile.imageUri,
    creator: profile.creator,
    website: profile.website,
    twitter: profile.twitter,
    telegram: profile.telegram,
    total_supply: profile.totalSupply,
    created_at: createdAtMs === null || Math.abs(createdAtMs) > TIMESTAMP_MS_MAX ? null : createdAtMs,
    graduated: profile.graduated,
  }
}

/** A token that is known by its trades alone has its mint as name and symbol, and no other text. */
const isEmptyProfile = (row: Row): boolean =>
  row.name === row.mint && row.symbol === row.mint && OPTIONAL_TEXTS.every((name) => row[name] === null)

const digestRow = (row: Row): number =>
  Number.parseInt(hash('sha1', JSON.stringify(row), 'hex').slice(0, DIGEST_DIGITS), 16)
