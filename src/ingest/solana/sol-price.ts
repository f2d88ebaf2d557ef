// The price of SOL from two accounts of the chain: Pyth's, and beside it that of a pool, as a second opinion.

import { safeParse } from '../../lib/safe-parse.ts'
import { price } from '../../schema/bounds.ts'
import { SOL_PRICE_AGE_MS_MAX, SOL_PRICE_CONFIDENCE_MAX, SOL_PRICES_APART_MAX } from './limits.ts'
import { ORCA_OWNER, PYTH_OWNER } from './programs.ts'

/** An account as an endpoint gives it. */
export interface Account {
  owner: string
  data: Uint8Array
}

export interface ReportedPrice {
  usd: number
  /** By the source's clock, Unix ms. */
  atMs: number
}

const PYTH_DISCRIMINATOR = '22f123639d7ef4cd'
const PYTH_FEED_ID = 'ef0d8b6fda2ceba41da15d4095d1da392a0d2f8ed0c6c7bc0f4cfac8c280b56d'
const FULLY_VERIFIED = 1
/** Discriminator, write authority, level of verification. */
const [LEVEL_AT, FEED_AT] = [40, 41]
const [PRICE_AT, CONFIDENCE_AT, EXPONENT_AT, TIME_AT] = [73, 81, 89, 93]
const PYTH_BYTES_MIN = 101
const EXPONENT_MIN = -18

const hex = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.from(bytes.subarray(from, to)).toString('hex')
const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)

/** The price in Pyth's account; null where it is none, is of something else, or is not certain enough. */
export function readPyth({ owner, data }: Account): ReportedPrice | null {
  if (owner !== PYTH_OWNER || data.length < PYTH_BYTES_MIN || hex(data, 0, 8) !== PYTH_DISCRIMINATOR)
    return null
  if (data[LEVEL_AT] !== FULLY_VERIFIED || hex(data, FEED_AT, PRICE_AT) !== PYTH_FEED_ID) return null
  const view = viewOf(data)
  const value = Number(view.getBigInt64(PRICE_AT, true))
  const confidence = Number(view.getBigUint64(CONFIDENCE_AT, true))
  const exponent = view.getInt32(EXPONENT_AT, true)
  if (exponent < EXPONENT_MIN || exponent > 0 || confidence > value * SOL_PRICE_CONFIDENCE_MAX) return null
  const usd = safeParse(price, value * 10 ** exponent).data
  const atMs = Number(view.getBigInt64(TIME_AT, true)) * 1_000
  return usd === undefined || !(atMs > 0) ? null : { usd, atMs }
}

const ROOT_AT = 65
/** Lamports a SOL by millionths a USDC. */
const ORCA_SCALE = 1_000

/** The price in the pool of SOL and USDC; null where the account is another. */
export function readOrca({ owner, data }: Account): number | null {
  if (owner !== ORCA_OWNER || data.length < ROOT_AT + 16) return null
  const view = viewOf(data)
  const root =
    Number(view.getBigUint64(ROOT_AT + 8, true)) + Number(view.getBigUint64(ROOT_AT, true)) / 2 ** 64
  return safeParse(price, root * root * ORCA_SCALE).data ?? null
}

/** Compares both prices. Neither is believed while they are further apart than `SOL_PRICES_APART_MAX`. */
export class SolPrices {
  #pyth: ReportedPrice | null = null
  #orca: ReportedPrice | null = null
  /** How often they began to disagree. */
  disagreements = 0
  #isApart = false

  /** @returns the price to believe from now on; null: none that is new */
  setPyth(reported: ReportedPrice, nowMs: number): ReportedPrice | null {
    const isNew = this.#pyth === null || reported.atMs >= this.#pyth.atMs
    if (!isNew) return null
    this.#pyth = reported
    return this.#believed(nowMs)
  }

  /** @returns the price to believe, where the second opinion has ended a disagreement; else null */
  setOrca(usd: number, nowMs: number): ReportedPrice | null {
    this.#orca = { usd, atMs: nowMs }
    const wasApart = this.#isApart
    const believed = this.#believed(nowMs)
    return wasApart ? believed : null
  }

  /** Whether there is one that is not too old. */
  isKnownAt(nowMs: number): boolean {
    return this.#pyth !== null && nowMs - this.#pyth.atMs <= SOL_PRICE_AGE_MS_MAX
  }

  #believed(nowMs: number): ReportedPrice | null {
    const [pyth, orca] = [this.#pyth, this.#orca]
    if (pyth === null || !this.isKnownAt(nowMs)) return null
    const hasSecond = orca !== null && nowMs - orca.atMs <= SOL_PRICE_AGE_MS_MAX
    const isApart =
      hasSecond && Math.abs(pyth.usd - orca.usd) > SOL_PRICES_APART_MAX * Math.min(pyth.usd, orca.usd)
    if (isApart && !this.#isApart) this.disagreements++
    this.#isApart = isApart
    return isApart ? null : pyth
  }

  describe(): Record<string, unknown> {
    const { disagreements } = this
    return { pyth: this.#pyth, orca: this.#orca, isApart: this.#isApart, disagreements }
  }
}
