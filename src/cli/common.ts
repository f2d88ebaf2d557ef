// In: values of a command line. Out: what several commands ask of them alike. Never reads a file itself.
import { SETTINGS } from '../config/config.ts'
import { relativePath } from '../store/lake/lake-files.ts'
import type { LakeReader } from '../store/query/lake-reader.ts'
import { type Option, UsageError, type Values } from './command.ts'
import { type Terminal, write } from './terminal.ts'

export const DATA_DIR: Option = {
  value: 'FOLDER',
  description: `${SETTINGS.dataDir.description}; ${SETTINGS.dataDir.env} [${SETTINGS.dataDir.otherwise}]`,
}

/** The data folder: a flag over the environment over the standard, as the server has it. */
export const dataDirOf = (values: Values, { env }: Terminal): string =>
  values['data-dir'] || env[SETTINGS.dataDir.env] || SETTINGS.dataDir.otherwise

export function wholeNumber(values: Values, name: string, min: number): number {
  const value = values[name]
  if (/^\d{1,15}$/.test(value) && Number(value) >= min) return Number(value)
  throw new UsageError(`--${name}: "${value}" is not a whole number of ${min} or more`)
}

/** Of a flag that says a moment: a date (UTC midnight) or an ISO 8601 time, as Unix ms; null when it is absent. */
export function moment(values: Values, name: string): number | null {
  const value = values[name]
  if (value === '') return null
  const isIso = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})?)?$/.test(value)
  const hasZone = value.length > 10 && !/(Z|[+-]\d{2}:\d{2})$/.test(value)
  const ms = isIso ? Date.parse(hasZone ? `${value.replace(' ', 'T')}Z` : value) : Number.NaN
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`--${name}: "${value}" is no date (2026-01-31) or time (2026-01-31T12:00:00Z)`)
}

/** Tells of files that a lake's catalog lists and that are not there. */
export async function warnOfMissing({ missing }: LakeReader, { stderr }: Terminal): Promise<void> {
  if (missing.length === 0) return
  const rows = missing.reduce((sum, part) => sum + part.rows, 0)
  const what = `${counted(missing.length, 'file')} of the lake missing or cut, ${counted(rows, 'row')} left out`
  await write(stderr, `mintlake: ${what}, among them ${relativePath(missing[0])}; see mintlake lake verify\n`)
}

/** `1 row`, `2 rows`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
