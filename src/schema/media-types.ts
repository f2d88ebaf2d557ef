// Content types and sizes of pushes. The first content type of each list is the one that the documents name.

/** The largest body of a push; a larger one is 413. */
export const INGEST_BODY_BYTES_MAX = 16 * 1024 * 1024
/** The largest message of a feed on a WebSocket; a larger one closes the connection. */
export const INGEST_FRAME_BYTES_MAX = 1024 * 1024

/** One record per line. */
export const NDJSON_MEDIA_TYPES: readonly string[] = [
  'application/x-ndjson',
  'application/ndjson',
  'application/jsonl',
]
/** An array of records, or one record after another. */
export const MSGPACK_MEDIA_TYPES: readonly string[] = [
  'application/msgpack',
  'application/x-msgpack',
  'application/vnd.msgpack',
]
