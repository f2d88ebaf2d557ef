// Keys of pages of the console: each page gets one when it is opened, so that programs of the same address do not use up its reads.
import { sessionRevokedSchema, sessionSchema, sessionsRevokedSchema } from '../../schema/api/accounts.ts'
import { type Context, type HttpAnswer, okData } from '../context.ts'
import { jsonDocs } from '../docs/operation-docs.ts'
import { parseBearer } from '../request/request-head.ts'
import type { Route } from '../route.ts'
import type { RouteParts } from './route-parts.ts'

const SESSION_PATH = '/api/v1/session'
const NO_STORE = { 'Cache-Control': 'no-store' }

const SESSION_KEY =
  'A session key may do what a reader without a key may. The consoles of an address have the limit of a key together'

export const sessionRoutes = (deps: RouteParts): Route[] => [
  {
    method: 'POST',
    path: SESSION_PATH,
    access: 'open',
    summary: 'A session key for a page of the console: reads, counted apart from those of the address',
    docs: jsonDocs('openSession', 'documents', 'The session', sessionSchema, {
      status: 201,
      description: `${SESSION_KEY}. Sent as Authorization, it gives another while to the same session; on a WebSocket it is offered as the protocol \`mintlake.session.<key>\`. One that has ended counts as no key.`,
    }),
    changes: [],
    isOfNode: true,
    opensLocally: true,
    bodyTypes: ['', 'application/json'],
    handle: (context) => opened(deps, context),
  },
  {
    method: 'DELETE',
    path: SESSION_PATH,
    access: 'open',
    summary: 'End the session whose key is sent',
    docs: jsonDocs('endSession', 'documents', 'Whether there was one', sessionRevokedSchema),
    changes: [],
    isOfNode: true,
    handle: ({ headers }) => ({
      ...okData({ revoked: deps.sessions.revoke(parseBearer(headers.authorization)) }),
      headers: NO_STORE,
    }),
  },
  {
    method: 'POST',
    path: '/api/v1/admin/sessions/revoke',
    access: 'admin',
    summary: 'End every session of consoles; open pages ask for another',
    docs: jsonDocs('endSessions', 'admin', 'How many there were', sessionsRevokedSchema),
    changes: [],
    bodyTypes: ['', 'application/json'],
    handle: () => okData({ revoked: deps.sessions.revokeAll() }),
  },
]

function opened({ sessions, keys, lakeFolder }: RouteParts, context: Context): HttpAnswer {
  const { key, expiresAtMs } = sessions.open(context.ip(), parseBearer(context.headers.authorization))
  const queryOpen = keys.isQueryOpen() && context.isLocal()
  // A path tells who runs the server: it is for those who may read the folder anyway.
  const dataDir = queryOpen ? lakeFolder : null
  const data = { key, expiresAt: expiresAtMs, queryOpen, dataDir }
  return { status: 201, headers: NO_STORE, body: { ok: true, data } }
}
