// The range of bytes that a request asks for (RFC 9110, section 14).
import { ServiceError } from '../../schema/errors.ts'

const RANGE = /^bytes=(\d{0,15})-(\d{0,15})$/

/**
 * The range that a Range header names in a file of `bytes` bytes; null: the whole file. A header of another form, and one with
 * several ranges, is ignored, as the standard allows.
 * @throws ServiceError `range_not_satisfiable` where no byte of the file is in the range.
 */
export function byteRange(header: string, bytes: number): { first: number; last: number } | null {
  const [, from = '', to = ''] = RANGE.exec(header) ?? []
  if (from === '' && to === '') return null
  if (from !== '' && to !== '' && Number(to) < Number(from)) return null
  const first = from === '' ? Math.max(0, bytes - Number(to)) : Number(from)
  const last = from === '' || to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1)
  if (first <= last) return { first, last }
  throw new ServiceError(
    'range_not_satisfiable',
    `The file has ${bytes} bytes: the range ${header} has none of them.`,
    { bytes },
    { 'Content-Range': `bytes */${bytes}` },
  )
}
