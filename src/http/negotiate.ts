// In: the `format` parameter and the Accept header. Out: the format to answer in, or 406. The parameter wins; JSON is
// always available. Never encodes anything.
import { ServiceError } from '../schema/errors.ts'
import type { Context } from './context.ts'
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
export function formatOf(
  { query, headers }: Pick<Context, 'query' | 'headers'>,
  available: readonly Format[],
): Format {
  if (query.get('format')) {
    const format = oneOf(query, 'format', FORMATS, 'json')
    if (available.includes(format)) return format
    throw notAcceptable(available)
  }
  const ranked = acceptedTypes(headers.accept)
  if (ranked.length === 0) return 'json'
  for (const type of ranked) {
    const format = MEDIA_TYPES[type]
    if (format !== undefined && available.includes(format)) return format
  }
  throw notAcceptable(available)
}

function notAcceptable(available: readonly Format[]): ServiceError {
  return new ServiceError('not_acceptable', `available formats are ${available.join(', ')}`, { available })
}

/** Media types of an Accept header, best first (RFC 9110, section 12.5.1); those with q=0 are left out. */
function acceptedTypes(accept: string): string[] {
  return accept
    .split(',')
    .map((entry) => {
      const [type, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) }
    })
    .filter(({ type, quality }) => type !== '' && quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ type }) => type)
}
