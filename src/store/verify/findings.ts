// Collects what a verification finds: faults, up to FINDINGS_MAX, and notes.
import type { DuckDBConnection } from '@duckdb/node-api'
import { queryOne } from '../duckdb/query.ts'
import { type DataFile, relativePath } from '../lake/lake-files.ts'
import { FINDING_EXAMPLES_MAX, FINDINGS_MAX } from '../limits.ts'

export interface Finding {
  /** Null: it concerns the lake as a whole. */
  table: string | null
  /** Below the lake's folder; null: it concerns no single file. */
  file: string | null
  message: string
  /** The lake lacks something that no copy of it could have: a backup of it is whole all the same. */
  isLoss?: boolean
}

export class Findings {
  readonly list: Finding[] = []
  /** Remarks that are not faults. */
  readonly notes: string[] = []
  /** How many faults were found after the list was full. */
  omitted = 0

  add(table: string | null, file: string | null, message: string): void {
    this.#push({ table, file, message })
  }

  addFile(file: DataFile, message: string): void {
    this.add(file.table, relativePath(file), message)
  }

  addBarLoss(message: string): void {
    this.#push({ table: 'bars', file: null, message, isLoss: true })
  }

  #push(finding: Finding): void {
    if (this.list.length < FINDINGS_MAX) this.list.push(finding)
    else this.omitted++
  }

  /** What a killed server has left undone is a remark: its next start completes it. */
  addUnlessKilled({ wasKilled }: { wasKilled: boolean }, table: string, file: string, message: string): void {
    if (wasKilled)
      this.notes.push(`${file}: ${message}; the server was killed, and its next start completes this`)
    else this.add(table, file, message)
  }

  /** A fault whose loss an operator has acknowledged is a remark. */
  addUnless(isAcknowledged: boolean, table: string | null, file: string | null, message: string): void {
    if (isAcknowledged) this.notes.push(`${file ?? table}: ${message}, settled`)
    else this.add(table, file, message)
  }
}

/** The beginning of SQL that counts faults, and has examples of them. @param name what these are named by */
export const countedSql = (name: string): string =>
  `SELECT count(*)::DOUBLE AS count, array_to_string(min(${name}, ${FINDING_EXAMPLES_MAX}), ', ') AS examples`

/** Reports the faults that such SQL finds; none of them: nothing. @param noun what they are */
export async function reportCounted(
  { connection, findings }: { connection: DuckDBConnection; findings: Findings },
  table: string,
  sql: string,
  noun: string,
  fault: string,
): Promise<void> {
  const { count, examples } = await queryOne(connection, sql, { count: 'number', examples: 'string?' })
  if (count > 0) findings.add(table, null, `${pluralize(count, noun)} ${fault}, among them ${examples}`)
}

/** `1 row`, `2 rows`. */
export const pluralize = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
