import type { Metrics } from '../../lib/metrics/metrics.ts'
import type { UploadStatus } from './checkpoint-uploader.ts'
import type { PublisherStatus } from './publisher.ts'

const MS_PER_SECOND = 1_000

export function addWriterMetrics(
  metrics: Metrics,
  publisher: () => PublisherStatus,
  uploads: () => UploadStatus,
): void {
  metrics.readAll(publisher, {
    mintlake_cluster_publishing: [
      'Of a writer: 1 while readers get events from it',
      ({ trouble }) => Number(trouble === null),
    ],
    mintlake_cluster_away_seconds: [
      'Of a writer: for how long readers have got no events from it',
      ({ troubleMs }) => (troubleMs ?? 0) / MS_PER_SECOND,
    ],
    mintlake_cluster_unpublished_events: [
      'Of a writer: recorded events that the bus does not have yet',
      ({ writtenEventNo, publishedEventNo }) => writtenEventNo - publishedEventNo,
    ],
    mintlake_cluster_waiting_bytes: ['Of a writer: events in memory that wait for the bus', 'waitingBytes'],
    mintlake_cluster_published_messages_total: ['Of a writer: messages that the bus has taken', 'messages'],
    mintlake_cluster_published_bytes_total: ['Of a writer: their bytes', 'bytes'],
  })
  metrics.readAll(uploads, {
    mintlake_cluster_uploads_total: ['Of a writer: checkpoints that it has brought to the bus', 'uploads'],
    mintlake_cluster_upload_failures_total: [
      'Of a writer: checkpoints that could not be brought to the bus',
      'failures',
    ],
  })
}
