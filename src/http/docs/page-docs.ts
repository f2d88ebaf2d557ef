// Descriptions of what a browser opens.
import { z } from 'zod'
import { sessionRevokedSchema, sessionSchema, sessionsRevokedSchema } from '../../schema/api/accounts.ts'
import type { OperationDocs } from './operation-docs.ts'

const text = (description: string) => z.string().meta({ description })
const noSniff = { 'X-Content-Type-Options': z.literal('nosniff') }
const mediaTypeOf = (contentType: string): string => contentType.split(';')[0] ?? contentType

const pageHeaders = (policy: string) =>
  z.object({
    'Content-Security-Policy': text(policy),
    'Referrer-Policy': z.literal('no-referrer'),
    ...noSniff,
  })

export const PAGE_DOCS = {
  console: {
    operationId: 'getConsole',
    tag: 'documents',
    answers: {
      200: {
        description: 'A page',
        content: { 'text/html': z.string() },
        headers: pageHeaders('Nothing but this server, and images of the hosts that its operator names'),
      },
    },
  },
  reference: {
    operationId: 'getReference',
    tag: 'documents',
    answers: {
      200: {
        description: 'A page',
        content: { 'text/html': z.string() },
        headers: pageHeaders('Scripts and requests of this server alone'),
      },
    },
  },
  favicon: {
    operationId: 'getIcon',
    tag: 'documents',
    answers: {
      200: { description: 'An icon', content: { 'image/x-icon': null }, headers: z.object(noSniff) },
    },
  },
} as const satisfies Record<string, OperationDocs>

const SESSION_KEY =
  'A session key may do what a reader without a key may. The consoles of an address have the limit of a key together'

export const SESSION_DOCS = {
  open: {
    operationId: 'openSession',
    tag: 'documents',
    description: `${SESSION_KEY}. Sent as Authorization, it gives another while to the same session; on a WebSocket it is offered as the protocol \`mintlake.session.<key>\`. One that has ended counts as no key.`,
    answers: {
      201: { description: 'The session', content: { 'application/json': sessionSchema } },
    },
  },
  end: {
    operationId: 'endSession',
    tag: 'documents',
    answers: {
      200: { description: 'Whether there was one', content: { 'application/json': sessionRevokedSchema } },
    },
  },
  endAll: {
    operationId: 'endSessions',
    tag: 'admin',
    answers: {
      200: { description: 'How many there were', content: { 'application/json': sessionsRevokedSchema } },
    },
  },
} as const satisfies Record<string, OperationDocs>

/** A file of the reference, of a text type. */
export const fileDocs = (name: string, contentType: string): OperationDocs => ({
  operationId: `getFile_${name.replaceAll(/\W/g, '_')}`,
  tag: 'documents',
  answers: {
    200: {
      description: 'The file',
      content: { [mediaTypeOf(contentType)]: z.string() },
      headers: z.object(noSniff),
    },
  },
})

/** Files of one folder of the console: scripts and styles. `path` ends with `{id}`. */
export const consoleFileDocs = (path: string): OperationDocs => ({
  operationId: `getConsoleFile_${path.split(/[/-]/).slice(2, -1).join('_')}`,
  tag: 'documents',
  params: z.object({ id: text('Name of the file') }),
  answers: {
    200: {
      description: 'The file',
      content: { 'text/javascript': z.string(), 'text/css': z.string() },
      headers: pageHeaders('Nothing but this server, and images of the hosts that its operator names'),
    },
  },
  errors: ['not_found'],
})
