// What was missed, transaction by transaction: cheaper than blocks where few of them have any.
import { AMM_PROGRAM, PUMP_PROGRAM } from '../programs.ts'
import type { History, Past, PastSignature } from './history.ts'

export interface SignatureQuestion {
  fromSlot: number
  beforeSlot: number
  /** More requests than this are not made: blocks would be cheaper. */
  requestsMax: number
  /** Whether a transaction was taken already. */
  isTaken(signature: string): boolean
}

/**
 * The transactions of both programs in these slots that have to be fetched, oldest first. Swaps of every pool name the program of the
 * pools, so that no pool is asked for by itself. That the list is whole is known where that of each program goes back to before its first
 * slot, or to a transaction that was taken.
 */
export async function listSignatures(
  history: History,
  question: SignatureQuestion,
): Promise<Past<PastSignature[]>> {
  const { fromSlot, beforeSlot, requestsMax, isTaken } = question
  const lists: PastSignature[][] = []
  let pages = 0
  for (const program of [PUMP_PROGRAM, AMM_PROGRAM]) {
    const list: PastSignature[] = []
    lists.push(list)
    let isWhole = false
    for (let before: string | null = null, isOpen = true; isOpen; ) {
      const count = lists.reduce((sum, each) => sum + each.length, 0)
      if (++pages + count > requestsMax) return { ok: false, fault: 'over' }
      const page = await history.signatures(program, before)
      if (!page.ok) return page
      for (const each of page.value) {
        const isKnown = each.slot < fromSlot || isTaken(each.signature)
        isWhole ||= isKnown
        if (!isKnown && !each.failed && each.slot < beforeSlot) list.push(each)
      }
      const oldest = page.value.at(-1)
      // An endpoint may give fewer than it was asked for; the same page again it would give for ever.
      isOpen = oldest !== undefined && oldest.slot >= fromSlot && oldest.signature !== before
      before = oldest?.signature ?? null
    }
    if (!isWhole) return { ok: false, fault: 'pruned' }
  }
  const [curves, pools] = lists.map((list) => list.reverse())
  const value = merged(curves, pools)
  return pages + value.length > requestsMax ? { ok: false, fault: 'over' } : { ok: true, value }
}

/** Two lists as one, each in its order; what both have stands once. Of one slot the first list comes first. */
function merged(first: readonly PastSignature[], second: readonly PastSignature[]): PastSignature[] {
  const places = new Map(second.map(({ signature }, place) => [signature, place]))
  const both: PastSignature[] = []
  let next = 0
  for (const each of first) {
    const place = places.get(each.signature)
    if (place === undefined)
      while (next < second.length && second[next].slot < each.slot) both.push(second[next++])
    else {
      while (next < place) both.push(second[next++])
      next = Math.max(next, place + 1)
    }
    both.push(each)
  }
  return [...both, ...second.slice(next)]
}
