// Brings one checkpoint to the bus, for readers that begin.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { StorageType } from '@nats-io/jetstream'
import { type ObjectStore, Objm } from '@nats-io/obj'
import { type Bus, connectBus } from '../bus.ts'
import { checkpointObjectName, parseCheckpointObjectName } from '../checkpoint-objects.ts'
import { CHECKPOINTS_ON_BUS, PART_BYTES } from '../limits.ts'
import { PROTOCOL } from '../messages.ts'
import type { UploadResult, UploadTask } from './upload-protocol.ts'

/** The work of the process that does it. Rejects where the bus does not take it. */
export async function uploadCheckpoint(task: UploadTask): Promise<UploadResult> {
  const beganMs = performance.now()
  const { replicas } = task.settings.stream
  const bus = await connectBus(task.settings, `mintlake upload ${task.runId}`)
  try {
    const options = { storage: StorageType.File, replicas }
    const store = await new Objm(bus.client).create(bus.names.checkpoints, options)
    await removeOthers(store, task)
    await removeLeftovers(bus, store)
    const bytes = await put(store, task)
    await removeOld(store)
    return { bytes, tookMs: performance.now() - beganMs }
  } finally {
    await bus.close()
  }
}

/** Readers take the newest one: what is not of this market has to go first. */
async function removeOthers(store: ObjectStore, { folderId, lostFromEventNo }: UploadTask): Promise<void> {
  for (const { name, metadata } of await store.list()) {
    const isLost = parseCheckpointObjectName(name) >= (lostFromEventNo ?? Infinity)
    if (isLost || metadata?.folderId !== folderId || metadata.protocol !== PROTOCOL) await store.delete(name)
  }
}

/** Of an upload whose process was killed nothing but chunks are there. */
async function removeLeftovers({ manager }: Bus, store: ObjectStore): Promise<void> {
  const { streamInfo, bucket } = await store.status({ subjects_filter: '>' })
  const chunks = `$O.${bucket}.C.`
  const whole = new Set((await store.list()).map(({ nuid }) => chunks + nuid))
  for (const subject of Object.keys(streamInfo.state.subjects ?? {}))
    if (subject.startsWith(chunks) && !whole.has(subject))
      await manager.streams.purge(streamInfo.config.name, { filter: subject })
}

/** @returns the bytes that were sent */
async function put(store: ObjectStore, { path, eventNo, folderId, runId }: UploadTask): Promise<number> {
  const name = checkpointObjectName(eventNo)
  const { size } = await stat(path)
  const there = await store.info(name)
  if (there !== null && !there.deleted && there.size === size) return 0
  const file = Readable.toWeb(createReadStream(path, { highWaterMark: PART_BYTES }))
  const metadata = { folderId, runId, eventNo: `${eventNo}`, bytes: `${size}`, protocol: PROTOCOL }
  await store.put({ name, metadata, options: { max_chunk_size: PART_BYTES } }, file)
  return size
}

async function removeOld(store: ObjectStore): Promise<void> {
  const names = (await store.list()).map(({ name }) => name)
  const oldestLast = names.toSorted((a, b) => parseCheckpointObjectName(b) - parseCheckpointObjectName(a))
  for (const name of oldestLast.slice(CHECKPOINTS_ON_BUS)) await store.delete(name)
}
