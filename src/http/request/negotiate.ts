// Chooses the format of an answer: the `format` parameter wins over the Accept header.
import { FORMATS } from '../../schema/api/parts.ts'
import { ServiceError } from '../../schema/errors.ts'
import { type Context, JSON_TYPE, NDJSON_TYPE } from '../context.ts'
import { ARROW_TYPE, MSGPACK_TYPE } from '../encode/items.ts'
import { oneOf } from './parameters.ts'

export type Format = (typeof FORMATS)[number]

/** What an answer about the market is sent as, by its format. */
export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  json: JSON_TYPE,
  ndjson: NDJSON_TYPE,
  msgpack: MSGPACK_TYPE,
  arrow: ARROW_TYPE,
}

const MEDIA_TYPES: Readonly<Record<string, Format>> = {
  'application/json': 'json',
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'application/msgpack': 'msgpack',
  'application/x-msgpack': 'msgpack',
  'application/vnd.msgpack': 'msgpack',
  'application/vnd.apache.arrow.stream': 'arrow',
  'application/*': 'json',
  '*/*': 'json',
}

/**
 * The format of an answer about the market.
 * @param available the formats that the route can make.
 * @throws ServiceError `invalid_parameter`, `not_acceptable`.
 */
export const negotiateFormat = (
  request: Pick<Context, 'query' | 'headers'>,
  available: readonly Format[],
): Format => negotiate(request, FORMATS, MEDIA_TYPES, available, 'json')

/**
 * The same for a route with formats of its own.
 * @param words the values that the `format` parameter may have.
 * @param types the media types that Accept may name.
 * @param otherwise the format if the client names none.
 */
export function negotiate<Name extends string>(
  { query, headers }: Pick<Context, 'query' | 'headers'>,
  words: readonly Name[],
  types: Readonly<Record<string, Name>>,
  available: readonly Name[],
  otherwise: Name,
): Name {
  if (query.get('format')) {
    const format = oneOf(query, 'format', words, otherwise)
    if (available.includes(format)) return format
    throw notAcceptable(available)
  }
  if (headers.accept === '') return otherwise
  const named = weighted(headers.accept)
    .filter(({ name }) => name !== '')
    .sort((a, b) => b.quality - a.quality)
  if (named.length === 0) return otherwise
  const refused = new Set(named.filter(({ quality }) => quality === 0).map(({ name }) => types[name]))
  for (const { name: type, quality } of named) {
    const format = types[type]
    if (format === undefined || quality === 0) continue
    // A wildcard means any that is not refused by name.
    const meant = type.includes('*') ? [format, ...available].filter((name) => !refused.has(name)) : [format]
    const found = meant.find((name) => available.includes(name))
    if (found !== undefined) return found
  }
  throw notAcceptable(available)
}

function notAcceptable(available: readonly string[]): ServiceError {
  return new ServiceError('not_acceptable', `The available formats are ${available.join(', ')}.`, {
    available,
  })
}

/** The entries of an Accept or Accept-Encoding header, in lower case (RFC 9110, section 12.5); those with a quality of 0 are refused. */
export const weighted = (header: string): { name: string; quality: number }[] =>
  header.split(',').map((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
    return { name, quality: parseQuality(parameters) }
  })

/** The weight of an entry with these parameters, in lower case; 1 without `q`, 0 for an invalid one (RFC 9110, section
 *  12.4.2). */
function parseQuality(parameters: readonly string[]): number {
  const sent = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  if (sent === undefined) return 1
  const weight = sent === '' ? Number.NaN : Number(sent)
  return weight >= 0 && weight <= 1 ? weight : 0
}
