import { ServiceError } from '../../schema/errors.ts'
import { consoleFileDocs, PAGE_DOCS } from '../docs/page-docs.ts'
import { serveDocument } from '../response/etag.ts'
import type { PlainRoute } from '../route.ts'

export interface StaticFile {
  path: string
  body: Buffer
  contentType: string
}

/**
 * The console may load what this server has, and nothing else: texts of tokens come from strangers, so neither a script nor a
 * request of theirs can run in it.
 */
const SECURITY_HEADERS = {
  'Content-Security-Policy':
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

/** Routes for the console's files: one for each folder, so that files do not multiply the routes. */
export function consoleRoutes(files: readonly StaticFile[]): PlainRoute[] {
  const serveByPath = new Map(
    files.map(({ path, body, contentType }) => [path, serveDocument(body, contentType, SECURITY_HEADERS)]),
  )
  const folders = new Set([...serveByPath.keys()].filter((path) => path !== '/').map(folderPath))
  return ['/', ...folders].map((path) => ({
    method: 'GET',
    path,
    access: 'open',
    summary: path === '/' ? 'The console, a page for people' : 'Files of the console',
    docs: path === '/' ? PAGE_DOCS.console : consoleFileDocs(path),
    handle: (context) => {
      const serve = serveByPath.get(context.path)
      if (serve === undefined) throw new ServiceError('not_found', `There is nothing at ${context.path}.`)
      return serve(context)
    },
  }))
}

const folderPath = (path: string): string => `${path.slice(0, path.lastIndexOf('/'))}/{id}`
