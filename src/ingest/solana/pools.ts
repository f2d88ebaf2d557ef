// Which token a pool trades. A swap names its pool alone: its mints are known from events, or from the pool's account.
import { base58 } from '@scure/base'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { type Accounts, type Mints, type Read, readPoolAccount } from './accounts.ts'
import { derivedAddresses } from './derived-addresses.ts'
import { POOLS_MAX, SWAPS_WAITING_MAX } from './limits.ts'
import { PUMP_PROGRAM } from './programs.ts'
import { type Pool, poolOf } from './translate.ts'

export interface PoolsOptions {
  /** `migrated`: swaps count of tokens that the market holds, in the pool where their curve went; `all`: of every pool. */
  pools: 'migrated' | 'all'
  /** Whether the market holds a token. */
  holds: (mint: string) => boolean
}

export interface PoolMints {
  baseMint: string
  quoteMint: string
  /** Who made the pool; null: the program of curves said that it is where a curve went. */
  creator: string | null
}

/**
 * Whether this is the account by which the program of curves makes the pool of a token, and nobody else can. It is derived from the
 * token, with a number that is not told: any will do, since none but that program can sign for what is derived from it.
 */
function isMigrationCreator(creator: string, mint: string): boolean {
  const wanted = base58.decode(creator)
  const seeds = [Buffer.from('pool-authority'), base58.decode(mint)]
  return derivedAddresses(PUMP_PROGRAM, seeds).some((address) => address.equals(wanted))
}

/** What happens to a swap: it is a trade of this pool; or it is none that is wanted. */
type Then = (pool: Pool | null) => void

interface Entry {
  /** null: the account is no pool; undefined: it is asked for. */
  mints: PoolMints | null | undefined
  /** Whether a curve went there; undefined: not looked at yet. */
  isMigrated?: boolean
  /** null: its token is none that is wanted, or its decimals could not be had; undefined: not known yet. */
  pool: Pool | null | undefined
  /** The slot in which something has named it: it exists there, and so do its mints. */
  since: number
  waiting: Then[]
}

export class Pools {
  /** Swaps that were dropped because too many waited, or because their pool's account could not be had. */
  dropped = 0
  #waiting = 0
  readonly #entries = new BoundedMap<string, Entry>({ entriesMax: POOLS_MAX })
  readonly #accounts: Accounts
  readonly #mints: Mints
  readonly #options: PoolsOptions

  constructor(accounts: Accounts, mints: Mints, options: PoolsOptions) {
    this.#accounts = accounts
    this.#mints = mints
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  get waiting(): number {
    return this.#waiting
  }

  /** What an event of a slot says of a pool. */
  set(address: string, mints: PoolMints, slot: number): void {
    const entry = this.#entries.get(address) ?? { mints, pool: undefined, since: slot, waiting: [] }
    entry.mints = mints
    delete entry.isMigrated
    this.#entries.set(address, entry)
    this.#resolve(entry)
  }

  /**
   * Calls back with the pool, now or once it is known, for the swaps of a pool in their order; null: they do not count.
   * @param slot of the swap
   */
  with(address: string, slot: number, then: Then): void {
    const entry = this.#entries.renew(address) ?? this.#ask(address, slot)
    const isSettled = entry.pool !== undefined || entry.mints === null || this.#isUnwanted(entry)
    if (isSettled && entry.waiting.length === 0) {
      then(this.#isUnwanted(entry) ? null : (entry.pool ?? null))
      return
    }
    if (this.#waiting >= SWAPS_WAITING_MAX) {
      this.dropped++
      return
    }
    this.#waiting++
    entry.waiting.push(then)
    if (entry.mints !== undefined) this.#resolve(entry)
  }

  #ask(address: string, since: number): Entry {
    const entry: Entry = { mints: undefined, pool: undefined, since, waiting: [] }
    this.#entries.set(address, entry)
    const read: Read = (account) => {
      // What could not be had is asked for again at the next swap.
      if (account === undefined && entry.mints === undefined) {
        this.#entries.delete(address)
        this.#drop(entry)
        return
      }
      // An event may have said it meanwhile.
      entry.mints ??= account == null ? null : readPoolAccount(account)
      this.#resolve(entry)
    }
    this.#accounts.want(address, read, since)
    return entry
  }

  /** Anybody can make a pool of any token, with any price: of a token that is held only the one counts where its curve went. */
  #isUnwanted(entry: Entry): boolean {
    const { mints } = entry
    if (mints == null || this.#options.pools === 'all') return false
    const { baseMint, creator } = mints
    if (!this.#options.holds(baseMint)) return true
    entry.isMigrated ??= creator === null || isMigrationCreator(creator, baseMint)
    return !entry.isMigrated
  }

  /** Finds the decimals of both mints, and then lets go what waits. */
  #resolve(entry: Entry): void {
    const { mints } = entry
    if (mints === undefined) return
    const asked = mints === null || this.#isUnwanted(entry) ? [] : [mints.baseMint, mints.quoteMint]
    const missing = asked.filter((mint) => this.#mints.decimals(mint) === undefined)
    if (missing.length === 0) this.#letGo(entry)
    let left = missing.length
    let isHad = true
    for (const mint of missing)
      this.#mints.want(mint, entry.since, (account) => {
        left--
        isHad &&= account !== undefined
        if (left > 0) return
        if (isHad || entry.pool !== undefined) this.#letGo(entry)
        else this.#drop(entry)
      })
  }

  /** What waits is lost: what its pool is could not be had. */
  #drop(entry: Entry): void {
    const { length } = entry.waiting.splice(0)
    this.#waiting -= length
    this.dropped += length
  }

  #letGo(entry: Entry): void {
    const { mints } = entry
    const isWanted = mints != null && !this.#isUnwanted(entry)
    if (isWanted) entry.pool ??= poolOf(mints.baseMint, mints.quoteMint, (mint) => this.#mints.decimals(mint))
    const pool = isWanted ? (entry.pool ?? null) : null
    const waiting = entry.waiting.splice(0)
    this.#waiting -= waiting.length
    for (const then of waiting) then(pool)
  }
}
