// Asks the chain what it says of tokens beside their trades, ahead of need, with the requests that live work leaves.
import { base58 } from '@scure/base'
import { isAddress, isOffCurveAddress } from '@solana/addresses'
import { z } from 'zod'
import type { Clock } from '../../../lib/clock.ts'
import { safeParse } from '../../../lib/safe-parse.ts'
import type { PatchFields } from '../../../schema/datapoint.ts'
import { ENRICHED_SOURCES } from '../../../schema/enrichment.ts'
import type { PatchEvent } from '../../../schema/event.ts'
import { Accounts } from '../accounts.ts'
import { derivedAddresses } from '../derived-addresses.ts'
import {
  ACCOUNTS_PER_CALL,
  ENRICH_ACCOUNTS_FRESH_MS,
  ENRICH_HOLDERS_CONCURRENCY,
  ENRICH_HOLDERS_FRESH_MS,
  ENRICH_HOTTEST,
  LARGEST_ACCOUNTS_MAX,
} from '../limits.ts'
import { toUnits } from '../quotes.ts'
import type { Rpc } from '../rpc.ts'
import type { Account } from '../sol-price.ts'
import { EnrichmentQueue, type Urgency } from './enrichment-queue.ts'
import { isMarketAccount, largestHolders } from './holders.ts'
import {
  METADATA_PROGRAM,
  type MintFacts,
  readMetadata,
  readMintFacts,
  readTokenAccount,
} from './mint-facts.ts'

export interface ChainEnrichmentOptions {
  /** Whose calls come after live work. */
  rpc: Pick<Rpc, 'call'>
  commitment: string
  clock: Clock
  signal: AbortSignal
  collectMs?: number | undefined
  /** Since when the market holds a token; null: it does not, and none is made by what the chain says of it. */
  heldSince(mint: string): number | null
  /** The hottest tokens of the market, at most so many, the hottest first. */
  hottest(count: number): readonly string[]
  apply(event: PatchEvent): void
  /** Told where a token's texts and picture are. */
  onUri?: ((mint: string, uri: string) => void) | undefined
}

const largestSchema = z.object({
  context: z.object({ slot: z.number() }).optional(),
  value: z.array(z.object({ address: z.string().max(64), amount: z.string().max(32) })),
})

const METADATA_SEEDS = [Buffer.from('metadata'), base58.decode(METADATA_PROGRAM)]

/**
 * Where Metaplex has the metadata of a mint: the first address that is no public key. The library's own derivation answers in no certain
 * order, and a tape has to give the same events each time. @returns null where the mint is no address
 */
function metadataAddressOf(mint: string): string | null {
  if (!isAddress(mint)) return null
  return (
    derivedAddresses(METADATA_PROGRAM, [...METADATA_SEEDS, base58.decode(mint)])
      .map((bytes) => base58.encode(Uint8Array.from(bytes)))
      .find((address) => isAddress(address) && isOffCurveAddress(address)) ?? null
  )
}

/**
 * Keeps two things of each token: what its accounts say, many tokens a call, and who holds it, at least one call a token. Each has
 * its own age, and is asked for again when the token is read, submitted, hot or traded after that.
 */
export class ChainEnrichment {
  readonly #options: ChainEnrichmentOptions
  readonly #accounts: Accounts
  readonly #ofAccounts: EnrichmentQueue
  readonly #ofHolders: EnrichmentQueue
  #unreadable = 0

  constructor(options: ChainEnrichmentOptions) {
    const { rpc, commitment, signal, collectMs, clock, heldSince } = options
    this.#options = options
    this.#accounts = new Accounts(rpc, commitment, signal, collectMs)
    const nowMs = () => clock.monotonicMs()
    this.#ofAccounts = new EnrichmentQueue({
      freshMs: ENRICH_ACCOUNTS_FRESH_MS,
      nowMs,
      heldSince,
      ask: (mint) => this.#askAccounts(mint),
      // Each mint takes two accounts of a call.
      concurrency: ACCOUNTS_PER_CALL / 2,
    })
    this.#ofHolders = new EnrichmentQueue({
      freshMs: ENRICH_HOLDERS_FRESH_MS,
      nowMs,
      heldSince,
      ask: (mint) => this.#askHolders(mint),
      concurrency: ENRICH_HOLDERS_CONCURRENCY,
    })
  }

  /** The last of them is asked about first. Returns at once. */
  want(mints: readonly string[], urgency: Urgency): void {
    if (this.#options.signal.aborted) return
    this.#ofAccounts.want(mints, urgency)
    this.#ofHolders.want(mints, urgency)
  }

  /** To be called every some seconds. */
  tick(): void {
    this.want(this.#options.hottest(ENRICH_HOTTEST).toReversed(), 'hot')
    this.#ofAccounts.tick()
    this.#ofHolders.tick()
  }

  /** Resolves when nothing is asked for any more; null: nothing is. */
  get pending(): Promise<void> | null {
    return this.#ofAccounts.pending ?? this.#ofHolders.pending
  }

  /** Accounts that exist since a slot, of a call or of several, with the slot of the first; undefined where one could not be had. */
  async #read(
    addresses: readonly string[],
    since = 0,
  ): Promise<{ accounts: (Account | null)[]; slot: number | null } | undefined> {
    const ask = (address: string) =>
      new Promise<{ account: Account | null | undefined; slot: number | null }>((resolve) => {
        this.#accounts.want(address, (account, slot) => resolve({ account, slot }), since)
      })
    const answers = await Promise.all(addresses.map(ask))
    const accounts = answers.flatMap(({ account }) => (account === undefined ? [] : [account]))
    return accounts.length === answers.length ? { accounts, slot: answers.at(0)?.slot ?? null } : undefined
  }

  async #askAccounts(mint: string): Promise<boolean> {
    const metaplexAddress = metadataAddressOf(mint)
    if (metaplexAddress === null) return true
    const read = await this.#read([mint, metaplexAddress])
    const [account, metaplex] = read?.accounts ?? []
    if (read === undefined || account == null) return false
    const facts = readMintFacts(account, read.slot)
    if (facts === null) {
      this.#unreadable++
      return true
    }
    const metadata = await this.#metadataOf(mint, facts, metaplexAddress, metaplex ?? null)
    if (metadata === undefined) return false
    this.#patch(mint, {
      has_mint_authority: facts.hasMintAuthority,
      has_freeze_authority: facts.hasFreezeAuthority,
      transfer_fee_enabled: facts.hasTransferFee,
      is_mutable_metadata: metadata && (metadata.isMutable || facts.hasPointerAuthority),
      totalSupply: toUnits(facts.supply, facts.decimals),
    })
    if (metadata?.uri) this.#options.onUri?.(mint, metadata.uri)
    return true
  }

  /** Of a mint's metadata; null: the chain has none that we can read; undefined: its account could not be had. */
  async #metadataOf(mint: string, facts: MintFacts, metaplexAddress: string, metaplex: Account | null) {
    const { metadataAddress } = facts
    const isElsewhere = metadataAddress !== null && metadataAddress !== mint
    if (!isElsewhere && facts.metadata !== null) return facts.metadata
    if (!isElsewhere || metadataAddress === metaplexAddress) return metaplex && readMetadata(metaplex, mint)
    const read = await this.#read([metadataAddress])
    if (read === undefined) return undefined
    const [account] = read.accounts
    return account && readMetadata(account, mint)
  }

  async #askHolders(mint: string): Promise<boolean> {
    const { rpc, commitment, signal } = this.#options
    const answer = await rpc.call('getTokenLargestAccounts', [mint, { commitment }], signal)
    const listed = answer.ok ? safeParse(largestSchema, answer.result).data : undefined
    if (listed === undefined) return false
    const largest = listed.value.slice(0, LARGEST_ACCOUNTS_MAX).map(({ address }) => address)
    // What was closed meanwhile holds nothing; a node that is behind the one that has listed it does not know it yet, nor its owner.
    const since = listed.context?.slot
    const read = await this.#read([mint, ...largest], since)
    const [account, ...tokenAccounts] = read?.accounts ?? []
    const facts = account && readMintFacts(account, null)
    // Who holds a supply is on a list: a node with an empty one does not know the token yet.
    if (!facts || (largest.length === 0 && facts.supply > 0n)) return false
    const held = tokenAccounts.flatMap((each) => (each && readTokenAccount(each)) ?? [])
    if (held.length < tokenAccounts.filter((each) => each !== null).length) return false
    const ofMint = held.filter((each) => each.mint === mint)
    const owners = [...new Set(ofMint.map(({ owner }) => owner))]
    const ownerAccounts = await this.#read(owners, since)
    if (ownerAccounts === undefined) return false
    const markets = new Set(owners.filter((_, index) => isMarketAccount(ownerAccounts.accounts[index])))
    const found = largestHolders(ofMint, facts, (owner) => markets.has(owner))
    if (found !== null)
      this.#patch(mint, { top10_holder_pct_onchain: found.top10Pct, topHolders: found.holders })
    return true
  }

  #patch(mint: string, fields: PatchFields): void {
    const { clock, heldSince, apply, signal } = this.#options
    if (signal.aborted || heldSince(mint) === null) return
    const nowMs = clock.now()
    const source = { enriched_at: nowMs, enriched_source: ENRICHED_SOURCES.chain }
    apply({ type: 'patch', mint, ts: nowMs, fields: { ...fields, ...source } })
  }

  describe(): Record<string, unknown> {
    return {
      accounts: { ...this.#ofAccounts.describe(), unreadable: this.#unreadable },
      holders: this.#ofHolders.describe(),
    }
  }
}
