// Compresses answers on other threads, a few at a time, and caches the compressed forms while the same version answers the same
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
import { weighted } from '../request/negotiate.ts'
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

/** The coding that the client prefers of these (RFC 9110, section 12.5.3), the first of equals; null: what is plain. */
export function preferredCoding(
  acceptEncoding: string,
  codings: readonly Coding[] = ['br', 'gzip'],
): Coding | null {
  if (acceptEncoding === '') return null
  const qualities = new Map(weighted(acceptEncoding).map(({ name, quality }) => [name, quality]))
  const quality = (coding: Coding) => qualities.get(coding) ?? qualities.get('*') ?? 0
  const best = Math.max(...codings.map(quality))
  if (best === 0 || best < (qualities.get('identity') ?? 0)) return null
  return codings.find((coding) => quality(coding) === best) ?? null
}

/** The compressed form of a version of an answer. The body itself is not held. */
interface Form {
  /** The answer's ETag: with the same one the bytes are the same. */
  version: string
  /** What it counts against the bytes of all. */
  bytes: number
  compressed: Promise<Buffer>
}

export class CompressionCache {
  readonly #codings: Readonly<Record<Coding, Compress>>
  readonly #queue = pLimit(COMPRESSIONS_AT_ONCE)
  /** By coding and request; least recently used first. */
  readonly #forms: BoundedMap<string, Form>
  /** The last large body: its form is dropped when another one begins. */
  #large = { key: '', isRunning: false }

  constructor(codings = CODINGS, bytesMax = COMPRESSED_FORMS_BYTES_MAX) {
    this.#codings = codings
    this.#forms = new BoundedMap({
      weightMax: bytesMax,
      weigh: ({ bytes }, key) => key.length + bytes,
    })
  }

  /** Bytes of the keys and of the uncompressed bodies, except for a large one: more than those of the forms. */
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
    const compressed = this.#compressed(coding, cacheKey, answer.headers.ETag, body, bytes)
    if (compressed === null) return plain
    return compressed.then((form) =>
      form.length < bytes
        ? { ...answer, body: form, headers: { ...answer.headers, 'Content-Encoding': coding } }
        : plain,
    )
  }

  /** @returns null if too many wait, or another large body is being compressed */
  #compressed(
    coding: Coding,
    cacheKey: string | null,
    version: string | undefined,
    body: Buffer | ChunkedBody,
    bytes: number,
  ): Promise<Buffer> | null {
    const key = cacheKey === null || version === undefined ? '' : `${coding} ${cacheKey}`
    const known = this.#forms.renew(key)
    if (known !== undefined && known.version === version) return known.compressed
    const isLarge = body instanceof ChunkedBody || bytes > COMPRESSED_CACHED_BYTES_MAX
    if (isLarge ? this.#large.isRunning : this.#queue.pendingCount >= COMPRESSIONS_WAITING_MAX) return null
    const compressed = isLarge
      ? this.#compressLarge(coding, key, body)
      : this.#queue(() => this.#codings[coding](body))
    if (key === '' || version === undefined) return compressed
    const form = { version, bytes: isLarge ? 0 : bytes, compressed }
    this.#forms.set(key, form)
    const drop = () => this.#forms.get(key) === form && this.#forms.delete(key)
    // A failure reaches the requests that wait for this form; later ones try again.
    compressed.then(() => isLarge && setTimeout(drop, COMPRESSED_LARGE_TTL_MS).unref(), drop)
    return compressed
  }

  #compressLarge(coding: Coding, key: string, body: Buffer | ChunkedBody): Promise<Buffer> {
    const compressed =
      body instanceof ChunkedBody ? compressChunks(coding, body.restart()) : this.#codings[coding](body)
    const large = { key, isRunning: true }
    this.#forms.delete(this.#large.key)
    this.#large = large
    return compressed.finally(() => {
      large.isRunning = false
    })
  }
}
