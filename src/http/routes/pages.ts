// What a browser opens beside the console: the reference with its files, and the icon.
import { z } from 'zod'
import { SingleFlight } from '../../lib/single-flight.ts'
import type { HttpAnswer } from '../context.ts'
import { noSniff, pageHeaders } from '../docs/headers.ts'
import { documentDocs, textType } from '../docs/operation-docs.ts'
import { FAVICON } from '../docs/site/favicon.ts'
import {
  PACKAGE_FILES,
  PAGE_CSS,
  PAGE_HEADERS,
  PAGE_HTML,
  PAGE_SCRIPT,
  readPackageFile,
  THEME_SCRIPT,
} from '../docs/site/reference-page.ts'
import { serveDocument } from '../response/etag.ts'
import type { PlainRoute } from '../route.ts'

const DOCS_PATH = '/docs'
const NO_SNIFF = { 'X-Content-Type-Options': 'nosniff' }
const mediaTypeOf = (contentType: string): string => contentType.split(';')[0] ?? contentType

export const pageRoutes = (): PlainRoute[] => [
  {
    method: 'GET',
    path: DOCS_PATH,
    access: 'open',
    summary: 'This API to read and try, in a browser',
    docs: documentDocs(
      'getReference',
      'A page',
      textType('text/html'),
      pageHeaders('Scripts and requests of this server alone'),
    ),
    handle: serveDocument(Buffer.from(PAGE_HTML), 'text/html; charset=utf-8', PAGE_HEADERS),
  },
  {
    method: 'GET',
    path: '/favicon.ico',
    access: 'open',
    summary: 'Icon',
    docs: documentDocs('getIcon', 'An icon', { 'image/x-icon': null }, z.object(noSniff)),
    handle: serveDocument(FAVICON, 'image/x-icon', NO_SNIFF),
  },
  ownFile('page.css', PAGE_CSS, 'text/css; charset=utf-8'),
  ownFile('page.js', PAGE_SCRIPT, 'text/javascript; charset=utf-8'),
  ownFile('theme.js', THEME_SCRIPT, 'text/javascript; charset=utf-8'),
  ...PACKAGE_FILES.map(({ name, type }) => packageFile(name, type)),
]

const file = (name: string, type: string, handle: PlainRoute['handle']): PlainRoute => ({
  method: 'GET',
  path: `${DOCS_PATH}/${name}`,
  access: 'open',
  summary: `A file of the page ${DOCS_PATH}`,
  docs: documentDocs(
    `getFile_${name.replaceAll(/\W/g, '_')}`,
    'The file',
    textType(mediaTypeOf(type)),
    z.object(noSniff),
  ),
  handle,
})

const ownFile = (name: string, text: string, type: string): PlainRoute =>
  file(name, type, serveDocument(Buffer.from(text), type, NO_SNIFF))

/** A file of the package is read when it is first asked for, and kept. */
function packageFile(name: string, type: string): PlainRoute {
  const served = new SingleFlight(
    async () => serveDocument(await readPackageFile(name), type, NO_SNIFF),
    Number.POSITIVE_INFINITY,
  )
  return file(name, type, async (context): Promise<HttpAnswer> => (await served.get())(context))
}
