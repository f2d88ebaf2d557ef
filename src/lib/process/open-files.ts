// How many files this process may have open at once. Each client's connection is one too.
import { closeSync, openSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { systemCode } from '../error-text.ts'

/** What a server should be allowed: one for each client, and its files. */
export const OPEN_FILES_MIN = 4_096

/** How an operator raises it, as the end of a sentence. */
export const RAISE_OPEN_FILES = `raise them, as LimitNOFILE of the unit or with ulimit -n, to ${OPEN_FILES_MIN} or more`

/** Of this process or of all: no more files may be open. */
const AT_LIMIT = new Set(['EMFILE', 'ENFILE'])

/** @returns null where it is not limited, or not known here. @param limits what Linux tells of a process */
export function openFilesMax(limits: string | null = readLimits()): number | null {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits ?? '') ?? []
  return soft === undefined ? null : Number(soft)
}

function readLimits(): string | null {
  try {
    return readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return null
  }
}

/** Whether no more file can be opened now. */
export function isAtOpenFilesMax(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return false
  } catch (error) {
    return AT_LIMIT.has(systemCode(error))
  }
}

/** What kept something from being written, as the begin of a sentence: `otherwise`, which blames the disk, where it was not this limit. */
export const whatRefused = (error: unknown, otherwise: string): string =>
  AT_LIMIT.has(systemCode(error)) ? 'too many files are open (ulimit -n)' : otherwise
