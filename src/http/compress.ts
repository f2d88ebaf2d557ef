// In: an answer's bytes and what the client can decompress. Out: compressed bytes, made off the main thread, and once for
// as long as the same bytes answer the same question. Never compresses a small body, and never makes one larger.
// At its maximum the form asked for longest ago is forgotten: that costs one making.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { bytesOf, type HttpAnswer } from './context.ts'
import { COMPRESSED_FORMS_BYTES_MAX, COMPRESSED_KEPT_BYTES_MAX } from './limits.ts'
import { Lines } from './lines.ts'
import { qualityOf } from './negotiate.ts'

/** Below this, headers outweigh what is saved. */
const COMPRESSED_BYTES_MIN = 1_024
/** Above this a body is sent as it is: compressing it would hold a thread for long. */
const COMPRESSED_BYTES_MAX = 64 * 1024 * 1024

export type Coding = 'br' | 'gzip'
export type Compress = (body: Buffer) => Promise<Buffer>

const gzipAsync = promisify(gzip)
const brotliAsync = promisify(brotliCompress)
const BROTLI_OPTIONS = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
export const CODINGS: Readonly<Record<Coding, Compress>> = {
  br: (body) => brotliAsync(body, BROTLI_OPTIONS),
  gzip: (body) => gzipAsync(body, { level: 1 }),
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

export class CompressedForms {
  readonly #codings: Readonly<Record<Coding, Compress>>
  readonly #bytesMax: number
  /** By coding and question; the one asked for longest ago first. */
  readonly #forms = new Map<string, Form>()
  /** Of the questions and of the bodies that the forms are of: more than the forms themselves. */
  #bytes = 0

  constructor(codings = CODINGS, bytesMax = COMPRESSED_FORMS_BYTES_MAX) {
    this.#codings = codings
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * A successful answer with the headers of its forms, compressed when the client asked for it and it pays.
   * @param question what is asked, the same text for the same; null: the answer is not for others.
   */
  encoded(
    answer: HttpAnswer,
    coding: Coding | null,
    question: string | null,
  ): HttpAnswer | Promise<HttpAnswer> {
    if (answer.status !== 200 && answer.status !== 304) return answer
    // Short and unchanged answers too: a shared cache must not hand one form to a client that asked for another.
    answer.headers = { ...answer.headers, Vary: 'Accept, Accept-Encoding' }
    if (answer.status === 304 || coding === null) return answer
    if (answer.body instanceof Lines && answer.body.bytes > COMPRESSED_BYTES_MAX) return answer
    const body = bytesOf(answer.body)
    if (body.length < COMPRESSED_BYTES_MIN || body.length > COMPRESSED_BYTES_MAX) return { ...answer, body }
    const isKept = question !== null && body.length <= COMPRESSED_KEPT_BYTES_MAX
    const compressed = isKept ? this.#form(coding, question, body) : this.#codings[coding](body)
    return compressed.then((form) =>
      form.length < body.length
        ? { ...answer, body: form, headers: { ...answer.headers, 'Content-Encoding': coding } }
        : { ...answer, body },
    )
  }

  /** Comparing two bodies costs a thousandth of compressing one. */
  #form(coding: Coding, question: string, body: Buffer): Promise<Buffer> {
    const key = `${coding} ${question}`
    const kept = this.#forms.get(key)
    if (kept !== undefined) this.#forget(key, kept)
    const form = kept?.body.equals(body) ? kept : { body, compressed: this.#codings[coding](body) }
    this.#forms.set(key, form)
    this.#bytes += key.length + body.length
    // Whoever asked is told of the failure; those who ask later are not.
    if (form !== kept) form.compressed.catch(() => this.#forms.get(key) === form && this.#forget(key, form))
    for (const [oldest, held] of this.#forms) {
      if (this.#bytes <= this.#bytesMax) break
      this.#forget(oldest, held)
    }
    return form.compressed
  }

  #forget(key: string, { body }: Form): void {
    this.#forms.delete(key)
    this.#bytes -= key.length + body.length
  }
}
