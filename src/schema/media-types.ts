// In: nothing. Out: the content types that a push may have, by the form of its records; the first of each is the one that
// the documents name. Never decides which form a route takes.

/** A record a line. */
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
