// In: an answer's bytes and what the client can decompress. Out: compressed bytes, made once for each body that is
// kept and off the main thread. Never compresses a small body, and never makes one larger.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { bytesOf, type HttpAnswer } from './context.ts'
import { Lines } from './lines.ts'

/** Below this, headers outweigh what is saved. */
const COMPRESSED_BYTES_MIN = 1_024
/** Above this a body is sent as it is: compressing it would hold a thread for long. */
const COMPRESSED_BYTES_MAX = 64 * 1024 * 1024

const gzipAsync = promisify(gzip)
const brotliAsync = promisify(brotliCompress)
const BROTLI_OPTIONS = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
type Coding = 'br' | 'gzip'

/** Compressed forms of bodies that are still kept somewhere. */
const made = new WeakMap<Buffer, Partial<Record<Coding, Promise<Buffer>>>>()

/** The coding that the client likes best of those made here (RFC 9110, section 12.5.3), or null. */
export function codingOf(acceptEncoding: string): Coding | null {
  if (acceptEncoding === '') return null
  const qualities = new Map(
    acceptEncoding.split(',').map((entry) => {
      const [name, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return [name, quality === undefined ? 1 : Number(quality.slice(2))] as const
    }),
  )
  const quality = (coding: Coding) => qualities.get(coding) ?? qualities.get('*') ?? 0
  if (quality('br') === 0 && quality('gzip') === 0) return null
  return quality('br') >= quality('gzip') ? 'br' : 'gzip'
}

/** A successful answer with the headers of its forms, compressed when the client asked for it and it pays. */
export function encoded(answer: HttpAnswer, coding: Coding | null): HttpAnswer | Promise<HttpAnswer> {
  if (answer.status !== 200 && answer.status !== 304) return answer
  // Short and unchanged answers too: a shared cache must not hand one form to a client that asked for another.
  answer.headers = { ...answer.headers, Vary: 'Accept, Accept-Encoding' }
  if (answer.status === 304 || coding === null) return answer
  if (answer.body instanceof Lines && answer.body.bytes > COMPRESSED_BYTES_MAX) return answer
  const body = bytesOf(answer.body)
  if (body.length < COMPRESSED_BYTES_MIN || body.length > COMPRESSED_BYTES_MAX) return { ...answer, body }
  return compressed(answer, body, coding)
}

async function compressed(answer: HttpAnswer, body: Buffer, coding: Coding): Promise<HttpAnswer> {
  let forms = made.get(body)
  if (forms === undefined) {
    forms = {}
    made.set(body, forms)
  }
  forms[coding] ??= coding === 'br' ? brotliAsync(body, BROTLI_OPTIONS) : gzipAsync(body, { level: 1 })
  return { ...answer, body: await forms[coding], headers: { ...answer.headers, 'Content-Encoding': coding } }
}
