// What NATS refuses and why, as sentences for operators.
import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream'
import { AuthorizationError, type PermissionViolationError } from '@nats-io/transport-node'
import { errorMessage, systemCode } from '../lib/error-text.ts'
import { PAYLOAD_BYTES_MIN } from './limits.ts'
import type { BusSettings } from './settings.ts'

/** Codes of OpenSSL and Node for a certificate that nobody vouches for. */
const UNKNOWN_AUTHORITY = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
])

/** Whether a connection without TLS is refused. */
export const isTls = ({ servers, login: { ca, cert } }: BusSettings): boolean =>
  ca !== '' || cert !== '' || servers.some((url) => url.startsWith('tls://'))

/** An error as it is, or one whose message says what to look at. */
export function connectError(error: unknown, settings: BusSettings): Error {
  const sentence = sentenceOf(error, settings)
  if (sentence === null && error instanceof Error) return error
  return new Error(sentence ?? 'it ended the connection', { cause: error })
}

function sentenceOf(error: unknown, settings: BusSettings): string | null {
  if (error instanceof AuthorizationError) return refusedUser(settings)
  const { ca, cert } = settings.login
  const code = codeOf(error)
  if (UNKNOWN_AUTHORITY.has(code))
    return ca === ''
      ? 'the certificate of NATS is of an authority that this machine does not know: give --bus-login ca=FILE'
      : `the certificate of NATS is not of the authority in ${ca} (--bus-login)`
  if (code === 'CERT_HAS_EXPIRED') return 'the certificate of NATS has expired'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate of NATS is of another host: ${errorMessage(error)}`
  if (/not support 'tls'|not available on this server/.test(errorMessage(error)))
    return 'NATS offers no TLS, which --bus-login or tls:// asks for'
  // Over TLS 1.3 a certificate is refused after the handshake, which the client of NATS does not notice.
  if (isTls(settings) && errorMessage(error) === 'timeout')
    return cert === ''
      ? 'NATS has not answered: it may ask for a certificate of this process (--bus-login cert=FILE,key=FILE)'
      : `NATS has not answered: it may not take the certificate in ${cert} (--bus-login)`
  return null
}

const codeOf = (error: unknown): string =>
  systemCode(error) || (error instanceof Error ? systemCode(error.cause) : '')

function refusedUser({ login: { user, credentials, cert } }: BusSettings): string {
  if (user !== '') return `NATS does not know the user ${user} (--bus-login), or the password is another`
  if (credentials !== '') return `NATS does not take the credentials in ${credentials} (--bus-login)`
  if (cert !== '') return `NATS knows no user with the certificate in ${cert} (--bus-login)`
  return 'NATS asks who this is: give --bus-login'
}

/** Why messages of a cluster do not fit into NATS, as a sentence; null: they do, or it does not say. @param bytesMax its `max_payload` */
export const payloadTrouble = (bytesMax: number | undefined): string | null =>
  bytesMax === undefined || bytesMax >= PAYLOAD_BYTES_MIN
    ? null
    : `max_payload of NATS is ${bytesMax} bytes: set it to ${PAYLOAD_BYTES_MIN} or more in the configuration of NATS`

/** Codes of JetStream for a limit of its storage that is reached. */
const NO_ROOM = [10_023, 10_047]

/** NATS answers, and does not have the stream. */
export const isStreamMissing = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound

/** Why NATS did not take or tell something, as a sentence. */
export function busTrouble(error: unknown): string {
  const reason = errorMessage(error)
  if (error instanceof JetStreamApiError && NO_ROOM.includes(error.code)) return `NATS has no room: ${reason}`
  if (isStreamMissing(error)) return 'NATS has no events: no writer has begun since it has none'
  if (reason === 'timeout') return 'NATS does not answer in time: it cannot be reached, or its disk is full'
  return reason
}

/** Words that the client makes up, of inboxes and consumers, and names of lists. */
const RANDOM_WORDS = /[A-Z0-9]{22}[^.]*|(?<=\.list\.)[\w-]+/g

/** What is not permitted to the user of this process. */
export function deniedSentence({ operation, subject }: PermissionViolationError): string {
  const act = operation === 'publish' ? 'publish' : 'subscribe'
  return `NATS does not let this process ${act} to "${subject.replace(RANDOM_WORDS, '*')}": its user lacks the permission`
}
