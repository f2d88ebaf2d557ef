// One grid for the keyboard: Tab leads into it and out of it again, arrows and j/k go about inside.

/** Where the keyboard is: `row` -1 is the heading, whose buttons have columns. */
export interface GridPlace {
  row: number
  column: number
}

export interface GridSize {
  rows: number
  columns: number
  /** Rows of a page. */
  pageRows: number
}

/** Where a key leads; null: it is none of the grid's. */
export function gridMove(key: string, { row, column }: GridPlace, size: GridSize): GridPlace | null {
  const last = size.rows - 1
  const toRow = (to: number): GridPlace => ({ row: Math.min(last, Math.max(-1, to)), column })
  const toColumn = (to: number): GridPlace => ({ row, column: Math.min(size.columns - 1, Math.max(0, to)) })
  switch (key) {
    case 'ArrowDown':
    case 'j':
      return toRow(row + 1)
    case 'ArrowUp':
    case 'k':
      return toRow(row - 1)
    case 'ArrowRight':
      return row === -1 ? toColumn(column + 1) : null
    case 'ArrowLeft':
      return row === -1 ? toColumn(column - 1) : null
    case 'PageDown':
      return toRow(Math.max(0, row) + size.pageRows)
    case 'PageUp':
      return toRow(Math.max(0, row - size.pageRows))
    case 'Home':
      return row === -1 ? toColumn(0) : toRow(0)
    case 'End':
      return row === -1 ? toColumn(size.columns - 1) : toRow(last)
    default:
      return null
  }
}
