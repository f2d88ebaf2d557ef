// The parameter `fields`: which members of a row or a DataPoint an answer has.
import { closest } from 'fastest-levenshtein'
import { jsonLine } from '../../lib/text/json-text.ts'
import type { RowFields } from '../../market/types.ts'
import { COMPACT_DATAPOINT_FIELDS, type DataPoint, dataPointSchema } from '../../schema/datapoint.ts'
import { ServiceError } from '../../schema/errors.ts'
import { COMPACT_ROW_FIELDS, ROW_FIELDS, type RowField } from '../../schema/market-item.ts'

import type { Query } from '../context.ts'
import { FIELD_ERRORS_MAX } from '../limits.ts'
import { QUOTED_CHARACTERS_MAX, wordsOf } from './parameters.ts'

const COMPACT = 'compact'

/** The fields of rows that a query asks for; null: all that rows have by themselves. @throws ServiceError `invalid_parameter`. */
export function rowFields(query: Query): RowFields | null {
  const fields = parseFields<RowField>(query, ROW_FIELDS, COMPACT_ROW_FIELDS)
  return fields === null ? null : { key: fields.join(), fields }
}

const DATAPOINT_FIELDS = dataPointSchema.keyof().options

/** The fields of a DataPoint that a query asks for; null: all. @throws ServiceError `invalid_parameter`. */
export const datapointFields = (query: Query): readonly (keyof DataPoint)[] | null =>
  parseFields<keyof DataPoint>(query, DATAPOINT_FIELDS, COMPACT_DATAPOINT_FIELDS)

/** Those members of a DataPoint. */
export const pick = (point: DataPoint, fields: readonly (keyof DataPoint)[]): Partial<DataPoint> =>
  Object.fromEntries(fields.map((field) => [field, point[field]]))

/** The same, as JSON. */
export const pickJson = (json: Buffer, fields: readonly (keyof DataPoint)[]): Buffer =>
  Buffer.from(jsonLine(pick(JSON.parse(json.toString()), fields)))

/** The names, each once, in the order in which they were asked for, after `mint`. */
function parseFields<Field extends string>(
  query: Query,
  known: readonly Field[],
  compact: readonly Field[],
): readonly Field[] | null {
  const sent = query.get('fields')
  if (sent === null || sent === '') return null
  const wanted = new Set<Field>()
  const unknown: string[] = []
  for (const name of ['mint', ...wordsOf(sent)]) {
    const field = known.find((other) => other === name)
    if (name === COMPACT) for (const other of compact) wanted.add(other)
    else if (field !== undefined) wanted.add(field)
    else unknown.push(name.slice(0, QUOTED_CHARACTERS_MAX))
  }
  if (unknown.length > 0) throw unknownFields(unknown, known)
  return [...wanted]
}

function unknownFields(names: readonly string[], known: readonly string[]): ServiceError {
  const told = names.slice(0, FIELD_ERRORS_MAX).map((name) => ({ name, near: nearest(name, known) }))
  const texts = told.map(({ name, near }) => `"${name}" (near: ${near.join(', ')})`)
  return new ServiceError('invalid_parameter', `fields has unknown names: ${texts.join('; ')}`, {
    errors: told.map(({ name, near }) => ({
      pointer: '/fields',
      code: 'invalid_parameter',
      message: `"${name}" is not one of the fields`,
      allowed: [COMPACT, ...known],
      suggestion: near[0] ?? COMPACT,
    })),
  })
}

const NEAR_MAX = 3

/** The names that are most like one. */
function nearest(name: string, known: readonly string[]): string[] {
  const rest = new Set(known)
  const like = known.filter((other) => other.toLowerCase().includes(name.toLowerCase()) && name.length > 2)
  const near = like.slice(0, NEAR_MAX)
  for (const other of near) rest.delete(other)
  while (near.length < NEAR_MAX) {
    const next = closest(name, [...rest])
    rest.delete(next)
    near.push(next)
  }
  return near
}
