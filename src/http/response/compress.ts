// Compresses answers on other threads, a few at a time, and caches the compressed forms while the same bytes answer the same
// request. An answer is sent plain if it is small, if compression does not make it smaller, or if too many others wait. At
// its maximum the cache drops the least recently used form.
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import pLimit from 'p-limit'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { bodyBytes, type HttpAnswer } from '../context.ts'
import {
  COMPRESSED_CACHED_BYTES_MAX,
  COMPRESSED_FORMS_BYTES_MAX,
  COMPRESSED_LARGE_TTL_MS,
  COMPRESSIONS_AT_ONCE,
  COMPRESSIONS_WAITING_MAX,
} from '../limits.ts'
import { parseQuality } from '../request/negotiate.ts'
import { ChunkedBody } from './chunked-body.ts'

/** Smaller bodies are sent plain: compression would save less than its headers cost. */
const COMPRESSED_BYTES_MIN = 1_024
/** Larger bodies are sent plain: compression would occupy a thread for long. */
const COMPRESSED_BYTES_MAX = 64 * 1024 * 1024

/** How much of a large body is handed to another thread at a time. */
const COMPRESSED_CHUNK_BYTES = 2 * 1024 * 1024

export type Coding = 'br' | 'gzip'
export type Compress = (body: Buffer) => Promise<Buffer>

const gzipAsync = promisify(gzip)
const brotliAsync = promisify(brotliCompress)
const BROTLI_OPTIONS = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
const GZIP_OPTIONS = { level: 1 }
export const CODINGS: Readonly<Record<Coding, Compress>> = {
  br: (body) => brotliAsync(body, BROTLI_OPTIONS),
  gzip: (body) => gzipAsync(body, GZIP_OPTIONS),
}

/** Compresses a large body chunk by chunk: in memory are two chunks and the compressed bytes. */
async function compressChunks(coding: Coding, body: ChunkedBody): Promise<Buffer> {
  const chunkSize = COMPRESSED_CHUNK_BYTES
  const compressor =
    coding === 'br'
      ? createBrotliCompress({ ...BROTLI_OPTIONS, chunkSize })
      : createGzip({ ...GZIP_OPTIONS, chunkSize })
  const compressed = buffer(compressor)
  const chunk = Buffer.allocUnsafeSlow(COMPRESSED_CHUNK_BYTES)
  for (let offset = 0; offset < body.bytes; ) {
    let length = 0
    // A copy, because all bodies share the memory that `chunkAt` returns.
    while (length < chunk.length && offset + length < body.bytes)
      length += body.chunkAt(offset + length).copy(chunk, length)
    offset += length
    // The chunk is filled again only after it has been compressed.
    await new Promise<void>((resolve, reject) =>
      compressor.write(chunk.subarray(0, length), (error) => (error ? reject(error) : resolve())),
    )
  }
  compressor.end()
  return compressed
}

/** The coding that the client prefers of `br` and `gzip` (RFC 9110, section 12.5.3), or null. */
export function preferredCoding(acceptEncoding: string): Coding | null {
  if (acceptEncoding === '') return null
  const qualities = new Map(
    acceptEncoding.split(',').map((entry) => {
      const [name, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
      return [name, parseQuality(parameters)] as const
    }),
  )
  const quality = (coding: Coding) => qualities.get(coding) ?? qualities.get('*') ?? 0
  const best = Math.max(quality('br'), quality('gzip'))
  if (best === 0 || best < (qualities.get('identity') ?? 0)) return null
  return quality('br') >= quality('gzip') ? 'br' : 'gzip'
}

/** Whether the client takes gzip: it asks for it, and does not prefer what is plain. */
export function acceptsGzip(acceptEncoding: string): boolean {
  const only = acceptEncoding
    .split(',')
    .filter((entry) => !/^\s*br\s*(;|$)/i.test(entry))
    .join(',')
  return preferredCoding(only === '' ? '' : `${only},br;q=0`) === 'gzip'
}

/** The compressed form of a large body, found by request and version, so that the body itself need not be held. */
interface LargeForm {
  key: string
  compressed: Promise<Buffer>
  isRunning: boolean
}

export class CompressionCache {
  readonly #codings: Readonly<Record<Coding, Compress>>
  readonly #queue = pLimit(COMPRESSIONS_AT_ONCE)
  /** By coding and request; least recently used first. One serves a request only while `body` is the answer. */
  readonly #forms: BoundedMap<string, { body: Buffer; compressed: Promise<Buffer> }>
  #large: LargeForm | null = null

  constructor(codings = CODINGS, bytesMax = COMPRESSED_FORMS_BYTES_MAX) {
    this.#codings = codings
    this.#forms = new BoundedMap({
      weightMax: bytesMax,
      weigh: ({ body }, key) => key.length + body.length,
    })
  }

  /** Bytes of the keys and of the uncompressed bodies: more than those of the forms. */
  get bytes(): number {
    return this.#forms.weight
  }

  /**
   * Compresses a successful answer if the client accepts it and it is worth it, and sets `Vary`.
   * @param cacheKey the same text for the same request; null: the answer is for one client, so nothing is cached.
   */
  encode(
    answer: HttpAnswer,
    coding: Coding | null,
    cacheKey: string | null,
  ): HttpAnswer | Promise<HttpAnswer> {
    if (answer.status !== 200 && answer.status !== 304) return answer
    // On every answer: a shared cache must not send one form to a client that accepts only another.
    answer.headers = { ...answer.headers, Vary: 'Accept, Accept-Encoding' }
    if (answer.status === 304 || coding === null) return answer
    const body = answer.body instanceof ChunkedBody ? answer.body : bodyBytes(answer.body)
    const bytes = body instanceof ChunkedBody ? body.bytes : body.length
    const plain = { ...answer, body }
    if (bytes < COMPRESSED_BYTES_MIN || bytes > COMPRESSED_BYTES_MAX) return plain
    const compressed =
      body instanceof ChunkedBody || bytes > COMPRESSED_CACHED_BYTES_MAX
        ? this.#largeForm(coding, cacheKey, answer.headers.ETag, body)
        : this.#smallForm(coding, cacheKey, body)
    if (compressed === null) return plain
    return compressed.then((form) =>
      form.length < bytes
        ? { ...answer, body: form, headers: { ...answer.headers, 'Content-Encoding': coding } }
        : plain,
    )
  }

  /** @returns null if too many wait. Comparing two bodies costs a thousandth of compressing one. */
  #smallForm(coding: Coding, cacheKey: string | null, body: Buffer): Promise<Buffer> | null {
    const key = `${coding} ${cacheKey}`
    const known = cacheKey === null ? undefined : this.#forms.get(key)
    const current = known?.body.equals(body) ? known : undefined
    if (current === undefined && this.#queue.pendingCount >= COMPRESSIONS_WAITING_MAX) return null
    const form = current ?? { body, compressed: this.#queue(() => this.#codings[coding](body)) }
    if (cacheKey === null) return form.compressed
    this.#forms.set(key, form)
    // A failure reaches the requests that wait for this form; later ones try again.
    if (form !== known) form.compressed.catch(() => this.#forms.get(key) === form && this.#forms.delete(key))
    return form.compressed
  }

  /** @returns null while another large body is being compressed. */
  #largeForm(
    coding: Coding,
    cacheKey: string | null,
    version: string | undefined,
    body: Buffer | ChunkedBody,
  ): Promise<Buffer> | null {
    const key = cacheKey === null || version === undefined ? '' : `${coding} ${cacheKey} ${version}`
    if (key !== '' && this.#large?.key === key) return this.#large.compressed
    if (this.#large?.isRunning) return null
    const compressed =
      body instanceof ChunkedBody ? compressChunks(coding, body.restart()) : this.#codings[coding](body)
    const form: LargeForm = { key, compressed, isRunning: true }
    this.#large = form
    const drop = () => {
      if (this.#large === form) this.#large = null
    }
    compressed.then(() => {
      form.isRunning = false
      setTimeout(drop, COMPRESSED_LARGE_TTL_MS).unref()
    }, drop)
    return compressed
  }
}
