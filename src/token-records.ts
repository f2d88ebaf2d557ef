// In: mints whose profile may have changed. Out: one row of the table tokens for each version of a profile that differs
// from the one before, durable. Changes that come close together are one version; a bounded number of tokens waits, and
// what the store refuses is tried again. Never makes the market wait, never reads it inside a write.
import { hash } from 'node:crypto'
import type { Market } from './market/market.ts'
import type { TokenProfile } from './market/types.ts'
import type { Row, Write } from './schema/tables.ts'

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

export interface TokenRecords {
  /** The profile of a token may have changed. */
  note(mint: string): void
  /** Writes what has changed, at most `TOKENS_AT_ONCE` of them; false: nothing waits. */
  write(market: Market): Promise<boolean>
  stats(): { waiting: number; dropped: number }
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
    created_at: createdAtMs === null || createdAtMs > TIMESTAMP_MS_MAX ? null : createdAtMs,
    graduated: profile.graduated,
  }
}

/** A token that is known by its trades alone bears its mint as name, and says nothing. */
const saysNothing = (row: Row): boolean =>
  row.name === row.mint && row.symbol === row.mint && OPTIONAL_TEXTS.every((name) => row[name] === null)

const digestOf = (row: Row): number =>
  Number.parseInt(hash('sha1', JSON.stringify(row), 'hex').slice(0, DIGEST_DIGITS), 16)

/** Versions of profiles, on their way to `commit`. */
export function createTokenRecords(commit: (writes: readonly Write[]) => Promise<void>): TokenRecords {
  const waiting = new Set<string>()
  const written = new Map<string, number>()
  let dropped = 0

  function note(mint: string): void {
    if (waiting.size < TOKENS_WAITING_MAX) waiting.add(mint)
    else if (!waiting.has(mint)) dropped++
  }

  function remember(mint: string, digest: number): void {
    written.delete(mint)
    written.set(mint, digest)
    if (written.size > TOKENS_REMEMBERED_MAX) written.delete(written.keys().next().value!)
  }

  function takeMints(): string[] {
    const mints: string[] = []
    for (const mint of waiting) {
      if (mints.length === TOKENS_AT_ONCE) break
      waiting.delete(mint)
      mints.push(mint)
    }
    return mints
  }

  /** Null: the token is gone, says nothing, or says what it said. */
  function versionOf(mint: string, profile: TokenProfile | null) {
    if (profile === null) return null
    const row = rowOf(mint, profile)
    const digest = digestOf(row)
    return saysNothing(row) || written.get(mint) === digest ? null : { mint, row, digest }
  }

  async function write(market: Market): Promise<boolean> {
    const versions = takeMints().flatMap((mint) => versionOf(mint, market.profile(mint)) ?? [])
    const updatedAtMs = market.timeMs
    try {
      await commit(versions.map(({ row }) => ({ table: 'tokens', row: { ...row, updated_at: updatedAtMs } })))
    } catch (error) {
      for (const { mint } of versions) note(mint)
      throw error
    }
    for (const { mint, digest } of versions) remember(mint, digest)
    return waiting.size > 0
  }

  return { note, write, stats: () => ({ waiting: waiting.size, dropped }) }
}
