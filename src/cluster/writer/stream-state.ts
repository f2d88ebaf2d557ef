// The stream as the server of the bus has it: makes it where it is missing, and reads where it ends.
import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream'
import { Objm } from '@nats-io/obj'
import { nanos } from '@nats-io/transport-node'
import type { Bus } from '../bus.ts'
import { isStreamMissing } from '../bus-errors.ts'
import { parseCheckpointObjectName } from '../checkpoint-objects.ts'
import { DUPLICATES_MS } from '../limits.ts'
import { type BusMessage, DamagedMessageError, decodeMessage } from '../messages.ts'
import type { BusSettings } from '../settings.ts'

export interface StreamEnd {
  /** Of the newest message that the stream has, or had. */
  lastSequence: number
  /** The newest one that is not damaged; null: there is none, or not among the last ones. */
  message: BusMessage | null
}

const MEGABYTE = 1e6
/** How far back a message is looked for that is not damaged. */
const DAMAGED_MAX = 1_000

const hasCode = (error: unknown, code: number): boolean =>
  error instanceof JetStreamApiError && error.code === code

/** Whether another message than the expected one is the newest. */
export const isWrongSequence = (error: unknown): boolean =>
  hasCode(error, JetStreamApiCodes.StreamWrongLastSequence)

/** Makes the stream, or brings its bounds up to date. */
export async function ensureStream({ manager, names }: Bus, { stream }: BusSettings): Promise<void> {
  const bounds = {
    max_age: nanos(stream.maxAgeMs),
    max_bytes: stream.maxMb * MEGABYTE,
    num_replicas: stream.replicas,
  }
  try {
    const { config } = await manager.streams.info(names.stream)
    const isUpToDate =
      config.max_age === bounds.max_age &&
      config.max_bytes === bounds.max_bytes &&
      config.num_replicas === bounds.num_replicas
    if (!isUpToDate) await manager.streams.update(names.stream, bounds)
  } catch (error) {
    if (!isStreamMissing(error)) throw error
    await manager.streams.add({
      name: names.stream,
      subjects: [names.subject],
      ...bounds,
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      duplicate_window: nanos(DUPLICATES_MS),
    })
  }
}

/** @throws MessageError where the newest message cannot be understood */
export async function readStreamEnd({ manager, names }: Bus): Promise<StreamEnd> {
  const { state } = await manager.streams.info(names.stream)
  const { last_seq: lastSequence, first_seq: firstSequence } = state
  const oldest = Math.max(firstSequence, lastSequence - DAMAGED_MAX)
  for (let seq = lastSequence; seq >= oldest && seq > 0; seq--) {
    try {
      const stored = await manager.streams.getMessage(names.stream, { seq })
      if (stored !== null) return { lastSequence, message: decodeMessage(stored.data) }
    } catch (error) {
      // Of something else that has published there: readers skip it.
      if (!(error instanceof DamagedMessageError) && !hasCode(error, JetStreamApiCodes.NoMessageFound))
        throw error
    }
  }
  return { lastSequence, message: null }
}

/** Deletes the checkpoints of this event and of later ones. */
export async function removeCheckpoints({ client, names }: Bus, fromEventNo: number): Promise<void> {
  const store = await new Objm(client).open(names.checkpoints).catch(() => null)
  for (const { name, deleted } of (await store?.list()) ?? [])
    if (!deleted && parseCheckpointObjectName(name) >= fromEventNo) await store?.delete(name)
}
