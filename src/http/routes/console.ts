import { ServiceError } from '../../schema/errors.ts'
import { consoleFileDocs, PAGE_DOCS } from '../docs/page-docs.ts'
import { listConsoleFiles } from '../docs/site/console-files.ts'
import { serveDocument } from '../response/etag.ts'
import type { PlainRoute } from '../route.ts'

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
export function consoleRoutes(): PlainRoute[] {
  const files = new Map(listConsoleFiles().map((file) => [file.path, file]))
  const served = new Map<string, ReturnType<typeof serveDocument>>()
  const folders = new Set([...files.keys()].filter((path) => path !== '/').map(folderPath))
  return ['/', ...folders].map((path) => ({
    method: 'GET',
    path,
    access: 'open',
    summary: path === '/' ? 'The console, a page for people' : 'Files of the console',
    docs: path === '/' ? PAGE_DOCS.console : consoleFileDocs(path),
    handle: (context) => {
      const file = files.get(context.path)
      if (file === undefined) throw new ServiceError('not_found', `There is nothing at ${context.path}.`)
      const serve = served.get(file.path) ?? serveDocument(file.read(), file.contentType, SECURITY_HEADERS)
      served.set(file.path, serve)
      return serve(context)
    },
  }))
}

const folderPath = (path: string): string => `${path.slice(0, path.lastIndexOf('/'))}/{id}`
