// A long list of rows of one height, of which only those in sight are drawn.

/** Rows drawn above and below the ones in sight, so that a fast scroll shows no holes. */
const OVERSCAN_ROWS = 8

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
  const first = Math.max(0, Math.floor(scrollTopPx / rowHeightPx) - OVERSCAN_ROWS)
  const end = Math.min(rowCount, Math.ceil((scrollTopPx + heightPx) / rowHeightPx) + OVERSCAN_ROWS)
  return { first: Math.min(first, end), end }
}
