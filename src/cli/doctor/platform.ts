// What the machine offers: the version of Node, the binaries, memory, file descriptors, the clock.

import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MEGABYTE } from '../../lib/bytes.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { OPEN_FILES_MIN, openFilesMax, RAISE_OPEN_FILES } from '../../lib/process/open-files.ts'
import { DAY_MS } from '../../lib/time.ts'
import { statePath } from '../../store/paths.ts'
import { CLOCK_AHEAD_MS_MAX, DOCTOR_CHILD_MS_MAX, MEMORY_MB_MIN, MEMORY_MB_USUAL } from '../limits.ts'
import { type CheckResult, fail, ok, warn } from './check.ts'

const NODE_MAJOR = 22
/** Node runs TypeScript as it is from this version on. */
const NODE_MINOR_MIN = 18
/** Packages are found from here, wherever the command is run. */
const HERE = fileURLToPath(new URL('.', import.meta.url))
/** The program is younger than this: a clock before it is wrong. */
const FIRST_RELEASE_MS = Date.UTC(2025, 0)

export function checkNode(version: string = process.versions.node): CheckResult {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major === NODE_MAJOR && minor >= NODE_MINOR_MIN) return ok(`Node ${version}`)
  return fail(
    `Node ${version}: Mintlake runs on Node ${NODE_MAJOR} (${NODE_MAJOR}.${NODE_MINOR_MIN} or later)`,
    'npm ci installs one beside the other dependencies; npx mintlake uses it',
  )
}

/** The programs that load a binary package and use it once. */
export const BINARIES = {
  'uWebSockets.js': 'const { App } = await import(process.argv[1]); App()',
  '@duckdb/node-api':
    'const duckdb = await import(process.argv[1]); const instance = await duckdb.DuckDBInstance.create(":memory:");' +
    ' await (await instance.connect()).run("SELECT 1")',
} as const

/** Loads a package with a binary in another process: one that does not fit this machine may end the process. */
export async function checkBinary(name: string, program: string): Promise<CheckResult> {
  try {
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, name], {
      timeout: DOCTOR_CHILD_MS_MAX,
      cwd: HERE,
    })
    return ok(`${name} loads on ${process.platform} ${process.arch}`)
  } catch (error) {
    const [reason = ''] = errorMessage(error)
      .split('\n')
      .filter((line) => /Error/.test(line))
    return fail(
      `${name} does not load on ${process.platform} ${process.arch}: ${reason || errorMessage(error).slice(0, 200)}`,
      'run npm ci again on this machine; the packages have binaries for glibc on Linux, macOS and Windows, x64 and arm64',
    )
  }
}

/** @param availableBytes of this machine, or of the container */
export function checkMemory(
  availableBytes: number = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()),
): CheckResult {
  const megabytes = Math.floor(availableBytes / MEGABYTE)
  const found = `${megabytes} MB of memory`
  if (megabytes < MEMORY_MB_MIN)
    return fail(found, `the server and its lake process need ${MEMORY_MB_MIN} MB: they would be killed`)
  if (megabytes >= MEMORY_MB_USUAL) return ok(found)
  return warn(
    found,
    `${MEMORY_MB_USUAL} MB are usual for 100 000 tokens: set --tokens-max lower, before the first start: a market that holds more tokens than a later start allows begins empty`,
  )
}

export function checkDescriptors(limits?: string): CheckResult {
  const most = openFilesMax(limits)
  if (most === null) return ok('the number of file descriptors is not limited, or not known here')
  if (most >= OPEN_FILES_MIN) return ok(`${most} file descriptors`)
  return warn(`${most} file descriptors: each client takes one`, RAISE_OPEN_FILES)
}

/** A clock that was set back or ahead: the store, where there is one, last wrote at a time that it compares with. */
export function checkClock(nowMs: number, dataDir: string | null): CheckResult {
  const shown = new Date(nowMs).toISOString()
  const remedy = 'set the clock by a time service (timedatectl set-ntp true) before the server starts'
  if (nowMs < FIRST_RELEASE_MS)
    return fail(`the clock says ${shown}, which is before this program was written`, remedy)
  const written = dataDir === null ? undefined : statSync(statePath(dataDir), { throwIfNoEntry: false })
  const writtenMs = written?.mtimeMs ?? 0
  if (writtenMs > nowMs + CLOCK_AHEAD_MS_MAX)
    return warn(
      `the clock says ${shown}, and the store was written at ${new Date(writtenMs).toISOString()}`,
      remedy,
    )
  if (writtenMs > 0 && nowMs - writtenMs > 365 * DAY_MS)
    return warn(
      `the clock says ${shown}, a year after the store was last written`,
      `if that is wrong, ${remedy}`,
    )
  return ok(`the clock says ${shown}`)
}
