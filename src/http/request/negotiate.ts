// In: the `format` parameter and the Accept header. Out: the format to answer in, or 406. The parameter wins; JSON is
// always available. Never encodes anything.
import { ServiceError } from '../../schema/errors.ts'
import type { Context } from '../context.ts'
import { oneOf } from './parameters.ts'

export const FORMATS = ['json', 'ndjson', 'msgpack', 'arrow'] as const
export type Format = (typeof FORMATS)[number]

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

/** The best format that both sides know. `available` are those that the route can make. */
export const formatOf = (asked: Pick<Context, 'query' | 'headers'>, available: readonly Format[]): Format =>
  negotiated(asked, FORMATS, MEDIA_TYPES, available, 'json')

/** The same for a route with formats of its own: `words` are what `format` may say, `types` what Accept may. */
export function negotiated<Name extends string>(
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
  const ranked = acceptedTypes(headers.accept)
  if (ranked.length === 0) return otherwise
  for (const type of ranked) {
    const format = types[type]
    if (format !== undefined && available.includes(format)) return format
  }
  throw notAcceptable(available)
}

function notAcceptable(available: readonly string[]): ServiceError {
  return new ServiceError('not_acceptable', `available formats are ${available.join(', ')}`, { available })
}

/** Media types of an Accept header, best first (RFC 9110, section 12.5.1); those with q=0 are left out. */
function acceptedTypes(accept: string): string[] {
  return accept
    .split(',')
    .map((entry) => {
      const [type, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
      return { type, quality: qualityOf(parameters) }
    })
    .filter(({ type, quality }) => type !== '' && quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ type }) => type)
}

/** How much the client likes an entry whose parameters, in lower case, these are; 0 where it says so or says nothing that is
 *  a weight (RFC 9110, section 12.4.2). */
export function qualityOf(parameters: readonly string[]): number {
  const said = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  if (said === undefined) return 1
  const weight = said === '' ? Number.NaN : Number(said)
  return weight >= 0 && weight <= 1 ? weight : 0
}
