import type { Metrics } from '../../lib/metrics/metrics.ts'
import { addWatchMetrics } from '../connection-watch.ts'
import type { ReaderHealth } from './reader-health.ts'
import type { ReaderLink } from './reader-link.ts'

const MS_PER_SECOND = 1_000

/** NaN: not known. */
const orNaN = (value: number | undefined): number =>
  value === undefined || !Number.isFinite(value) ? Number.NaN : value

export function addReaderMetrics(metrics: Metrics, health: ReaderHealth, link: ReaderLink): void {
  metrics.read(
    'mintlake_cluster_lag_seconds',
    'Of a reader: the age of the state of the market that it shows',
    () => orNaN(health.lagMs() / MS_PER_SECOND),
  )
  metrics.read(
    'mintlake_cluster_behind_seconds',
    'Of a reader: for how long it may lack something that the bus has',
    () => orNaN(health.behindMs() / MS_PER_SECOND),
  )
  metrics.read('mintlake_cluster_connected', '1 while the connection to the bus is there', () =>
    Number(link.parts?.bus.watch.isConnected ?? false),
  )
  metrics.read('mintlake_cluster_event_no', 'Of a reader: the last event that it has applied', () =>
    orNaN(link.parts?.replica.eventNo),
  )
  metrics.read(
    'mintlake_cluster_restored_total',
    'Of a reader: checkpoints that it has restored since its start',
    () => orNaN(link.parts?.replica.restored),
  )
  metrics.read(
    'mintlake_cluster_forwarded',
    'Of a reader: requests that other nodes are carrying out for it',
    () => orNaN(link.parts?.passingOn.inFlight),
  )
  metrics.read(
    'mintlake_cluster_unreached',
    'Of a reader: 1 while the writer is not reached at its address, so that what writes cannot be passed on',
    () => Number(link.parts !== null && link.parts.passingOn.trouble !== null),
  )
  addWatchMetrics(metrics, () => link.refusals)
}
