// Bounds of a reader.

/** How messages are asked for. */
export const CONSUMED = {
  /** Messages that were received and are not applied yet; each is at most PART_BYTES and its envelope. */
  max_messages: 64,
  /** How often the bus says that it is there while it has no messages, and how long one request for messages lasts. */
  idle_heartbeat: 1_000,
  expires: 5_000,
}
/** How often a reader looks at how far behind it is. */
export const WATCH_MS = 250
/** A reader that has got nothing for so long asks what the stream's last message is. */
export const SILENT_MS = 500
/** It is asked again after so long without an answer. */
export const ANSWER_MS_MAX = 1_000
/** A writer that has told nothing for so long is away. */
export const WRITER_AWAY_MS = 2_000
/** A reader that gets nothing for so long although the stream has more asks for its messages anew: twenty times what a writer pauses. */
export const STALLED_MS = 2_000
/** How long a call to the bus may take: what NATS servers are asked while they agree who leads, they never answer. */
export const READER_CALL_MS_MAX = 2_000
/** The least difference between the bus's clock and this process's is that of the latest one to two of these spans. */
export const CLOCK_SPAN_MS = 30_000
/** How long a part of a checkpoint may take to arrive. */
export const DOWNLOAD_STALLED_MS = 10_000
/** How often the writer is asked for a checkpoint. */
export const CHECKPOINT_ASKED_EVERY_MS = 10_000
/** How long a client waits for a position that another node has and this one has not. */
export const REACH_MS_MAX = 2_000
/** Submissions that are remembered, so that none is told twice. */
export const SUBMISSIONS_REMEMBERED_MAX = 2_000
