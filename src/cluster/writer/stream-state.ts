// The stream as the server of the bus has it: makes it where it is missing, and reads where it ends.
import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream'
import { nanos } from '@nats-io/transport-node'
import type { Config } from '../../config/settings.ts'
import type { Bus } from '../bus.ts'
import { DUPLICATES_MS } from '../limits.ts'
import { type BusMessage, decodeMessage } from '../messages.ts'

export type StreamSettings = Pick<Config, 'busMaxAgeMs' | 'busMaxMb' | 'busReplicas'>

export interface StreamEnd {
  /** Of the newest message that the stream has, or had. */
  lastSequence: number
  /** The newest one; null: the stream is empty. */
  message: BusMessage | null
}

const MEGABYTE = 1e6

export const STREAM_NOT_FOUND = JetStreamApiCodes.StreamNotFound

export const hasCode = (error: unknown, code: number): boolean =>
  error instanceof JetStreamApiError && error.code === code

/** Whether another message than the expected one is the newest. */
export const isWrongSequence = (error: unknown): boolean =>
  hasCode(error, JetStreamApiCodes.StreamWrongLastSequence)

/** Makes the stream, or brings its bounds up to date. */
export async function ensureStream({ manager, names }: Bus, settings: StreamSettings): Promise<void> {
  const bounds = {
    max_age: nanos(settings.busMaxAgeMs),
    max_bytes: settings.busMaxMb * MEGABYTE,
    num_replicas: settings.busReplicas,
  }
  try {
    const { config } = await manager.streams.info(names.stream)
    const isUpToDate =
      config.max_age === bounds.max_age &&
      config.max_bytes === bounds.max_bytes &&
      config.num_replicas === bounds.num_replicas
    if (!isUpToDate) await manager.streams.update(names.stream, bounds)
  } catch (error) {
    if (!hasCode(error, STREAM_NOT_FOUND)) throw error
    await manager.streams.add({
      ...{ name: names.stream, subjects: [names.subject], ...bounds },
      ...{ storage: StorageType.File, retention: RetentionPolicy.Limits, discard: DiscardPolicy.Old },
      duplicate_window: nanos(DUPLICATES_MS),
    })
  }
}

/** @throws MessageError where the newest message cannot be understood */
export async function readStreamEnd({ manager, names }: Bus): Promise<StreamEnd> {
  const { state } = await manager.streams.info(names.stream)
  const lastSequence = state.last_seq
  try {
    const stored = await manager.streams.getMessage(names.stream, { last_by_subj: names.subject })
    return { lastSequence, message: stored && decodeMessage(stored.data) }
  } catch (error) {
    if (hasCode(error, JetStreamApiCodes.NoMessageFound)) return { lastSequence, message: null }
    throw error
  }
}

/** Removes all messages. Their numbers are not used again. */
export async function purgeStream({ manager, names }: Bus): Promise<void> {
  await manager.streams.purge(names.stream)
}
