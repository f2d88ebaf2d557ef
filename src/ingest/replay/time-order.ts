// Puts the trades of a file in the order of their times where it is another: newest first, or one symbol after the other.
import { TRADE_BATCH_ROWS, TRADE_ORDER_LAG_MS, TRADE_ORDER_ROWS_MAX } from '../limits.ts'
import type { RowFault, Side, TradeBatch } from './trade-batch.ts'
import { invalid } from './trade-columns.ts'

/**
 * Batches in the order of time. A file of up to TRADE_ORDER_ROWS_MAX rows is sorted where it has to be; a longer one is passed on
 * as it is.
 * @param path for the error.
 * @param describe what is thrown where the source fails.
 * @throws StoreError `invalid` where a longer file is not in order at its beginning: the market would refuse its rows as late.
 */
export async function* inTimeOrder(
  batches: AsyncGenerator<TradeBatch>,
  path: string,
  describe: (error: unknown) => Error,
): AsyncGenerator<TradeBatch> {
  const head: TradeBatch[] = []
  let rows = 0
  let isWhole = false
  try {
    while (rows <= TRADE_ORDER_ROWS_MAX && !isWhole) {
      const next = await batches.next()
      isWhole = next.done === true
      if (next.done === true) break
      head.push(next.value)
      rows += next.value.rows
    }
    const order = orderOf(head)
    if (isWhole) yield* order.isOrdered ? head : sorted(head, order)
    else {
      if (order.lateRows > rows / 10)
        throw invalid(
          `the rows of ${path} are not in the order of their times (${order.isNewestFirst ? 'the newest come first' : 'they go back again and again'}), ` +
            `and a file of more than ${TRADE_ORDER_ROWS_MAX} rows is not sorted here: sort it by time first`,
        )
      while (head.length > 0) yield head.shift() as TradeBatch
      yield* batches
    }
  } catch (error) {
    throw describe(error)
  } finally {
    await batches.return(undefined)
  }
}

interface Order {
  isOrdered: boolean
  isNewestFirst: boolean
  /** Rows that are so far behind an earlier one that the market may refuse them. */
  lateRows: number
  /** For each row its time, or that of the row before where it has none. */
  times: Float64Array
}

function orderOf(batches: readonly TradeBatch[]): Order {
  const times = new Float64Array(batches.reduce((sum, { rows }) => sum + rows, 0))
  let at = 0
  let beforeMs = Number.NEGATIVE_INFINITY
  let latestMs = Number.NEGATIVE_INFINITY
  let forward = 0
  let back = 0
  let lateRows = 0
  for (const { rows, tsMs, faults } of batches) {
    for (let row = 0; row < rows; row++, at++) {
      const isTime = !Number.isNaN(tsMs[row]) && !faults.has(row)
      const ms = isTime ? tsMs[row] : beforeMs
      times[at] = ms
      if (ms > beforeMs) forward++
      else if (ms < beforeMs) back++
      if (ms < latestMs - TRADE_ORDER_LAG_MS) lateRows++
      beforeMs = ms
      if (ms > latestMs) latestMs = ms
    }
  }
  return { isOrdered: back === 0, isNewestFirst: back > forward, lateRows, times }
}

/** The rows of all batches by time; rows of one time in the order of the file, or in the reverse one where it is newest first. */
function* sorted(batches: readonly TradeBatch[], { times, isNewestFirst }: Order): Generator<TradeBatch> {
  const order = Uint32Array.from(times, (_, index) => index)
  if (isNewestFirst) order.reverse()
  order.sort((a, b) => times[a] - times[b] || (isNewestFirst ? b - a : a - b))
  const starts: number[] = []
  let rows = 0
  for (const batch of batches) {
    starts.push(rows)
    rows += batch.rows
  }
  for (let from = 0; from < rows; from += TRADE_BATCH_ROWS)
    yield gather(batches, starts, order.subarray(from, from + TRADE_BATCH_ROWS))
}

/** A batch of these rows, which are numbered over all batches. */
function gather(batches: readonly TradeBatch[], starts: readonly number[], order: Uint32Array): TradeBatch {
  const rows = order.length
  const [tsMs, price, size] = [new Float64Array(rows), new Float64Array(rows), new Float64Array(rows)]
  const symbolCode = new Uint32Array(rows)
  const sides: (Side | null)[] = []
  const wallets: (string | null)[] = []
  const txs: (string | null)[] = []
  const faults = new Map<number, RowFault>()
  for (let at = 0; at < rows; at++) {
    const index = starts.findLastIndex((start) => start <= order[at])
    const batch = batches[index]
    const row = order[at] - starts[index]
    tsMs[at] = batch.tsMs[row]
    price[at] = batch.price[row]
    size[at] = batch.size[row]
    symbolCode[at] = batch.symbolCode[row]
    sides.push(batch.side?.[row] ?? null)
    wallets.push(batch.wallet?.[row] ?? null)
    txs.push(batch.tx?.[row] ?? null)
    const fault = batch.faults.get(row)
    if (fault !== undefined) faults.set(at, fault)
  }
  // Of JSON, whose records may show a column late, the last batch has them all.
  const { symbols, side, wallet, tx } = batches[batches.length - 1]
  return {
    rows,
    tsMs,
    price,
    size,
    symbolCode,
    symbols,
    faults,
    side: side === null ? null : sides,
    wallet: wallet === null ? null : wallets,
    tx: tx === null ? null : txs,
  }
}
