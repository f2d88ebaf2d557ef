// What accounts of the chain say of pools and mints: asked for in batches, and kept.
import { z } from 'zod'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { wait } from '../wait.ts'
import { decoded, POOL, POOL_DISCRIMINATOR } from './enrichment/account-layouts.ts'
import { readMintFacts } from './enrichment/mint-facts.ts'
import {
  ACCOUNT_ATTEMPTS_MAX,
  ACCOUNT_BEHIND_ATTEMPTS_MAX,
  ACCOUNTS_COLLECT_MS,
  ACCOUNTS_PER_CALL,
  ACCOUNTS_WAITING_MAX,
  MINTS_MAX,
} from './limits.ts'
import { AMM_PROGRAM } from './programs.ts'
import { quoteDecimals } from './quotes.ts'
import type { Rpc } from './rpc.ts'
import type { Account } from './sol-price.ts'

const accountSchema = z
  .object({ owner: z.string(), data: z.tuple([z.string(), z.literal('base64')]) })
  .transform(({ owner, data }): Account => ({ owner, data: Buffer.from(data[0], 'base64') }))
const accountsSchema = z.object({
  context: z.object({ slot: z.number() }).optional(),
  value: z.array(accountSchema.nullable()),
})

/** An account as a notification or an answer has it; undefined where it is none. */
export const readAccount = (value: unknown): Account | undefined => safeParse(accountSchema, value).data

/** The mints of a pool's account, and who made it; null where it is none. */
export function readPoolAccount({
  owner,
  data,
}: Account): { baseMint: string; quoteMint: string; creator: string } | null {
  const pool = owner === AMM_PROGRAM ? decoded(POOL, data) : null
  if (pool === null || Buffer.from(pool.discriminator).toString('hex') !== POOL_DISCRIMINATOR) return null
  const { baseMint, quoteMint, creator } = pool
  return { baseMint, quoteMint, creator }
}

export interface Mint {
  decimals: number
  /** In the smallest unit. */
  supply: bigint
}

interface Wanted {
  address: string
  /** It exists in this slot: a node that has not come so far says nothing by not having it. */
  since: number
  attempts: number
  read: Read
}

/** Told of an account once, unless the feed stops: as of a slot; null where it does not exist, undefined where it could not be had. */
export type Read = (account: Account | null | undefined, slot: number | null) => void

/**
 * Asks for accounts, `ACCOUNTS_PER_CALL` a call. Each caller is answered once, with null where the account does not exist, and
 * with undefined where it could not be had after some attempts, also since the node is behind, or where too many wait: then it may be
 * asked for again. When the signal aborts nobody is answered any more.
 */
export class Accounts {
  #queue: Wanted[] = []
  #running: Promise<void> | null = null
  readonly #rpc: Pick<Rpc, 'call'>
  readonly #signal: AbortSignal
  readonly #commitment: string
  readonly #collectMs: number

  constructor(
    rpc: Pick<Rpc, 'call'>,
    commitment: string,
    signal: AbortSignal,
    collectMs = ACCOUNTS_COLLECT_MS,
  ) {
    this.#collectMs = collectMs
    this.#rpc = rpc
    this.#commitment = commitment
    this.#signal = signal
  }

  /** Resolves when nothing is asked for any more; null: nothing is. */
  get pending(): Promise<void> | null {
    return this.#running
  }

  /** @param read is called once. @param since the slot in which something has named the account */
  want(address: string, read: Read, since = 0): void {
    if (this.#queue.length >= ACCOUNTS_WAITING_MAX) {
      queueMicrotask(() => read(undefined, null))
      return
    }
    this.#queue.push({ address, since, attempts: 0, read })
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0 && !this.#signal.aborted) {
      await (this.#collectMs > 0 ? wait(this.#collectMs, this.#signal) : null)
      await this.#askBatch(this.#queue.splice(0, ACCOUNTS_PER_CALL))
    }
  }

  async #askBatch(batch: Wanted[]): Promise<void> {
    const parameters = [
      batch.map(({ address }) => address),
      { encoding: 'base64', commitment: this.#commitment },
    ]
    const answer = await this.#rpc.call('getMultipleAccounts', parameters, this.#signal)
    const read = answer.ok ? safeParse(accountsSchema, answer.result).data : undefined
    const accounts = read?.value
    const slot = read?.context?.slot ?? null
    for (const [index, wanted] of batch.entries()) {
      const isBehind = accounts?.[index] === null && (slot ?? 0) < wanted.since
      const account = isBehind ? undefined : accounts?.[index]
      wanted.attempts++
      const attemptsMax = isBehind ? ACCOUNT_BEHIND_ATTEMPTS_MAX : ACCOUNT_ATTEMPTS_MAX
      if (account !== undefined || wanted.attempts >= attemptsMax) wanted.read(account, slot)
      else this.#queue.push(wanted)
    }
  }
}

/** Mints that were asked for, with those that wait for the answer. */
export class Mints {
  readonly #known = new BoundedMap<string, Mint | null>({ entriesMax: MINTS_MAX })
  readonly #decimals = new BoundedMap<string, number>({ entriesMax: MINTS_MAX })
  readonly #waiting = new Map<string, ((mint: Mint | null | undefined) => void)[]>()
  readonly #accounts: Accounts

  constructor(accounts: Accounts) {
    this.#accounts = accounts
  }

  /** Decimals that an event said, or that an account did; undefined: neither has so far. */
  decimals(mint: string): number | undefined {
    return quoteDecimals(mint) ?? this.#decimals.renew(mint) ?? this.#known.get(mint)?.decimals
  }

  setDecimals(mint: string, decimals: number): void {
    this.#decimals.set(mint, decimals)
  }

  /**
   * Calls back with what the account of a mint says, now or once it is had; null: it is no mint; undefined: it could not be had.
   * @param since the slot in which something has named the mint
   */
  want(address: string, since: number, then: (mint: Mint | null | undefined) => void): void {
    const known = this.#known.renew(address)
    if (known !== undefined) {
      then(known)
      return
    }
    const waiting = this.#waiting.get(address)
    if (waiting !== undefined) {
      waiting.push(then)
      return
    }
    this.#waiting.set(address, [then])
    const read: Read = (account) => {
      const mint = account ? readMintFacts(account, null) : account
      if (mint !== undefined) this.#known.set(address, mint)
      const callers = this.#waiting.get(address) ?? []
      this.#waiting.delete(address)
      for (const call of callers) call(mint)
    }
    this.#accounts.want(address, read, since)
  }
}
