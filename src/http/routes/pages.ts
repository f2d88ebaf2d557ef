// What a browser opens beside the console: the reference with its files, and the icon.
import { z } from 'zod'
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
    handle: serveDocument(
      'text/html; charset=utf-8',
      () => Buffer.from(PAGE_HTML),
      () => PAGE_HEADERS,
    ),
  },
  {
    method: 'GET',
    path: '/favicon.ico',
    access: 'open',
    summary: 'Icon',
    docs: documentDocs('getIcon', 'An icon', { 'image/x-icon': null }, z.object(noSniff)),
    handle: serveDocument(
      'image/x-icon',
      () => FAVICON,
      () => NO_SNIFF,
    ),
  },
  file('page.css', 'text/css; charset=utf-8', () => Buffer.from(PAGE_CSS)),
  file('page.js', 'text/javascript; charset=utf-8', () => Buffer.from(PAGE_SCRIPT)),
  file('theme.js', 'text/javascript; charset=utf-8', () => Buffer.from(THEME_SCRIPT)),
  ...PACKAGE_FILES.map(({ name, type }) => file(name, type, () => readPackageFile(name))),
]

const file = (name: string, type: string, read: () => Buffer): PlainRoute => ({
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
  handle: serveDocument(type, read, () => NO_SNIFF),
})
