import type { HttpServer } from '../http/server.ts'
import type { Broadcaster } from '../http/stream/broadcaster.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { Market } from '../market/market.ts'
import type { ExportService } from '../store/export/exporter.ts'
import type { Store } from '../store/types.ts'

export function addMarketMetrics(metrics: Metrics, market: Market): void {
  metrics.read('mintlake_market_tokens', 'Tokens held', () => market.stats().tokens)
  metrics.read('mintlake_market_events_total', 'Events received', () => market.stats().events)
  metrics.read('mintlake_market_trades_total', 'Trades applied', () => market.stats().trades)
  metrics.read(
    'mintlake_market_late_trades_total',
    'Trades dropped because they came too late',
    () => market.stats().lateDropped,
  )
  metrics.read(
    'mintlake_market_evicted_tokens_total',
    'Tokens evicted at the maximum',
    () => market.stats().evicted,
  )
  metrics.read(
    'mintlake_market_feed_disconnects_total',
    'Feeds that lost their source',
    () => market.stats().disconnects,
  )
  metrics.read('mintlake_market_bars', 'Closed bars held', () => market.stats().barsHeld)
  metrics.read('mintlake_market_versions', 'DataPoint versions held', () => market.stats().versionsHeld)
}

export function addLakeMetrics(metrics: Metrics, store: Pick<Store, 'lakeLosses'>): void {
  metrics.read(
    'mintlake_lake_files_set_aside',
    'Files of the lake that are lost or damaged',
    () => store.lakeLosses().files,
  )
  metrics.read(
    'mintlake_lake_rows_lost',
    'Rows of the lake that were in those files and are nowhere else',
    () => store.lakeLosses().rowsLost,
  )
}

export function addExportMetrics(metrics: Metrics, exporter: ExportService): void {
  metrics.read('mintlake_exports', 'Exports under way', () => exporter.running)
  metrics.read(
    'mintlake_exports_held_bytes',
    'Bytes of exports that wait for their clients',
    () => exporter.held.bytes,
  )
}

export function addStreamMetrics(metrics: Metrics, broadcaster: Broadcaster): void {
  metrics.read('mintlake_streams', 'Streams that follow, over HTTP and WebSocket', () => broadcaster.size)
  metrics.read('mintlake_streams_stalled', 'Streams whose socket is full', () => broadcaster.stalled)
  metrics.read(
    'mintlake_streams_slow_total',
    'Streams ended because they were too slow',
    () => broadcaster.disconnects.slow_consumer,
  )
}

export function addServerMetrics(metrics: Metrics, server: Pick<HttpServer, 'bodyBytes'>): void {
  metrics.read('mintlake_request_bodies_bytes', 'Memory that request bodies take', () => server.bodyBytes())
}
