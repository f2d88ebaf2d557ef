import type { Metrics } from '../../lib/metrics/metrics.ts'
import { addWatchMetrics } from '../connection-watch.ts'
import type { ReaderHealth } from './reader-health.ts'
import type { ReaderLink } from './reader-link.ts'

const MS_PER_SECOND = 1_000

export function addReaderMetrics(metrics: Metrics, health: ReaderHealth, link: ReaderLink): void {
  metrics.readAll(() => health, {
    mintlake_cluster_lag_seconds: [
      'Of a reader: the age of the state of the market that it shows',
      (reader) => finite(reader.lagMs() / MS_PER_SECOND),
    ],
    mintlake_cluster_behind_seconds: [
      'Of a reader: for how long it may lack something that the bus has',
      (reader) => finite(reader.behindMs() / MS_PER_SECOND),
    ],
  })
  metrics.readAll(() => link.parts, {
    mintlake_cluster_event_no: [
      'Of a reader: the last event that it has applied',
      ({ replica }) => replica.eventNo,
    ],
    mintlake_cluster_restored_total: [
      'Of a reader: checkpoints that it has restored since its start',
      ({ replica }) => replica.restored,
    ],
    mintlake_cluster_forwarded: [
      'Of a reader: requests that other nodes are carrying out for it',
      ({ passingOn }) => passingOn.inFlight,
    ],
  })
  metrics.readAll(() => link, {
    mintlake_cluster_connected: [
      '1 while the connection to the bus is there',
      ({ parts }) => Number(parts?.bus.watch.isConnected ?? false),
    ],
    mintlake_cluster_unreached: [
      'Of a reader: 1 since the writer was not reached at its address, until one is: what writes cannot be passed on',
      ({ parts }) => Number(parts?.passingOn.isUnreached ?? false),
    ],
  })
  addWatchMetrics(metrics, () => link.refusals)
}

/** Null: not known. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)
