// A long list of rows of one height, of which only those in sight are drawn.

/** Rows drawn above and below the ones in sight, so that a fast scroll shows no holes. */
const OVERSCAN_ROWS = 8
/** A span begins and ends at a multiple of this, so that a scroll by less draws nothing anew. */
const ALIGNED_ROWS = 4

export interface Span {
  /** Index of the first row drawn, and of the one behind the last. */
  first: number
  end: number
}

/** The rows of a scrolled element that must be drawn. */
export function visibleSpan(
  scrollTopPx: number,
  heightPx: number,
  rowHeightPx: number,
  rowCount: number,
): Span {
  const aligned = (row: number): number => Math.floor(row / ALIGNED_ROWS) * ALIGNED_ROWS
  const first = Math.max(0, aligned(scrollTopPx / rowHeightPx - OVERSCAN_ROWS))
  const endInSight = (scrollTopPx + heightPx) / rowHeightPx
  const end = Math.min(rowCount, aligned(endInSight + OVERSCAN_ROWS) + ALIGNED_ROWS)
  return { first: Math.min(first, end), end }
}
