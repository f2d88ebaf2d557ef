// Compares the bars that the engine has closed, by run and timeframe, with those that the lake got, and has.
import { type RunBars, readBarAccounts } from '../market-data/bar-account.ts'
import type { Findings } from './findings.ts'
import { pluralize } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'

/** Checks that each closed bar is in the lake, was there before, or was told to be dropped. */
export async function verifyBarAccounts({ connection, findings }: VerifyContext): Promise<void> {
  const accounts = await readBarAccounts(connection)
  if (accounts === null) {
    findings.notes.push('closed bars were not counted yet: the next start begins to')
    return
  }
  for (const run of accounts.runs) verifyRun(run, findings)
  const { rowsExpected, rowsFound } = accounts
  if (rowsFound !== rowsExpected)
    findings.addBarLoss(`${pluralize(rowsExpected, 'row')} were written, and ${rowsFound} found`)
}

function verifyRun({ runId, tf, closed, dropped, repeated, written, settled }: RunBars, findings: Findings) {
  const bars = `bars of ${tf} in run ${runId}`
  if (dropped > 0) findings.notes.push(`${bars}: ${dropped} were dropped, since the lake did not keep up`)
  if (settled > 0) findings.notes.push(`${bars}: ${settled} are missing; settled`)
  const missing = closed - dropped - repeated - written - settled
  if (missing === 0) return
  const what = missing > 0 ? `${missing} are missing` : `${-missing} are too many`
  findings.addBarLoss(
    `${bars}: ${closed} were closed, and the lake got ${written + repeated}: ${what}; see mintlake lake repair`,
  )
}
