// ETags: of the version that the market counts or, without one, of the answer's bytes.
import { hash } from 'node:crypto'
import { bodyBytes, type Context, type HttpAnswer, type Notes } from '../context.ts'
import type { HttpNode } from '../node.ts'

/** Weak, as the same version may be compressed differently. */
const weakEtag = (version: string): string => `W/"${version}"`

/**
 * The ETag of a version that the market counts. The run keeps an ETag of an earlier run or another server from matching. An answer
 * that was told to be of half a market is another one than the same answer of a whole one.
 */
export const versionEtag = (node: Pick<HttpNode, 'run'>, notes: Notes, version: string): string =>
  weakEtag(`${node.run()}-${version}${notes.warming_up === undefined ? '' : '-warming'}`)

const withoutWeakness = (etag: string): string => etag.trim().replace(/^W\//, '')

/** Whether If-None-Match names this version: compared weakly (RFC 9110, section 13.1.2). */
export function hasCurrent({ headers }: Context, etag: string): boolean {
  const sent = headers.ifNoneMatch
  if (sent === '') return false
  return sent === '*' || sent.split(',').some((entry) => withoutWeakness(entry) === withoutWeakness(etag))
}

export const notModified = (headers: Record<string, string>): HttpAnswer => ({
  status: 304,
  body: {},
  headers,
})

/** A handler for a document that never changes while the server runs. It is read when it is first asked for: a start should not wait
 *  for what few ask for. @param headersOf beside those of every document */
export function serveDocument(
  contentType: string,
  read: () => Buffer,
  headersOf: () => Readonly<Record<string, string>> = () => ({}),
): (context: Context) => HttpAnswer {
  let document: { body: Buffer; headers: Record<string, string> & { ETag: string } } | null = null
  return (context) => {
    if (document === null) {
      const body = read()
      document = { body, headers: { 'Cache-Control': 'no-cache', ...headersOf(), ETag: contentEtag(body) } }
    }
    const { body, headers } = document
    return hasCurrent(context, headers.ETag)
      ? notModified(headers)
      : { status: 200, body, contentType, headers }
  }
}

const contentEtag = (body: Buffer): string => weakEtag(hash('sha1', body, 'base64url'))

/**
 * Gives a read that has no ETag the hash of its body as one, and answers 304 if the client has that version. Answers with
 * `no-store` and streams stay as they are.
 * @param isPrivate whether the answer depends on the key, so that shared caches must not keep it.
 */
export function conditional(answer: HttpAnswer, context: Context, isPrivate: boolean): HttpAnswer {
  const { headers = {}, status, stream } = answer
  const isVersioned = headers.ETag !== undefined || headers['Cache-Control'] === 'no-store'
  if (context.method !== 'GET' || status !== 200 || stream !== undefined || isVersioned) return answer
  const body = bodyBytes(answer.body)
  const etag = contentEtag(body)
  const versioned = { 'Cache-Control': isPrivate ? 'private, no-cache' : 'no-cache', ...headers, ETag: etag }
  return hasCurrent(context, etag) ? notModified(versioned) : { ...answer, body, headers: versioned }
}
