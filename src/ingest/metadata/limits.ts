// Bounds of what is fetched from addresses that anybody may have written into a token.
import { DAY_MS, MINUTE_MS } from '../../lib/time.ts'

/** A larger document is not read. */
export const METADATA_BYTES_MAX = 64 * 1024
/** For a document in all: names, connections, redirects and body. */
export const METADATA_MS_MAX = 5_000
/** How long a name server has to answer, twice as long the second time. */
export const RESOLVE_MS = 1_000
export const RESOLVE_TRIES = 2
export const METADATA_REDIRECTS_MAX = 3
/** Documents fetched at once. */
export const METADATA_CONCURRENCY = 4
/** Requests to one host a minute; what is beyond it is asked for later. */
export const METADATA_HOST_PER_MINUTE = 120
/** Hosts that are counted; at the maximum the one asked longest ago begins anew. */
export const METADATA_HOSTS_MAX = 10_000
/** Tokens that wait, and tokens whose document is known; at the maximum the oldest is dropped, and asked for again when it is wanted. */
export const METADATA_WAITING_MAX = 4_096
export const METADATA_KNOWN_MAX = 100_000
/** When a document is fetched again that could not be had, twice as late each time, and how often in all; then when the token is next wanted. */
export const METADATA_RETRY_MS = MINUTE_MS
export const METADATA_ATTEMPTS_MAX = 5
/** When one is that could. */
export const METADATA_FRESH_MS = DAY_MS
