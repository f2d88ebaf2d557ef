// What endpoints keep of the chain's past: which blocks there are, whole blocks, signatures by program, single transactions.

import { z } from 'zod'
import { backoffMs } from '../../../lib/backoff.ts'
import { safeParse } from '../../../lib/safe-parse.ts'
import { unlessAborted } from '../../../lib/wait.ts'
import {
  BLOCK_RANGE_SLOTS,
  FETCH_ATTEMPTS_MAX,
  FETCH_RETRY_MS,
  HEAL_AWAY_MS_MAX,
  HEAL_RETRY_MS_MAX,
  SIGNATURES_PER_CALL,
} from '../limits.ts'
import { verdictOf } from '../rpc.ts'
import type { ChainSource } from '../source.ts'
import {
  eventsInTransaction,
  mayHaveEvents,
  type RawEvent,
  readTransaction,
  type TransactionAnswer,
} from '../transaction-events.ts'

/** Why something of the past cannot be had. `over`: there was no time left to ask for it, or it would take too many requests. */
export type PastFault = 'pruned' | 'refused' | 'over'
export type Past<Value> = { ok: true; value: Value } | { ok: false; fault: PastFault }

export interface PastTransaction {
  signature: string
  events: readonly RawEvent[]
  /** The endpoint keeps neither its whole log nor its inner instructions. */
  isTruncated: boolean
}

export interface PastBlock {
  slot: number
  /** The block before it: what lies between was never made. */
  parentSlot: number
  /** Those that may have events, in their order. */
  transactions: readonly PastTransaction[]
}

export interface PastSignature {
  signature: string
  slot: number
  failed: boolean
}

const slotNumber = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const blocksSchema = z.array(slotNumber)
const blockSchema = z.object({ parentSlot: slotNumber, transactions: z.array(z.unknown()) })
const signaturesSchema = z.array(
  z.object({ signature: z.string().min(1).max(128), slot: slotNumber, err: z.unknown() }),
)

const readPast = ({ transaction, ...rest }: TransactionAnswer): PastTransaction => ({
  signature: transaction.signatures[0],
  ...eventsInTransaction({ transaction, ...rest }),
})

/** Asks again where another try may help, each endpoint in turn, for as long as there is time. Nothing rejects. */
export class History {
  requests = 0
  readonly #source: ChainSource
  readonly #untilMs: number
  readonly #ending = new AbortController()
  readonly #signal: AbortSignal
  readonly #commitment = 'confirmed'
  /** Endpoints that were waited for in vain, and have not answered since. */
  readonly #away = new Set<number>()

  /** @param untilMs all that is asked for and has not come by then is told as `over`, Unix ms */
  constructor(source: ChainSource, signal: AbortSignal, untilMs: number) {
    this.#source = source
    this.#untilMs = untilMs
    this.#signal = AbortSignal.any([signal, this.#ending.signal])
    void source.wait(untilMs - source.clock.now(), this.#signal).then(() => this.end())
  }

  /** Nothing more is asked for. */
  end(): void {
    this.#ending.abort()
  }

  /** The slots from one to another that have a block which is confirmed by now, ascending. */
  async slots(from: number, to: number): Promise<Past<number[]>> {
    const last = Math.min(to, from + BLOCK_RANGE_SLOTS - 1)
    const params = [from, last, { commitment: this.#commitment }]
    const past = await this.#ask('getBlocks', params, (answer) => safeParse(blocksSchema, answer).data)
    if (!past.ok) return past
    const within = past.value.filter((slot) => slot >= from && slot <= last)
    return { ok: true, value: within.sort((a, b) => a - b) }
  }

  block(slot: number): Promise<Past<PastBlock>> {
    const options = {
      encoding: 'json',
      transactionDetails: 'full',
      maxSupportedTransactionVersion: 0,
      rewards: false,
      commitment: this.#commitment,
    }
    return this.#ask('getBlock', [slot, options], (answer) => {
      const block = safeParse(blockSchema, answer).data
      if (block === undefined) return undefined
      const read = block.transactions.filter(mayHaveEvents).map(readTransaction)
      const transactions = read.flatMap((each) => (each === null ? [] : readPast(each)))
      // One that names our programs and cannot be read may be a trade.
      if (transactions.length < read.length) return undefined
      return { slot, parentSlot: block.parentSlot, transactions }
    })
  }

  /** A page of transactions that named a program, newest first. @param before null: from the newest on */
  signatures(program: string, before: string | null): Promise<Past<PastSignature[]>> {
    const page = { limit: SIGNATURES_PER_CALL, commitment: this.#commitment }
    const params = [program, before === null ? page : { ...page, before }]
    return this.#ask('getSignaturesForAddress', params, (answer) =>
      safeParse(signaturesSchema, answer).data?.map(({ signature, slot, err }) => ({
        signature,
        slot,
        failed: err != null,
      })),
    )
  }

  transaction(signature: string): Promise<Past<PastTransaction>> {
    const options = { encoding: 'json', maxSupportedTransactionVersion: 0, commitment: this.#commitment }
    return this.#ask('getTransaction', [signature, options], (answer) => {
      const transaction = readTransaction(answer)
      const isIt = transaction?.transaction.signatures[0] === signature
      return transaction === null || !isIt ? undefined : readPast(transaction)
    })
  }

  /** @param read undefined: the answer is none */
  async #ask<Value>(
    method: string,
    params: readonly unknown[],
    read: (answer: unknown) => Value | undefined,
  ): Promise<Past<Value>> {
    const { rpc, clock } = this.#source
    const tries = Array<number>(rpc.endpointCount).fill(0)
    let isPruned = false
    let failingSinceMs: number | null = null
    // The clock may jump.
    for (let attempt = 0; !this.#signal.aborted && clock.now() < this.#untilMs; attempt++) {
      this.requests++
      // A call may wait behind others, which do not end with it.
      const answer = await unlessAborted(rpc.call(method, params, this.#signal, tries), this.#signal)
      if (answer === null) break
      const { endpoint = 0 } = answer
      const value = answer.ok && answer.result !== null ? read(answer.result) : undefined
      const verdict = answer.ok ? (answer.result === null ? 'not_yet' : 'refused') : verdictOf(answer)
      if (verdict === 'over') break
      if (verdict !== 'again') this.#away.delete(endpoint)
      if (value !== undefined) return { ok: true, value }
      isPruned ||= verdict === 'pruned' || verdict === 'not_yet'
      const isCounted = verdict === 'not_yet' || verdict === 'unsure'
      if (isCounted) tries[endpoint]++
      else if (verdict !== 'again') tries[endpoint] = Number.POSITIVE_INFINITY
      else if (tries.some((count) => count >= FETCH_ATTEMPTS_MAX)) {
        // Others have refused: this one may have it, but all the time there is is not spent on one that never comes back.
        const nowMs = clock.monotonicMs()
        failingSinceMs ??= nowMs
        if (nowMs - failingSinceMs >= HEAL_AWAY_MS_MAX) this.#away.add(endpoint)
        if (this.#away.has(endpoint)) tries[endpoint] = Number.POSITIVE_INFINITY
      }
      // An endpoint that keeps less than another has not said what the other has.
      if (tries.every((count) => count >= FETCH_ATTEMPTS_MAX))
        return { ok: false, fault: isPruned ? 'pruned' : 'refused' }
      const retryMs = verdict === 'again' ? backoffMs(attempt, FETCH_RETRY_MS, HEAL_RETRY_MS_MAX) : 0
      await this.#source.wait(isCounted ? FETCH_RETRY_MS : retryMs, this.#signal)
    }
    return { ok: false, fault: 'over' }
  }
}
