import type { NatsConnection } from '@nats-io/transport-node'
import { CHUNK_BYTES, ENVELOPE_BYTES } from './limits.ts'

const CHUNK_BYTES_MIN = 1_024

/** How much of a body or an answer one message takes: the bus says how large a message may be. */
export const chunkBytesOf = ({ info }: NatsConnection): number =>
  Math.max(CHUNK_BYTES_MIN, Math.min(CHUNK_BYTES, (info?.max_payload ?? CHUNK_BYTES) - ENVELOPE_BYTES))
