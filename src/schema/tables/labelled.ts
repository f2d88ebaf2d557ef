// The view `labelled` of the lake: accepted submissions with what the price did afterwards, as one set of columns.
import type { Column } from '../table-types.ts'
import { TABLES } from '../tables.ts'

/** Columns of `outcomes` that have another name in the view, since `training` has one of their name with another meaning. */
const RENAMED: Readonly<Record<string, string>> = { known_at: 'labels_known_at' }

const training: readonly Column[] = TABLES.training.columns
const outcomes: readonly Column[] = TABLES.outcomes.columns
/** Columns of `outcomes` that the view adds; the others say what `training` says already. */
const added = outcomes.filter(({ name }) => name in RENAMED || training.every((other) => other.name !== name))

/** Columns from one of its tables, by the name there and in the view. */
interface ViewColumn {
  table: 'training' | 'outcomes'
  source: string
  column: Column
}

const fromTraining = (column: Column): ViewColumn => ({ table: 'training', source: column.name, column })

/** What the view selects, in its order. An outcome is NULL until it is due. */
export const LABELLED_COLUMNS: readonly ViewColumn[] = [
  ...training.slice(0, -1).map(fromTraining),
  ...added.map((column): ViewColumn => {
    const { name } = column
    const comment = name in RENAMED ? 'When the outcomes of the row became durable, UTC' : column.comment
    return {
      table: 'outcomes',
      source: name,
      column: { ...column, name: RENAMED[name] ?? name, nullable: true, comment },
    }
  }),
  ...training.slice(-1).map(fromTraining),
]

/** A view that readers use as a table. */
export const LABELLED = {
  name: 'labelled',
  comment:
    'One labelled example for each accepted submission, as in training, with its outcomes, as in outcomes; NULL: not due yet',
  lakeDateColumn: 'submitted_at',
  columns: LABELLED_COLUMNS.map(({ column }) => column),
} as const
