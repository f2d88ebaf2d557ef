// What was missed, by whole blocks: one request for each.
import { HEAL_AHEAD } from '../limits.ts'
import type { History, PastBlock, PastFault } from './history.ts'

export interface BlockHandlers {
  /** All before it was taken, or told as missing. */
  onBlock(block: PastBlock): Promise<void>
  /** A block, and what may lie before it, cannot be had as blocks. */
  onMissing(slot: number, fault: PastFault): Promise<void>
}

/** Blocks before one that the list has left out, which are asked for one after another. */
const PARENTS_MAX = 32

/** Each item with its answer, one after another; those that follow are asked for already. */
export async function* inOrder<Item, Answer>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Answer>,
): AsyncGenerator<[Item, Answer]> {
  const asked: Promise<Answer>[] = []
  for (const [index, item] of items.entries()) {
    while (asked.length < Math.min(items.length, index + HEAL_AHEAD)) asked.push(ask(items[asked.length]))
    const answer = await asked[index]
    delete asked[index]
    yield [item, answer]
  }
}

/**
 * Takes blocks in their order. That none is missing follows from their parents, not from the list: a node that has begun later lists
 * what it has.
 * @param afterSlot the last slot that is had
 * @returns null: all were taken, or told as missing; otherwise why the rest was not tried: there was no time, or blocks are refused
 */
export async function takeBlocks(
  history: History,
  slots: readonly number[],
  afterSlot: number,
  { onBlock, onMissing }: BlockHandlers,
): Promise<'over' | 'refused' | null> {
  let at = afterSlot
  /** A block that is refused by itself, as for a transaction in it that cannot be read, is followed by one that is not. */
  const isRefusedAlone = async (slot: number): Promise<boolean> => {
    const next = slots[slots.indexOf(slot) + 1]
    return next !== undefined && (await history.block(next)).ok
  }
  for await (const [slot, past] of inOrder(slots, (each) => history.block(each))) {
    if (past.ok) {
      const { blocks, fault } = await withParents(history, past.value, at)
      if (fault === 'over') return fault
      if (fault !== null) await onMissing(blocks[0].parentSlot, fault)
      for (const block of blocks) await onBlock(block)
    } else {
      const { fault } = past
      if (fault === 'over' || (fault === 'refused' && !(await isRefusedAlone(slot)))) return fault
      await onMissing(slot, fault)
    }
    at = slot
  }
  return null
}

/** A block, before it those between it and what is had; and why not all of these can be had. */
async function withParents(
  history: History,
  block: PastBlock,
  haveSlot: number,
): Promise<{ blocks: PastBlock[]; fault: PastFault | null }> {
  const blocks = [block]
  while (blocks[0].parentSlot > haveSlot) {
    if (blocks.length > PARENTS_MAX) return { blocks, fault: 'pruned' }
    const parent = await history.block(blocks[0].parentSlot)
    if (!parent.ok) return { blocks, fault: parent.fault }
    blocks.unshift(parent.value)
  }
  return { blocks, fault: null }
}
