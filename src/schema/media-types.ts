// The accepted content types of pushes. The first of each list is the one that the documents name.

/** One record per line. */
export const NDJSON_MEDIA_TYPES: readonly string[] = [
  'application/x-ndjson',
  'application/ndjson',
  'application/jsonl',
]
/** An array of records, or records one after another. */
export const MSGPACK_MEDIA_TYPES: readonly string[] = [
  'application/msgpack',
  'application/x-msgpack',
  'application/vnd.msgpack',
]
