// In: whatever was thrown. Out: what it says, and its code where the system threw it. Never the trace of where it was thrown.

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** What it says in short: DuckDB adds lines on where and how. */
export const firstLineOf = (error: unknown): string => messageOf(error).split('\n')[0]

/** The code of an error of the system, such as ENOENT; empty where it has none. */
export const systemCode = (error: unknown): string =>
  (error as NodeJS.ErrnoException | null | undefined)?.code ?? ''
