// In: an answer's bytes and what the client can decompress. Out: compressed bytes, made off the main thread, a few bodies at
// a time, and once for as long as the same bytes answer the same question; or the plain ones where that would take too
// much. Never compresses a small body, never makes one larger, and never joins a large one. At its maximum the form asked
// for longest ago is forgotten: that costs one making.
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import pLimit from 'p-limit'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { bytesOf, type HttpAnswer } from '../context.ts'
import {
  COMPRESSED_FORMS_BYTES_MAX,
  COMPRESSED_KEPT_BYTES_MAX,
  COMPRESSED_LARGE_KEPT_MS,
  COMPRESSIONS_AT_ONCE,
  COMPRESSIONS_WAITING_MAX,
} from '../limits.ts'
import { qualityOf } from '../request/negotiate.ts'
import { ChunkedBody } from './chunked-body.ts'

/** Below this, headers outweigh what is saved. */
const COMPRESSED_BYTES_MIN = 1_024
/** Above this a body is sent as it is: compressing it would hold a thread for long. */
const COMPRESSED_BYTES_MAX = 64 * 1024 * 1024

/** So much of a large body goes to another thread at a time: few trips, and little memory. */
const COMPRESSED_PART_BYTES = 2 * 1024 * 1024

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

/** The same of a large body, a part at a time: what it holds is two parts and the compressed bytes. */
async function compressParts(coding: Coding, body: ChunkedBody): Promise<Buffer> {
  const chunkSize = COMPRESSED_PART_BYTES
  const compressor =
    coding === 'br'
      ? createBrotliCompress({ ...BROTLI_OPTIONS, chunkSize })
      : createGzip({ ...GZIP_OPTIONS, chunkSize })
  const compressed = buffer(compressor)
  const part = Buffer.allocUnsafeSlow(COMPRESSED_PART_BYTES)
  for (let offset = 0; offset < body.bytes; ) {
    let length = 0
    // A copy: the memory of what `partAt` answers is used for the next one that anybody asks for.
    while (length < part.length && offset + length < body.bytes)
      length += body.partAt(offset + length).copy(part, length)
    offset += length
    // The part is written to again once it has been compressed.
    await new Promise<void>((resolve, reject) =>
      compressor.write(part.subarray(0, length), (error) => (error ? reject(error) : resolve())),
    )
  }
  compressor.end()
  return compressed
}

/** The coding that the client likes best of those made here (RFC 9110, section 12.5.3), or null. */
export function codingOf(acceptEncoding: string): Coding | null {
  if (acceptEncoding === '') return null
  const qualities = new Map(
    acceptEncoding.split(',').map((entry) => {
      const [name, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
      return [name, qualityOf(parameters)] as const
    }),
  )
  const quality = (coding: Coding) => qualities.get(coding) ?? qualities.get('*') ?? 0
  const best = Math.max(quality('br'), quality('gzip'))
  if (best === 0 || best < (qualities.get('identity') ?? 0)) return null
  return quality('br') >= quality('gzip') ? 'br' : 'gzip'
}

/** A compressed form, and the very bytes that it is of: another version of them is another form. */
interface Form {
  body: Buffer
  compressed: Promise<Buffer>
}

/** The form of a large body, which is not held beside it: it is known by its question and version. */
interface LargeForm {
  key: string
  compressed: Promise<Buffer>
  isUnderWay: boolean
}

export class CompressionCache {
  readonly #codings: Readonly<Record<Coding, Compress>>
  readonly #queue = pLimit(COMPRESSIONS_AT_ONCE)
  /** By coding and question; the one asked for longest ago first. */
  readonly #forms: BoundedMap<string, Form>
  #large: LargeForm | null = null

  constructor(codings = CODINGS, bytesMax = COMPRESSED_FORMS_BYTES_MAX) {
    this.#codings = codings
    // What is counted are the keys and the plain bodies: more than their compressed forms.
    this.#forms = new BoundedMap({
      weightMax: bytesMax,
      weigh: ({ body }, key) => key.length + body.length,
    })
  }

  get bytes(): number {
    return this.#forms.weight
  }

  /**
   * A successful answer with the headers of its forms, compressed when the client asked for it, it pays, and not too many
   * others are compressed just now.
   * @param question what is asked, the same text for the same; null: the answer is not for others.
   */
  encoded(
    answer: HttpAnswer,
    coding: Coding | null,
    cacheKey: string | null,
  ): HttpAnswer | Promise<HttpAnswer> {
    if (answer.status !== 200 && answer.status !== 304) return answer
    // Short and unchanged answers too: a shared cache must not hand one form to a client that asked for another.
    answer.headers = { ...answer.headers, Vary: 'Accept, Accept-Encoding' }
    if (answer.status === 304 || coding === null) return answer
    const body = answer.body instanceof ChunkedBody ? answer.body : bytesOf(answer.body)
    const bytes = body instanceof ChunkedBody ? body.bytes : body.length
    const plain = { ...answer, body }
    if (bytes < COMPRESSED_BYTES_MIN || bytes > COMPRESSED_BYTES_MAX) return plain
    const compressed =
      body instanceof ChunkedBody || bytes > COMPRESSED_KEPT_BYTES_MAX
        ? this.#largeForm(coding, cacheKey, answer.headers.ETag, body)
        : this.#smallForm(coding, cacheKey, body)
    if (compressed === null) return plain
    return compressed.then((form) =>
      form.length < bytes
        ? { ...answer, body: form, headers: { ...answer.headers, 'Content-Encoding': coding } }
        : plain,
    )
  }

  /** Null when too many wait to be compressed. Comparing two bodies costs a thousandth of compressing one. */
  #smallForm(coding: Coding, cacheKey: string | null, body: Buffer): Promise<Buffer> | null {
    const key = `${coding} ${cacheKey}`
    const kept = cacheKey === null ? undefined : this.#forms.get(key)
    const isSame = kept?.body.equals(body) === true
    if (!isSame && this.#queue.pendingCount >= COMPRESSIONS_WAITING_MAX) return null
    const form = isSame ? kept! : { body, compressed: this.#queue(() => this.#codings[coding](body)) }
    if (cacheKey === null) return form.compressed
    this.#forms.set(key, form)
    // Whoever asked is told of the failure; those who ask later are not.
    if (form !== kept) form.compressed.catch(() => this.#forms.get(key) === form && this.#forms.delete(key))
    return form.compressed
  }

  /** Null while another one is made. */
  #largeForm(
    coding: Coding,
    cacheKey: string | null,
    version: string | undefined,
    body: Buffer | ChunkedBody,
  ): Promise<Buffer> | null {
    const key = cacheKey === null || version === undefined ? '' : `${coding} ${cacheKey} ${version}`
    if (key !== '' && this.#large?.key === key) return this.#large.compressed
    if (this.#large?.isUnderWay) return null
    const compressed =
      body instanceof ChunkedBody ? compressParts(coding, body.again()) : this.#codings[coding](body)
    const form: LargeForm = { key, compressed, isUnderWay: true }
    this.#large = form
    const forget = () => {
      if (this.#large === form) this.#large = null
    }
    compressed.then(() => {
      form.isUnderWay = false
      setTimeout(forget, COMPRESSED_LARGE_KEPT_MS).unref()
    }, forget)
    return compressed
  }
}
