// One folder for all temporary files of a run, whatever makes them: a process that a test kills cannot remove its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Runs before the processes of the tests are started, which inherit the variable. Returns what runs after they have ended. */
export default function makeTemporaryRoot(): () => void {
  const root = mkdtempSync(join(tmpdir(), 'mintlake-tests-'))
  process.env.TMPDIR = root
  return () => rmSync(root, { recursive: true, force: true, maxRetries: 5 })
}
