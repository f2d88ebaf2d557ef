// Records a simulated market in the lake of a new data folder, as fast as it can be written: for whoever has recorded none yet.

import { Simulation, type SimulationOptions } from '../ingest/simulator/simulation.ts'
import { openJournal } from '../journal/journal.ts'
import { FORMAT } from '../journal/segments/format.ts'
import { systemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { MINTLAKE_VERSION } from '../lib/version.ts'
import { nextTurn } from '../lib/wait.ts'
import { Market } from '../market/market.ts'
import { recordedSinks, SERVER_FEED } from '../recording/event-recorder.ts'
import { journalFolder, journalMarkPath } from '../store/paths.ts'
import { openStore } from '../store/store.ts'

const FEED = 'simulator'
/** Events between two looks at whether the disk keeps up. */
const SLICE_EVENTS = 2_000

/** It begins at `startMs`, market time, with a day of coarse history before it. */
export interface SimulationToRecord extends SimulationOptions {
  dataDir: string
  /** How long it goes on. */
  lengthMs: number
}

/** @returns how many events were recorded. Rejects when the signal is aborted */
export async function recordSimulation(
  wanted: SimulationToRecord,
  log: Log,
  signal?: AbortSignal,
): Promise<number> {
  const { dataDir, startMs, lengthMs, seed, tokens, tradesPerSecond } = wanted
  const provenance = { feed: FEED, simulated: true }
  const store = await openStore({ dataDir, lakeFlushMs: 0, clock: systemClock, log, provenance })
  const market = new Market()
  const { runId, folderId } = store
  const journal = await openJournal({
    folder: journalFolder(dataDir),
    markPath: journalMarkPath(dataDir),
    folderId,
    runId,
    log,
    settings: market.settings,
    simulated: true,
    clock: systemClock,
    afterEventNo: 0,
    originEventNo: null,
    lakeEventNo: () => store.events.progress.eventNo,
    mayRecord: (bytes, usesReserve) => store.mayRecord(bytes, usesReserve),
    onLost: () => {
      throw new Error('the disk takes no more events')
    },
  })
  try {
    store.events.follow(journal, () => {})
    const sinkOf = recordedSinks(market, journal, true, store.noteData)
    const header = {
      runId,
      version: MINTLAKE_VERSION,
      formatVersion: FORMAT,
      node: process.version,
      feeds: [FEED],
      settings: market.settings,
      simulated: true,
      checkpointEventNo: null,
      startedAtMs: startMs,
    }
    sinkOf(SERVER_FEED).apply({ type: 'run', ts: startMs, firstSeq: 0, header }, startMs)
    const simulation = new Simulation({ seed, tokens, tradesPerSecond, startMs })
    const sink = sinkOf(FEED)
    while (!simulation.advance(startMs + lengthMs, sink, SLICE_EVENTS)) {
      await nextTurn()
      signal?.throwIfAborted()
      for (let room = journal.room(); room !== null; room = journal.room()) await room
    }
    await store.events.flush()
    return journal.lastEventNo
  } finally {
    await store.close()
    await journal.close()
  }
}
