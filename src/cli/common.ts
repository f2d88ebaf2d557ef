// Options and small helpers that several commands share.
import { accessSync, constants } from 'node:fs'
import { SETTINGS } from '../config/settings.ts'
import { errorMessage } from '../lib/error-text.ts'
import { parseMoment, TIMER_MS_MAX } from '../lib/time.ts'
import { ServiceError } from '../schema/errors.ts'
import { findLockHolder } from '../store/data-folder/folder-lock.ts'
import { relativePath } from '../store/lake/lake-files.ts'
import type { LakeReader } from '../store/query/lake-reader.ts'
import type { StoreLog } from '../store/types.ts'
import { type Option, requiredValue, UsageError, type Values } from './command.ts'
import { type Terminal, write } from './terminal.ts'

/** Of 15 digits. */
const NUMBER_MAX = 1e15 - 1

export const DATA_DIR: Option = {
  value: 'FOLDER',
  description: `${SETTINGS.dataDir.description}; ${SETTINGS.dataDir.env} [${SETTINGS.dataDir.defaultText}]`,
}

/** Output formats of what is one answer, which `writeFound` writes. */
export const FORMAT: Option = {
  value: 'FORMAT',
  otherwise: 'table',
  allowed: ['table', 'json'],
  description: 'Output format',
}

/** An option for a number, with the one that is taken without it. */
export const numberOption = (unit: string, otherwise: number, description: string): Option => ({
  value: unit,
  otherwise: `${otherwise}`,
  description,
})

/** Writes what a command has found: as JSON where its flag --format says so, else as text. */
export const writeFound = (
  { format }: Values,
  { stdout }: Terminal,
  found: object,
  text: string,
): Promise<void> => write(stdout, format === 'json' ? `${JSON.stringify(found, null, 2)}\n` : text)

/** The data folder, as the server chooses it: the flag, else the environment variable, else the default. */
export const dataDirOf = (values: Values, { env }: Terminal): string =>
  values['data-dir'] || env[SETTINGS.dataDir.env] || SETTINGS.dataDir.defaultText

/**
 * Throws where a folder that no process has cannot be written to: a store opens on a read-only disk too, and would tell one by one
 * of what it then cannot do.
 */
export function requireWritable(dataDir: string): void {
  if (findLockHolder(dataDir) === null) accessSync(dataDir, constants.W_OK)
}

export function wholeNumber(values: Values, name: string, min: number, max = NUMBER_MAX): number {
  const value = requiredValue(values, name)
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (number >= min && number <= max) return number
  const isBounded = max < NUMBER_MAX || Number(value) > max
  const range = isBounded ? `from ${min} to ${max}` : `of ${min} or more`
  throw new UsageError(`--${name}: "${value}" is not a whole number ${range}`)
}

/** The flag --timeout, in milliseconds; 0: no limit. */
export const timeoutMs = (values: Values): number =>
  wholeNumber(values, 'timeout', 0, Math.floor(TIMER_MS_MAX / 1_000)) * 1_000

/** Parses a flag that is a date (midnight UTC), an ISO 8601 time or Unix ms. Returns Unix ms; null without the flag. */
export function moment(values: Values, name: string): number | null {
  const value = requiredValue(values, name)
  if (value === '') return null
  const ms = parseMoment(value)
  if (!Number.isNaN(ms)) return ms
  throw new UsageError(
    `--${name}: "${value}" is no date (2026-01-31), no ISO 8601 time (2026-01-31T12:00:00Z) and no Unix ms`,
  )
}

/** Parses the flags --from and --to, as `moment` does. */
export function span(values: Values): { fromMs: number | null; toMs: number | null } {
  const [fromMs, toMs] = [moment(values, 'from'), moment(values, 'to')]
  if (fromMs !== null && toMs !== null && fromMs > toMs) throw new UsageError('--from must not be after --to')
  return { fromMs, toMs }
}

/** Warns about files whose rows a reader leaves out. */
export async function warnOfLost({ lost }: LakeReader, { stderr }: Terminal): Promise<void> {
  const [first] = lost
  if (first === undefined) return
  const rows = lost.reduce((sum, { rowsLost }) => sum + rowsLost, 0)
  const what = `${counted(lost.length, 'file')} of the lake missing or damaged, ${counted(rows, 'row')} left out`
  await write(stderr, `mintlake: ${what}, among them ${relativePath(first)}; see mintlake lake verify\n`)
}

/** A count with its noun: `1 row`, `2 rows`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Log of a store that a command opens: to standard error, since it is not part of the result. */
export function storeLogTo({ stderr }: Terminal): StoreLog {
  const say = (fields: Record<string, unknown>, message: string): void => {
    const textOf = (value: unknown): string =>
      typeof value === 'object' && value !== null && !(value instanceof Error)
        ? JSON.stringify(value)
        : String(value)
    const details = Object.entries(fields).map(([name, value]) => ` ${name}=${textOf(value)}`)
    stderr.write(`mintlake: ${message}${details.join('')}\n`)
  }
  return { info: () => {}, warn: say, error: say }
}

/** Whether a store could not be opened because a server has its folder. */
export const isFolderInUse = (error: unknown): boolean => /is in use by/.test(errorMessage(error))

/** For rows of which some are written already: else they are read again. */
export const filesReplaced = (): ServiceError =>
  new ServiceError(
    'store_unavailable',
    'files of the lake were replaced while they were read; try again, or raise grace-ms of the server’s --lake-tidy',
  )
