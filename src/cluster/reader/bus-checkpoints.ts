// The checkpoints on the bus: finds them, fetches one to a temporary file, and makes a market of it.

import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Objm } from '@nats-io/obj'
import { CheckpointFile } from '../../checkpoint/checkpoint-file.ts'
import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import { nextTurn } from '../../lib/wait.ts'
import { Market } from '../../market/market.ts'
import type { EngineSettings } from '../../schema/event.ts'
import type { Bus } from '../bus.ts'
import { PROTOCOL } from '../messages.ts'
import type { MarketBase } from './applied-market.ts'
import { CONSUMED, DOWNLOAD_STALLED_MS } from './limits.ts'

export interface BusCheckpoint {
  eventNo: number
  bytes: number
  /** The run that uploaded it. */
  runId: string | null
  /** Names its chunks. */
  nuid: string
}

/** The checkpoints that this version can read, the one that was uploaded last first; none where there is no store of them. */
export async function listBusCheckpoints({ client, names }: Bus): Promise<BusCheckpoint[]> {
  const store = await new Objm(client).open(names.checkpoints).catch(() => null)
  const objects = store === null ? [] : await store.list()
  return objects
    .filter(({ deleted, metadata }) => !deleted && metadata?.protocol === PROTOCOL)
    .sort((a, b) => b.revision - a.revision)
    .map(({ name, size, nuid, metadata }) => ({
      eventNo: Number(name),
      bytes: size,
      nuid,
      runId: metadata?.runId ?? null,
    }))
}

/**
 * Fetches a checkpoint and restores its market, in slices between which the event loop has a turn.
 * @throws CheckpointError where it is not whole or cannot be restored
 */
export async function restoreFromBus(
  bus: Bus,
  checkpoint: BusCheckpoint,
): Promise<Omit<MarketBase, 'runId'>> {
  const folder = await mkdtemp(join(tmpdir(), 'mintlake-reader-'))
  const path = join(folder, 'fetched.checkpoint')
  try {
    await fetchTo(bus, checkpoint, path)
    const file = new CheckpointFile(path)
    // While it is open it can be read: a process that is killed leaves nothing behind.
    await rm(folder, { recursive: true, force: true })
    try {
      const { folderId, eventNo, lostEvents, settings } = file.head
      const { runId: uploaderRunId } = checkpoint
      const market = await restoreInSlices(settings, file)
      return { market, folderId, eventNo, lostEvents, settings, uploaderRunId }
    } finally {
      file.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function restoreInSlices(settings: EngineSettings, file: CheckpointFile): Promise<Market> {
  const slices = Market.restoring(settings, file.read)
  for (;;) {
    const { done, value } = slices.next()
    if (done) return value
    await nextTurn()
  }
}

/**
 * The library's own reader takes an object as fast as it comes, up to all of it in memory, and waits for ever where the object is
 * deleted meanwhile: so its chunks are read as any messages are.
 */
async function fetchTo({ client, names }: Bus, { bytes, nuid }: BusCheckpoint, path: string): Promise<void> {
  const consumer = await client.consumers.get(`OBJ_${names.checkpoints}`, {
    filter_subjects: `$O.${names.checkpoints}.C.${nuid}`,
  })
  const chunks = await consumer.consume(CONSUMED)
  const file = await open(path, 'w')
  const stalled = setTimeout(() => chunks.stop(), DOWNLOAD_STALLED_MS)
  let written = 0
  try {
    for await (const { data } of chunks) {
      await file.writeFile(data)
      written += data.length
      stalled.refresh()
      if (written >= bytes) break
    }
  } finally {
    clearTimeout(stalled)
    chunks.stop()
    await file.close()
    await consumer.delete().catch(() => false)
  }
  if (written !== bytes) throw new CheckpointError('It has not arrived whole.')
}
