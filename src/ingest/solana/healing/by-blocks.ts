// What was missed, by whole blocks: one request for each.
import { HEAL_AHEAD } from '../limits.ts'
import type { History, Past, PastBlock, PastFault } from './history.ts'

export interface BlockHandlers {
  /** All before it was taken, or told as missing. */
  onBlock(block: PastBlock): Promise<void>
  /** A block, and what may lie before it, cannot be had as blocks. */
  onMissing(slot: number, fault: PastFault): Promise<void>
}

/** Blocks before one that the list has left out, which are asked for one after another. */
const PARENTS_MAX = 32

/** Calls `read` for one after another, and has those that follow asked for already. */
export async function inOrder<Item, Answer>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Answer>,
  read: (item: Item, answer: Answer) => Promise<boolean>,
): Promise<boolean> {
  const asked: Promise<Answer>[] = []
  for (const [index, item] of items.entries()) {
    while (asked.length < Math.min(items.length, index + HEAL_AHEAD)) asked.push(ask(items[asked.length]))
    const answer = await asked[index]
    delete asked[index]
    if (!(await read(item, answer))) return false
  }
  return true
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
  let end: 'over' | 'refused' | null = null
  /** A block that is refused by itself, as for a transaction in it that cannot be read, is followed by one that is not. */
  const isRefusedAlone = async (slot: number): Promise<boolean> => {
    const next = slots[slots.indexOf(slot) + 1]
    return next !== undefined && (await history.block(next)).ok
  }
  const read = async (slot: number, past: Past<PastBlock>): Promise<boolean> => {
    if (!past.ok) {
      if (past.fault === 'over' || (past.fault === 'refused' && !(await isRefusedAlone(slot)))) {
        end = past.fault
        return false
      }
      await onMissing(slot, past.fault)
      at = slot
      return true
    }
    const { blocks, fault } = await withParents(history, past.value, at)
    if (fault === 'over') {
      end = fault
      return false
    }
    if (fault !== null) await onMissing(blocks[0].parentSlot, fault)
    for (const block of blocks) await onBlock(block)
    at = slot
    return true
  }
  await inOrder(slots, (slot) => history.block(slot), read)
  return end
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
