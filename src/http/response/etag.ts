// In: what an answer's version is, or, where nothing counts its versions, its bytes. Out: its weak ETag, and whether the
// client has it already. Never decides what may be kept: an answer with `no-store` has no version.
import { hash, randomBytes } from 'node:crypto'
import { bytesOf, type Context, type HttpAnswer } from '../context.ts'

/** Weak: the same version may be compressed or encoded differently. */
export const weakEtag = (version: string): string => `W/"${version}"`

/** Versions are of one data folder: this keeps an ETag of another server, or of an earlier run, from matching. */
const RUN = randomBytes(4).toString('hex')

/** The ETag of a version that the engine counts. */
export const versionEtag = (version: string): string => weakEtag(`${RUN}-${version}`)

/** True when If-None-Match names the version (RFC 9110, section 13.1.2). */
export function isFresh({ headers }: Context, etag: string): boolean {
  const sent = headers.ifNoneMatch
  if (sent === '') return false
  return sent === '*' || sent.split(',').some((entry) => entry.trim().replace(/^W\//, '') === etag.slice(2))
}

export const notModified = (headers: Record<string, string>): HttpAnswer => ({
  status: 304,
  body: {},
  headers,
})

/** What an open route answers that never changes while the server runs: its version is made once, not for each who asks. */
export function fixed(body: Buffer, contentType: string): (context: Context) => HttpAnswer {
  const etag = versionOf(body)
  const headers = { 'Cache-Control': 'no-cache', ETag: etag }
  return (context) =>
    isFresh(context, etag) ? notModified(headers) : { status: 200, body, contentType, headers }
}

const versionOf = (body: Buffer): string => weakEtag(hash('sha1', body, 'base64url'))

/**
 * A read without a version of its own gets that of its bytes: making them again is cheap, sending them to a client that
 * has them is not.
 * @param isPrivate the answer is for whoever showed a key, and no shared cache may keep it.
 */
export function conditional(answer: HttpAnswer, context: Context, isPrivate: boolean): HttpAnswer {
  const { headers = {}, status, stream } = answer
  const isVersioned = headers.ETag !== undefined || headers['Cache-Control'] === 'no-store'
  if (context.method !== 'GET' || status !== 200 || stream !== undefined || isVersioned) return answer
  const body = bytesOf(answer.body)
  const etag = versionOf(body)
  const versioned = { 'Cache-Control': isPrivate ? 'private, no-cache' : 'no-cache', ...headers, ETag: etag }
  return isFresh(context, etag) ? notModified(versioned) : { ...answer, body, headers: versioned }
}
