// What a node keeps of the chain's past, and answers of it.
import { type TestTransaction, transactionAnswer } from './transaction.ts'

/** An answer of JSON-RPC. */
export type PastAnswer = { result: unknown } | { error: { code: number; message: string } }

const answerOf = (transaction: TestTransaction) =>
  transactionAnswer(transaction, transaction.logs.at(-1) === 'Log truncated')

/** Transactions by block. A slot without any has none, unless an empty one was added. */
export class ChainHistory {
  /** Slots before this one were cleaned up. */
  firstSlot = 0
  /** Blocks that the node has lost. */
  readonly lostSlots = new Set<number>()
  readonly #blocks = new Map<number, TestTransaction[]>()
  readonly #slots: number[] = []
  readonly #bySignature = new Map<string, TestTransaction>()

  add(transaction: TestTransaction): void {
    const { slot, signature } = transaction
    if (this.#bySignature.has(signature)) return
    this.#bySignature.set(signature, transaction)
    this.addBlock(slot).push(transaction)
  }

  /** Cleans up what is older than a slot. */
  forgetBefore(slot: number): void {
    this.firstSlot = Math.max(this.firstSlot, slot)
    while (this.#slots.length > 0 && this.#slots[0] < slot) {
      const oldest = this.#slots.shift()!
      for (const { signature } of this.#blocks.get(oldest) ?? []) this.#bySignature.delete(signature)
      this.#blocks.delete(oldest)
    }
  }

  /** The block of a slot, empty if it was not there. @returns its transactions */
  addBlock(slot: number): TestTransaction[] {
    const known = this.#blocks.get(slot)
    if (known !== undefined) return known
    const block: TestTransaction[] = []
    this.#blocks.set(slot, block)
    const at = this.#slots.findLastIndex((each) => each < slot) + 1
    this.#slots.splice(at, 0, slot)
    return block
  }

  /** @param confirmedSlot the newest that is confirmed; null: the node does not answer this method */
  answer(method: string, params: readonly unknown[], confirmedSlot: number): PastAnswer | null {
    switch (method) {
      case 'getBlocks': {
        const [from, to] = [Number(params[0]), Number(params[1])]
        const first = Math.max(from, this.firstSlot)
        return { result: this.#slots.filter((slot) => slot >= first && slot <= Math.min(to, confirmedSlot)) }
      }
      case 'getBlock':
        return this.#block(Number(params[0]), confirmedSlot)
      case 'getSignaturesForAddress':
        return { result: this.#signatures(String(params[0]), Object(params[1]), confirmedSlot) }
      case 'getTransaction': {
        const transaction = this.#bySignature.get(String(params[0]))
        const isKept = transaction !== undefined && transaction.slot >= this.firstSlot
        return { result: isKept ? answerOf(transaction) : null }
      }
      default:
        return null
    }
  }

  #block(slot: number, confirmedSlot: number): PastAnswer {
    const error = (code: number, message: string): PastAnswer => ({ error: { code, message } })
    if (slot < this.firstSlot)
      return error(-32_001, `Block ${slot} cleaned up. First available block: ${this.firstSlot}`)
    if (slot > confirmedSlot) return error(-32_004, `Block not available for slot ${slot}`)
    const transactions = this.#blocks.get(slot)
    if (transactions === undefined || this.lostSlots.has(slot))
      return error(-32_007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`)
    const parentSlot = this.#slots[this.#slots.indexOf(slot) - 1] ?? slot - 1
    return { result: { blockhash: '', parentSlot, transactions: transactions.map(answerOf) } }
  }

  #signatures(program: string, { before, limit = 1_000 }: { before?: string; limit?: number }, to: number) {
    const all = this.#slots
      .filter((slot) => slot >= this.firstSlot && slot <= to)
      .flatMap((slot) => this.#blocks.get(slot) ?? [])
      .filter(({ events }) => events.some((event) => event.program === program))
      .reverse()
    const from = before === undefined ? 0 : all.findIndex(({ signature }) => signature === before) + 1
    return all.slice(from, from + limit).map(({ signature, slot, failed }) => ({
      ...{ signature, slot, memo: null, blockTime: null, confirmationStatus: 'confirmed' },
      err: failed ? { InstructionError: [0, { Custom: 6002 }] } : null,
    }))
  }
}
