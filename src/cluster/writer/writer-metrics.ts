import type { Metrics } from '../../lib/metrics/metrics.ts'
import type { UploadStatus } from './checkpoint-uploader.ts'
import type { PublisherStatus } from './publisher.ts'

const MS_PER_SECOND = 1_000

export function addWriterMetrics(
  metrics: Metrics,
  publisher: () => PublisherStatus,
  uploads: () => UploadStatus,
): void {
  metrics.read('mintlake_cluster_publishing', 'Of a writer: 1 while readers get events from it', () =>
    Number(publisher().trouble === null),
  )
  metrics.read(
    'mintlake_cluster_away_seconds',
    'Of a writer: for how long readers have got no events from it',
    () => (publisher().troubleMs ?? 0) / MS_PER_SECOND,
  )
  metrics.read(
    'mintlake_cluster_unpublished_events',
    'Of a writer: recorded events that the bus does not have yet',
    () => publisher().writtenEventNo - publisher().publishedEventNo,
  )
  metrics.read(
    'mintlake_cluster_waiting_bytes',
    'Of a writer: events in memory that wait for the bus',
    () => publisher().waitingBytes,
  )
  metrics.read(
    'mintlake_cluster_published_messages_total',
    'Of a writer: messages that the bus has taken',
    () => publisher().messages,
  )
  metrics.read('mintlake_cluster_published_bytes_total', 'Of a writer: their bytes', () => publisher().bytes)
  metrics.read(
    'mintlake_cluster_uploads_total',
    'Of a writer: checkpoints that it has brought to the bus',
    () => uploads().uploads,
  )
  metrics.read(
    'mintlake_cluster_upload_failures_total',
    'Of a writer: checkpoints that could not be brought to the bus',
    () => uploads().failures,
  )
}
