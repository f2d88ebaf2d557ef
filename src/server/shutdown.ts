import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpServer } from '../http/server.ts'
import type { Broadcaster } from '../http/stream/broadcaster.ts'
import type { TimeWaits } from '../http/time-waits.ts'
import type { Feeds } from '../ingest/start-feeds.ts'
import { within } from '../lib/wait.ts'
import type { ClockFile } from '../store/data-folder/clock-file.ts'
import type { Positions } from '../store/data-folder/positions.ts'
import type { LakeJobs } from '../store/lake-jobs.ts'
import type { Store } from '../store/store.ts'
import type { Health } from './health.ts'
import type { MarketPublisher } from './market-publisher.ts'
import type { RunningMarket } from './running-market.ts'

/** How long requests in flight may take once the server is closing. */
const DRAIN_MS_MAX = 10_000
/** Open connections are closed when no request has come for this long, or after the maximum. */
const QUIET_MS = 25
const LINGER_MS_MAX = 1_000
/** How long a server that stops brings rows to the lake before it stops taking requests. */
const FLUSH_MS_MAX = 5_000
/** How long the last market data and the time may take to be written; a disk that hangs must not hold up the end. */
const LAST_WRITES_MS_MAX = 4_000

export interface RunningParts {
  health: Health
  server: HttpServer
  sources: Feeds
  running: RunningMarket
  /** null: the server is alone. */
  publisher: Pick<MarketPublisher, 'service'> | null
  /** Settles when the feeds were started, or will not be. */
  feeding: Promise<void>
  broadcaster: Broadcaster
  timeWaits: TimeWaits
  lakeJobs: LakeJobs
  positions: Positions
  clockFile: ClockFile
  store: Store
  /** How long /readyz says that the server is draining, and requests are answered, before they are refused. */
  drainNoticeMs: number
}

/**
 * Ends streams and what waits for market time, and waits for the requests in flight.
 * @param alongside what else ends meanwhile
 */
export async function finishRequests(
  { server, broadcaster, timeWaits }: Pick<RunningParts, 'server' | 'broadcaster' | 'timeWaits'>,
  alongside: readonly Promise<unknown>[] = [],
): Promise<void> {
  broadcaster.close('draining')
  timeWaits.wakeAll()
  await Promise.all([server.idle(0, DRAIN_MS_MAX), ...alongside])
}

/**
 * Closes all connections. Clients that keep using one get an answer that closes it, so that closing the rest cuts nobody off.
 */
export async function closeHttp({
  server,
  drainNoticeMs,
}: Pick<RunningParts, 'server' | 'drainNoticeMs'>): Promise<void> {
  await server.stopListening()
  await server.idle(Math.min(drainNoticeMs, QUIET_MS), LINGER_MS_MAX)
  await server.close()
}

/**
 * What is done while requests are still answered, since what follows is a pause for all: clients are told to go elsewhere or to come back,
 * and what would take long ends or is done before. A server that is alone does not wait for exports and queries.
 */
async function leave(parts: RunningParts): Promise<void> {
  const { publisher } = parts
  parts.health.markLeaving()
  parts.server.drain()
  parts.running.recorder.emitAllBars()
  const flushing = parts.store.flushLake().catch(() => undefined)
  const others = publisher === null ? [] : [parts.lakeJobs.close()]
  await Promise.all([sleep(parts.drainNoticeMs), within(FLUSH_MS_MAX, flushing), ...others])
  await publisher?.service.stopServing()
}

/**
 * Stops a running server without losing anything it has acknowledged: feeds first, then what writes, then the recorder and the journal, and
 * the store. The market, which stands still from then on, is served from memory meanwhile: the end of HTTP comes last, so that clients
 * are without a page for the start of the next server alone.
 */
export async function shutDown(parts: RunningParts): Promise<void> {
  const { health, server, sources, running, lakeJobs, positions, store } = parts
  const { recorder } = running
  if (health.isReady) await leave(parts)
  health.markDraining()
  server.drain()
  running.halt()
  await Promise.allSettled([parts.feeding])
  await Promise.all(sources.feeds.map((feed) => feed.stop()))
  await parts.publisher?.service.stopServing()
  await finishRequests(parts, [lakeJobs.close()])
  await within(
    LAST_WRITES_MS_MAX,
    Promise.all([recorder.stop().then(() => positions.close()), parts.clockFile.close()]),
  )
  await running.stop()
  await store.close()
  await closeHttp(parts)
  await running.leaveBus()
}
