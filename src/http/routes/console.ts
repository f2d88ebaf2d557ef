import { z } from 'zod'
import { ServiceError } from '../../schema/errors.ts'
import { pageHeaders, text } from '../docs/headers.ts'
import { documentDocs, type OperationDocs, textType } from '../docs/operation-docs.ts'
import { listConsoleFiles } from '../docs/site/console-files.ts'
import { serveDocument } from '../response/etag.ts'
import type { PlainRoute } from '../route.ts'
import type { RouteParts } from './route-parts.ts'

/**
 * The console may load what this server has, and nothing else: texts of tokens come from strangers, so neither a script nor a
 * request of theirs can run in it. Images of the hosts that the operator names are the exception.
 */
function securityHeaders({ imageHosts }: RouteParts['settings']) {
  const images = imageHosts.map((host) => ` https://${host}`).join('')
  return {
    'Content-Security-Policy':
      `default-src 'self';${images === '' ? '' : ` img-src 'self'${images};`} object-src 'none'; base-uri 'none'; ` +
      "form-action 'self'; frame-ancestors 'none'",
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  }
}

const HEADERS = pageHeaders('Nothing but this server, and images of the hosts that its operator names')
const CONSOLE_DOCS = documentDocs('getConsole', 'A page', textType('text/html'), HEADERS)

/** Files of one folder of the console: scripts and styles. `path` ends with `{id}`. */
const fileDocs = (path: string): OperationDocs => ({
  ...documentDocs(
    `getConsoleFile_${path.split(/[/-]/).slice(2, -1).join('_')}`,
    'The file',
    { ...textType('text/javascript'), ...textType('text/css') },
    HEADERS,
  ),
  params: z.object({ id: text('Name of the file') }),
  errors: ['not_found'],
})

/** Routes for the console's files: one for each folder, so that files do not multiply the routes. */
export function consoleRoutes(deps: RouteParts): PlainRoute[] {
  const headers = () => securityHeaders(deps.settings)
  const files = new Map(
    listConsoleFiles().map(({ path, contentType, read }) => [
      path,
      serveDocument(contentType, () => read(deps.settings.imageHosts), headers),
    ]),
  )
  const folders = new Set([...files.keys()].filter((path) => path !== '/').map(folderPath))
  return ['/', ...folders].map((path) => ({
    method: 'GET',
    path,
    access: 'open',
    summary: path === '/' ? 'The console, a page for people' : 'Files of the console',
    docs: path === '/' ? CONSOLE_DOCS : fileDocs(path),
    handle: (context) => {
      const serve = files.get(context.path)
      if (serve === undefined) throw new ServiceError('not_found', `There is nothing at ${context.path}.`)
      return serve(context)
    },
  }))
}

const folderPath = (path: string): string => `${path.slice(0, path.lastIndexOf('/'))}/{id}`
