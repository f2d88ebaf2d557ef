// In: whatever was thrown. Out: what it says. Never the trace of where it was thrown.

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** What it says in short: DuckDB adds lines on where and how. */
export const firstLineOf = (error: unknown): string => messageOf(error).split('\n')[0]
