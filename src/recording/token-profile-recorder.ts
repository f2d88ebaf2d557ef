// In: mints whose profile may have changed. Out: one row of the table tokens for each version of a profile that differs
// from the one before, durable. Changes that come close together are one version; a bounded number of tokens waits, and
// what the store refuses is tried again, in ever smaller commits: a row that it refuses alone, though it takes others, is set
// aside and told of. Never makes the market wait, never reads it inside a write.
import { hash } from 'node:crypto'
import { BoundedMap } from '../lib/bounded-map.ts'
import type { Market } from '../market/market.ts'
import type { TokenProfile } from '../market/types.ts'
import { LAKE_SCHEMA_VERSION, type Row } from '../schema/tables.ts'

/** Profiles of one commit. */
const TOKENS_AT_ONCE = 256
/** Tokens that wait to be written; a further one waits for its next change, and is counted. */
export const TOKENS_WAITING_MAX = 131_072
/** Tokens whose last version is remembered; beyond it the oldest is forgotten, and may be written twice. */
const TOKENS_REMEMBERED_MAX = 262_144
/** Hexadecimal digits of a version's digest that a double holds. */
const DIGEST_DIGITS = 12
/** What both a Date and the store can hold. */
const TIMESTAMP_MS_MAX = 8.64e15

const OPTIONAL_TEXTS = ['description', 'image_uri', 'creator', 'website', 'twitter', 'telegram']

export interface TokenProfileRecorder {
  /** The profile of a token may have changed. */
  note(mint: string): void
  /** Writes what has changed, at most `TOKENS_AT_ONCE` of them; false: nothing waits. */
  write(market: Market): Promise<boolean>
  /** `refused`: versions that the store refused alone; such a token is tried again with its next change. */
  stats(): { waiting: number; dropped: number; refused: number }
}

function rowOf(mint: string, profile: TokenProfile): Row {
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

/** A token that is known by its trades alone bears its mint as name, and says nothing. */
const saysNothing = (row: Row): boolean =>
  row.name === row.mint && row.symbol === row.mint && OPTIONAL_TEXTS.every((name) => row[name] === null)

const digestOf = (row: Row): number =>
  Number.parseInt(hash('sha1', JSON.stringify(row), 'hex').slice(0, DIGEST_DIGITS), 16)

/**
 * Versions of profiles, on their way to the lake.
 * @param onRefused told of a token whose row the store refuses though it takes others.
 */
export function createTokenProfileRecorder(
  send: (rows: readonly Row[]) => Promise<void>,
  onRefused: (mint: string, error: unknown) => void,
): TokenProfileRecorder {
  const waiting = new Set<string>()
  const written = new BoundedMap<string, number>({ entriesMax: TOKENS_REMEMBERED_MAX })
  /** Tokens whose row was in a commit that failed, and how many commits had succeeded by then. */
  const suspects = new Map<string, number>()
  let atOnce = TOKENS_AT_ONCE
  let commits = 0
  let dropped = 0
  let refused = 0

  function note(mint: string): void {
    if (waiting.size < TOKENS_WAITING_MAX) waiting.add(mint)
    else if (!waiting.has(mint)) dropped++
  }

  function takeMints(): string[] {
    const mints: string[] = []
    for (const mint of waiting) {
      if (mints.length === atOnce) break
      waiting.delete(mint)
      mints.push(mint)
    }
    return mints
  }

  /** None: the token is gone, says nothing, or says what it said. */
  function versionsOf(mint: string, profile: TokenProfile | null) {
    const row = profile === null ? null : rowOf(mint, profile)
    const digest = row === null ? 0 : digestOf(row)
    if (row !== null && !saysNothing(row) && written.get(mint) !== digest) return [{ mint, row, digest }]
    suspects.delete(mint)
    return []
  }

  /**
   * A commit failed: its tokens wait again, behind the others, and the next commit is half as large. @returns whether that
   * settles it: a row that is refused alone, though the store has taken others since it was first refused, is set aside.
   */
  function refuse(mints: readonly string[], error: unknown): boolean {
    atOnce = Math.max(1, Math.floor(mints.length / 2))
    const [mint] = mints
    const suspectAt = mints.length === 1 ? suspects.get(mint) : undefined
    if (suspectAt !== undefined && commits > suspectAt) {
      suspects.delete(mint)
      refused++
      onRefused(mint, error)
      return true
    }
    for (const each of mints) {
      if (!suspects.has(each)) suspects.set(each, commits)
      note(each)
    }
    return false
  }

  async function write(market: Market): Promise<boolean> {
    const versions = takeMints().flatMap((mint) => versionsOf(mint, market.profile(mint)))
    const updatedAtMs = market.timeMs
    if (versions.length === 0) return waiting.size > 0
    try {
      await send(
        versions.map(({ row }) => ({ ...row, updated_at: updatedAtMs, schema_version: LAKE_SCHEMA_VERSION })),
      )
    } catch (error) {
      const isSettled = refuse(
        versions.map(({ mint }) => mint),
        error,
      )
      if (isSettled) return waiting.size > 0
      throw error
    }
    commits++
    atOnce = Math.min(TOKENS_AT_ONCE, 2 * atOnce)
    for (const { mint, digest } of versions) {
      suspects.delete(mint)
      written.set(mint, digest)
    }
    return waiting.size > 0
  }

  return { note, write, stats: () => ({ waiting: waiting.size, dropped, refused }) }
}
