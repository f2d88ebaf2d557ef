import { MSGPACK_MEDIA_TYPES, NDJSON_MEDIA_TYPES } from '../../schema/media-types.ts'
import { FEED_DOCS } from '../docs/system-docs.ts'
import { INGEST_BODY_BYTES_MAX, INGEST_BODY_MS_MAX } from '../limits.ts'
import type { Route } from '../route.ts'
import { INGEST_PATH } from '../stream/ingest-socket.ts'
import { type AdminDeps, adminRoutes } from './admin.ts'
import { type StatusDeps, statusRoutes } from './status.ts'

export interface OperationDeps extends StatusDeps, AdminDeps {
  /** Applies pushed records. @returns how many were taken, and what was wrong with the others. */
  ingest(body: Uint8Array, contentType: string): Promise<Record<string, unknown>>
}

/** Everything that feeds, operators and machines ask of the server: pushes, its state, administration. */
export const operationRoutes = (deps: OperationDeps): Route[] => [
  {
    method: 'POST',
    path: INGEST_PATH,
    access: 'feed',
    summary: 'Push market events, NDJSON or msgpack',
    docs: FEED_DOCS,
    changes: [],
    bodyBytesMax: INGEST_BODY_BYTES_MAX,
    bodyMsMax: INGEST_BODY_MS_MAX,
    bodyTypes: [...NDJSON_MEDIA_TYPES, ...MSGPACK_MEDIA_TYPES],
    handle: async ({ body, headers }) => ({
      status: 200,
      body: { ok: true, ...(await deps.ingest(body, headers.contentType)) },
    }),
  },
  ...statusRoutes(deps),
  ...adminRoutes(deps),
]
