// Compares the bars that the engine has closed, by run and timeframe, with those that the lake got, and has.
import { readBarAccounts } from '../market-data/bar-account.ts'
import { pluralize } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'

const TABLE = 'bars'

/** Checks that each closed bar is in the lake, was there before, or was told to be dropped. */
export async function verifyBarAccounts({ connection, findings }: VerifyContext): Promise<void> {
  const accounts = await readBarAccounts(connection)
  if (accounts === null) {
    findings.notes.push('closed bars were not counted yet: the next start begins to')
    return
  }
  for (const { runId, tf, closed, dropped, repeated, written } of accounts.runs) {
    const ofRun = `bars of ${tf} in run ${runId}`
    if (dropped > 0) findings.notes.push(`${ofRun}: ${dropped} were dropped, since the lake did not keep up`)
    const missing = closed - dropped - repeated - written
    if (missing === 0) continue
    const what = missing > 0 ? `${missing} are missing` : `${-missing} are too many`
    findings.add(
      TABLE,
      null,
      `${ofRun}: ${closed} were closed, and the lake got ${written + repeated}: ${what}`,
    )
  }
  const { rowsExpected, rowsFound } = accounts
  if (rowsFound !== rowsExpected)
    findings.add(TABLE, null, `${pluralize(rowsExpected, 'row')} were written, and ${rowsFound} found`)
}
