// A tape of a whole market, made by a seeded world: everything that real endpoints do to their readers, and beside it the ledger of
// what was traded and at which price of SOL.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip } from 'node:zlib'
import {
  MAINNET_GENESIS,
  ORCA_OWNER,
  ORCA_SOL_USDC,
  PYTH_OWNER,
  PYTH_SOL_USD,
} from '../../../src/ingest/solana/programs.ts'
import { orcaAccount, pythAccount } from './encode.ts'
import { logsNotification, type TestTransaction, transactionAnswer } from './transaction.ts'
import { ChainWorld, slotAt } from './world.ts'

export interface MarketTapeOptions {
  seed: number
  minutes: number
  perSecond: number
  /** How many of all transactions are launches. */
  launches: number
  /** How many of all transactions have a truncated log. */
  truncated: number
  startMs: number
  /** SOL has one price for all of it. */
  isSolConstant?: boolean
}

/** What was put on the tape, by kind; notifications that were repeated count each time. */
export interface TapeCounts {
  frames: number
  transactions: number
  failed: number
  foreign: number
  strangers: number
  repeated: number
  truncated: number
  /** Notifications that came behind one of a later transaction. */
  disordered: number
}

export interface MarketTape {
  world: ChainWorld
  counts: TapeCounts
  /** By trade of the ledger: the price of SOL that was believed then. */
  solUsd: number[]
}

interface Told {
  transaction: TestTransaction
  token: string | null
  order: number
  /** When its notification comes. */
  dueMs: number
}

const SLOT_MS = 400
/** The price of SOL changes this often. Notifications do not overtake a change, so that each trade has one price. */
const PRICE_MS = 8_000
/** How much later than its transaction a notification comes at most: less than a trade waits for the one before it. */
const DELAY_MS_MAX = 1_200
const SUBSCRIPTIONS = [101, 102, 103, 104, 105]
const [, , SLOTS, PYTH, ORCA] = SUBSCRIPTIONS

const encodeAccount = (owner: string, data: Buffer) => ({ owner, data: [data.toString('base64'), 'base64'] })

/** One market being told. */
export class Teller implements MarketTape {
  /** Those that have happened, in their order, until somebody takes them. */
  readonly transactions: TestTransaction[] = []
  readonly world: ChainWorld
  readonly solUsd: number[] = []
  readonly counts: TapeCounts = {
    ...{ frames: 0, transactions: 0, failed: 0, foreign: 0, strangers: 0, repeated: 0, truncated: 0 },
    disordered: 0,
  }
  readonly #options: MarketTapeOptions
  #lines = 0
  #atMs: number
  #slotAtMs: number
  #usd = 150
  #changes = 0

  constructor(options: MarketTapeOptions) {
    const { seed, startMs, launches, truncated } = options
    this.#options = options
    this.world = new ChainWorld(seed, { startMs, launches, truncated })
    this.#atMs = startMs
    this.#slotAtMs = startMs
  }

  /** Accounts as they are, for a node that answers by itself. */
  accountsOf(addresses: readonly string[], nowMs: number): unknown[] {
    return addresses.map((address) => {
      if (address === PYTH_SOL_USD) return encodeAccount(PYTH_OWNER, pythAccount(this.#usd, nowMs))
      if (address === ORCA_SOL_USDC) return encodeAccount(ORCA_OWNER, orcaAccount(this.#usd))
      const account = this.world.accounts.get(address)
      return account === undefined ? null : encodeAccount(account.owner, account.data)
    })
  }

  *lines(): Generator<string> {
    const { minutes, startMs } = this.#options
    yield `${JSON.stringify({ format: 'mintlake-solana-tape', version: 1 })}\n`
    yield* this.#opening()
    for (const endMs = startMs + minutes * 60_000; this.world.nowMs < endMs; ) {
      yield* this.#stretch(Math.min(this.world.nowMs + PRICE_MS, endMs))
      yield* this.#solPrice()
    }
    yield* this.#closing()
    yield `${JSON.stringify({ end: this.#lines })}\n`
  }

  #line(line: object): string {
    this.#lines++
    return `${JSON.stringify({ at: this.#atMs, ...line })}\n`
  }

  #frame(frame: object): string {
    this.counts.frames++
    return this.#line({ frame: JSON.stringify({ jsonrpc: '2.0', ...frame }) })
  }

  *#opening(): Generator<string> {
    yield this.#line({ method: 'getGenesisHash', params: [], result: MAINNET_GENESIS })
    const pyth = encodeAccount(PYTH_OWNER, pythAccount(this.#usd, this.#atMs))
    const orca = encodeAccount(ORCA_OWNER, orcaAccount(this.#usd))
    yield this.#accounts([PYTH_SOL_USD, ORCA_SOL_USDC], [pyth, orca])
    for (const [index, result] of SUBSCRIPTIONS.entries()) yield this.#frame({ id: index + 1, result })
  }

  #accounts(addresses: string[], value: object[]): string {
    const params = [addresses, { encoding: 'base64', commitment: 'confirmed' }]
    return this.#line({ method: 'getMultipleAccounts', params, result: { context: { slot: 1 }, value } })
  }

  /** What both accounts say next: sometimes nonsense of one of them, which is not to be believed. */
  *#solPrice(): Generator<string> {
    this.#changes++
    const isNonsense = this.#options.isSolConstant !== true && this.#changes % 5 === 3
    const change = this.#options.isSolConstant ? 1 : 0.995 + 0.01 * this.world.random()
    const usd = Math.round(this.#usd * change * 1e6) / 1e6
    const notice = (subscription: number, value: object) =>
      this.#frame({
        method: 'accountNotification',
        params: { subscription, result: { context: { slot: this.world.slot }, value } },
      })
    yield notice(PYTH, encodeAccount(PYTH_OWNER, pythAccount(isNonsense ? usd * 1.5 : usd, this.#atMs)))
    if (isNonsense) return
    yield notice(ORCA, encodeAccount(ORCA_OWNER, orcaAccount(usd * 1.001)))
    this.#usd = usd
  }

  /** The market until a time: what happens, and then what is told of it, in the order in which it comes. */
  *#stretch(endMs: number): Generator<string> {
    const { world, counts } = this
    const told: Told[] = []
    const lastOf = new Map<string, number>()
    for (; world.nowMs < endMs; world.pass(1_000 / this.#options.perSecond)) {
      for (const { transaction, token, inOrder } of this.#happening()) {
        counts.transactions++
        this.transactions.push(transaction)
        const isDelayed = world.random() < 0.15
        const delayMs = isDelayed ? world.random() ** 2 * DELAY_MS_MAX : 0
        // Nothing but their arrival orders the swaps of a pool.
        const earliestMs = inOrder && token !== null ? (lastOf.get(token) ?? 0) : 0
        const dueMs = Math.min(endMs, Math.max(world.nowMs + delayMs, earliestMs))
        if (token !== null) lastOf.set(token, Math.max(dueMs, lastOf.get(token) ?? 0))
        told.push({ transaction, token, order: told.length, dueMs })
        if (world.random() < 0.02) {
          counts.repeated++
          told.push({ transaction, token, order: told.length, dueMs: dueMs + world.random() * 3_000 })
        }
      }
    }
    while (this.solUsd.length < world.ledger.length) this.solUsd.push(this.#usd)
    told.sort((a, b) => a.dueMs - b.dueMs || a.order - b.order)
    let latest = -1
    for (const each of told) {
      if (each.order < latest) counts.disordered++
      latest = Math.max(latest, each.order)
      yield* this.#notify(each.transaction, Math.min(each.dueMs, endMs))
    }
  }

  *#notify(transaction: TestTransaction, atMs: number): Generator<string> {
    while (this.#slotAtMs + SLOT_MS <= atMs) {
      this.#slotAtMs += SLOT_MS
      this.#atMs = Math.max(this.#atMs, this.#slotAtMs)
      const slot = slotAt(this.#slotAtMs)
      const result = { parent: slot - 1, root: slot - 32, slot }
      yield this.#frame({ method: 'slotNotification', params: { subscription: SLOTS, result } })
    }
    this.#atMs = Math.max(this.#atMs, atMs)
    if (transaction.failed) this.counts.failed++
    const { method, params } = logsNotification(transaction, SUBSCRIPTIONS[0])
    yield this.#frame({ method, params })
    if (transaction.logs.at(-1) !== 'Log truncated' || transaction.failed) return
    const options = { encoding: 'json', maxSupportedTransactionVersion: 0, commitment: 'confirmed' }
    this.counts.truncated++
    yield this.#line({
      ...{ method: 'getTransaction', params: [transaction.signature, options] },
      result: transactionAnswer(transaction),
    })
  }

  /** The next transactions, with the token whose pool they swap in. */
  *#happening(): Generator<{ transaction: TestTransaction; token: string | null; inOrder: boolean }> {
    const { world, counts } = this
    const free = (transaction: TestTransaction) => ({ transaction, token: null, inOrder: false })
    const kind = world.random()
    if (world.tokens.length === 0 || kind < this.#options.launches) {
      const transaction = world.launch()
      yield { transaction, token: world.tokens.at(-1)?.mint ?? null, inOrder: false }
    } else if (kind > 0.97) yield free(world.bundle([world.pick(), world.pick(), world.pick()]))
    else if (kind > 0.96) {
      counts.foreign++
      yield free(world.foreign())
    } else if (kind > 0.95) {
      counts.strangers++
      yield free(world.stranger())
    } else {
      const token = world.pick()
      const inOrder = token.pool !== null
      const isSet = token.isMayhem && !inOrder && world.random() < 0.05
      const transaction = isSet ? world.setReserves(token) : world.trade(token)
      yield { transaction, token: token.mint, inOrder }
      if (world.random() > 0.1) return
      yield free(world.failed(transaction))
    }
  }

  /** The accounts that are asked for on the way. */
  *#closing(): Generator<string> {
    for (const [address, { owner, data }] of this.world.accounts)
      yield this.#accounts([address], [encodeAccount(owner, data)])
  }
}

/** Writes a tape. The same options give the same tape. */
export async function writeMarketTape(path: string, options: MarketTapeOptions): Promise<MarketTape> {
  const teller = new Teller(options)
  const gzip = createGzip({ level: constants.Z_BEST_SPEED })
  await pipeline(Readable.from(teller.lines()), gzip, createWriteStream(path))
  return teller
}
