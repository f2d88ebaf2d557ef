// What a client without a key is told where one would help: how to get it, and what it allows.

import { type ErrorCode, ServiceError } from '../../schema/errors.ts'
import { callerOf, type Reader } from '../access.ts'
import type { DocumentSettings } from '../docs/texts/limits-text.ts'
import type { Route } from '../route.ts'

type KeyHintSettings = Pick<DocumentSettings, 'readLimitAnonymous' | 'readLimitKeyed' | 'registration'>

const KEY_CODES: ReadonlySet<ErrorCode> = new Set(['missing_key', 'invalid_key', 'revoked_key'])
/** What an agent's key opens. Other keys are the operator's to give. */
const OPEN_TO_AGENTS: ReadonlySet<Route['access']> = new Set(['open', 'read', 'personal', 'agent'])

/** The sentence, which names only what this server does. */
export function keyHint({ registration, readLimitAnonymous, readLimitKeyed }: KeyHintSettings): string {
  if (registration === 'closed') return 'Registration is closed: the operator gives keys.'
  const way = 'POST /api/v1/keys/register with {"name":"…"} gives a key'
  if (readLimitAnonymous === 0) return `${way}.`
  if (readLimitKeyed === 0) return `${way}, with which reads are not limited.`
  if (readLimitKeyed <= readLimitAnonymous) return `${way}.`
  const times = Number((readLimitKeyed / readLimitAnonymous).toPrecision(2))
  return `${way}, which has ${times} times the reads of a client without one (${readLimitKeyed} a minute).`
}

/** The error with the hint in its sentence, where a key of an agent is what its client lacks. */
export function withKeyHint(
  error: ServiceError,
  access: Route['access'],
  reader: Reader,
  hint: string,
): ServiceError {
  // Where all streams are in use, the code is that of reads too, and a key changes nothing.
  const isReadLimit = error.code === 'read_rate_limited' && 'RateLimit-Policy' in error.headers
  const helps =
    OPEN_TO_AGENTS.has(access) && (KEY_CODES.has(error.code) || (isReadLimit && callerOf(reader) === null))
  return helps
    ? new ServiceError(error.code, `${error.message} ${hint}`, error.extra, { ...error.headers })
    : error
}
