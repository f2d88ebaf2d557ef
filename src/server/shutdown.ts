import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpServer } from '../http/server.ts'
import type { Broadcaster } from '../http/stream/broadcaster.ts'
import type { Feeds } from '../ingest/start-feeds.ts'
import type { ClockFile } from '../store/data-folder/clock-file.ts'
import type { Positions } from '../store/data-folder/positions.ts'
import type { ExportService } from '../store/export/exporter.ts'
import type { QueryService } from '../store/sql/query-service.ts'
import type { Store } from '../store/types.ts'
import type { Health } from './health.ts'
import type { MarketPublisher } from './market-publisher.ts'
import type { RunningMarket } from './running-market.ts'

/** How long requests in flight may take once the server is closing. */
const DRAIN_MS_MAX = 10_000
/** Open connections are closed when no request has come for this long, or after the maximum. */
const QUIET_MS = 100
const LINGER_MS_MAX = 1_000
/** How long a writer that stops brings rows to the lake before it stops taking requests. */
const FLUSH_MS_MAX = 5_000
/** How long the recorder may take to write the last market data; a disk that hangs must not hold up the end. */
const RECORDER_STOP_MS_MAX = 4_000

export interface RunningParts {
  health: Health
  server: HttpServer
  sources: Feeds
  running: RunningMarket
  /** null: the server is alone. */
  publisher: Pick<MarketPublisher, 'stopServing'> | null
  /** Settles when the feeds were started, or will not be. */
  feeding: Promise<void>
  broadcaster: Broadcaster
  exporter: ExportService
  queries: QueryService
  positions: Positions
  clockFile: ClockFile
  store: Store
  /** How long clients are told that the server is draining before it stops accepting connections. */
  drainNoticeMs: number
}

/**
 * Answers the requests in flight and closes all connections. Clients that keep using a connection get an answer that closes it, so
 * that closing the rest cuts nobody off.
 * @param alongside what else ends while requests are answered
 */
export async function closeHttp(
  { server, broadcaster, drainNoticeMs }: Pick<RunningParts, 'server' | 'broadcaster' | 'drainNoticeMs'>,
  alongside: () => readonly Promise<unknown>[] = () => [],
): Promise<void> {
  await server.stopListening()
  broadcaster.close('draining')
  await Promise.all([server.idle(0, DRAIN_MS_MAX), ...alongside()])
  await server.idle(Math.min(drainNoticeMs, QUIET_MS), LINGER_MS_MAX)
  await server.close()
}

/**
 * What a writer does before it stops taking requests, which is a pause for all nodes: clients of its own are told to go elsewhere, and
 * what would take long otherwise ends or is done before.
 */
async function leaveCluster(
  { health, server, exporter, queries, store, drainNoticeMs }: RunningParts,
  publisher: Pick<MarketPublisher, 'stopServing'>,
): Promise<void> {
  health.markLeaving()
  server.drain()
  const flushed = Promise.race([
    store.flushLake().catch(() => undefined),
    sleep(FLUSH_MS_MAX, undefined, { ref: false }),
  ])
  await Promise.all([sleep(drainNoticeMs), exporter.close(), queries.close(), flushed])
  await publisher.stopServing()
}

/**
 * Stops a running server without losing anything it has acknowledged: feeds first, then HTTP, then the recorder and the journal, and
 * the store last.
 */
export async function shutDown(parts: RunningParts): Promise<void> {
  const { health, server, sources, running, exporter, queries, positions, store } = parts
  const { recorder } = running
  const wasReady = health.isReady
  if (parts.publisher !== null && wasReady) await leaveCluster(parts, parts.publisher)
  health.markDraining()
  server.drain()
  running.halt()
  await Promise.allSettled([parts.feeding])
  await Promise.all(sources.feeds.map((feed) => feed.stop()))
  // Clients learn from an answer that the server is draining, before connections are refused.
  if (wasReady && parts.publisher === null) await sleep(parts.drainNoticeMs)
  await parts.publisher?.stopServing()
  await closeHttp(parts, () => [exporter.close(), queries.close()])
  await Promise.race([
    recorder.stop().then(() => positions.close()),
    sleep(RECORDER_STOP_MS_MAX, undefined, { ref: false }),
  ])
  await running.stop()
  await parts.clockFile.close()
  await store.close()
  await running.leaveBus()
}
