// In: what an answer's version is. Out: its weak ETag, and whether the client has it already. Never looks at a body.
import { randomBytes } from 'node:crypto'
import type { Context, HttpAnswer } from './context.ts'

/** Weak: the same version may be compressed or encoded differently. */
export const weakEtag = (version: string): string => `W/"${version}"`

/** Versions count from zero in every run of the server: this keeps an ETag of another run from matching. */
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
