// Follows a window of the market list, or a set of tokens, and keeps its rows.
import type { MarketRow } from './answers.ts'
import { type FollowOptions, linesOf, Progress, reconnecting } from './follow.ts'
import type { QueryValues, Transport } from './transport.ts'

/** The window as it is now. */
export interface WindowItem {
  /** From top to bottom. With `fields` they have what was asked for, and `mint`. */
  rows: MarketRow[]
  /** Mints of the rows that are others than in the item before. */
  changed: string[]
  /** Rows of the whole list, and those before the window. */
  total: number
  offset: number
  /** Position of the list. */
  seq: number
}

/** See `MintlakeClient.followWindow`. */
export function followWindow(
  transport: Transport,
  query: QueryValues,
  options: FollowOptions,
): AsyncGenerator<WindowItem, void, undefined> {
  const connect = (progress: Progress) => connection(transport, query, options, progress)
  return reconnecting(transport, options, new Progress(null), connect)
}

/** The states of the window over one connection, which begins with all rows. */
async function* connection(
  transport: Transport,
  query: QueryValues,
  options: FollowOptions,
  progress: Progress,
): AsyncGenerator<WindowItem, void, undefined> {
  const rows = new Map<string, MarketRow>()
  let order: readonly string[] = []
  let changed: string[] = []
  for await (const line of linesOf(transport, { ...query, follow: 'window' }, options, progress)) {
    if (line === null) continue
    if (line.event === undefined) {
      rows.set(line.mint, line)
      changed.push(line.mint)
    } else if (line.event === 'window') {
      order = line.order ?? order
      const inWindow = new Set(order)
      for (const mint of rows.keys()) if (!inWindow.has(mint)) rows.delete(mint)
      const { total, offset, seq } = line
      yield { rows: order.flatMap((mint) => rows.get(mint) ?? []), changed, total, offset, seq }
      changed = []
    }
  }
}
