// One folder for all temporary files of a run, whatever makes them: a process that a test kills cannot remove its own.
// It is in memory where there is much of it: thousands of small files are made, synced and removed. Drills use the disk.
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

const IN_MEMORY = '/dev/shm'
/** Many times what the tests have at once. */
const ROOM_BYTES_MIN = 8 * 2 ** 30

function isRoomy(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return Math.min(bavail * bsize, freemem()) >= ROOM_BYTES_MIN
  } catch {
    return false
  }
}

/** Runs before the processes of the tests are started, which inherit the variable. Returns what runs after they have ended. */
export default function makeTemporaryRoot({ config }: TestProject): () => void {
  const parent = config.mode === 'drills' || !isRoomy(IN_MEMORY) ? tmpdir() : IN_MEMORY
  const root = mkdtempSync(join(parent, 'mintlake-tests-'))
  process.env.TMPDIR = root
  return () => rmSync(root, { recursive: true, force: true, maxRetries: 5 })
}
