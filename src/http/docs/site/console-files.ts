// The console's files as browsers get them: sources of src/web with their types stripped, and modules of packages.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { extname, join } from 'node:path'
import { assert } from '../../../lib/assert.ts'

const CONSOLE_PATH = '/console/'
const VENDOR_PATH = `${CONSOLE_PATH}vendor/`
const SOURCE_DIR = join(import.meta.dirname, '../../..')
const PAGE = 'web/index.html'
const MAIN = `${CONSOLE_PATH}web/main.js`
/** Where the page names the modules of its first view, so that browsers need not find them one after the other. */
const MODULES_MARK = '<!-- modules -->'
/** `.ts` in a clone, `.js` in the package. */
const ENDING = extname(import.meta.filename)
/** Folders that browsers get. */
const FOLDERS = ['web', 'client']
/** What these import from elsewhere at run time. Types alone come from other schemas. */
const FILES = [
  'schema/errors',
  'schema/quote',
  'schema/timeframe',
  'schema/vocabulary',
  'schema/xp',
  'lib/backoff',
  'lib/record',
  'lib/text/csv',
  'lib/text/hash-text',
  'lib/time',
]

const HTML_TYPE = 'text/html; charset=utf-8'
const JAVASCRIPT_TYPE = 'text/javascript; charset=utf-8'
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.ts': JAVASCRIPT_TYPE,
  '.js': JAVASCRIPT_TYPE,
}

/** Modules of packages by the name under which the console imports them, and their files in the package. */
const MODULES: Readonly<Record<string, string>> = {
  'lit-html': 'lit-html/lit-html.js',
  'lit-html/directives/guard.js': 'lit-html/directives/guard.js',
  'lit-html/directives/ref.js': 'lit-html/directives/ref.js',
  'lit-html/directives/repeat.js': 'lit-html/directives/repeat.js',
  'lightweight-charts': 'lightweight-charts/dist/lightweight-charts.standalone.production.mjs',
}
/** Files of packages that the modules above import. */
const IMPORTED_BY_MODULES = ['async-directive', 'directive', 'directive-helpers'].map(
  (name) => `lit-html/${name}.js`,
)

/** A file of the console. */
export interface ConsoleFile {
  path: string
  contentType: string
  /** @param imageHosts those whose images the page shows; other files do not depend on it */
  read(imageHosts: readonly string[]): Buffer
}

/** Every file of the console. */
export function listConsoleFiles(): ConsoleFile[] {
  const inFolders = FOLDERS.flatMap((folder) =>
    readdirSync(join(SOURCE_DIR, folder), { recursive: true, encoding: 'utf8' }).map(
      (name) => `${folder}/${name}`,
    ),
  )
  const sources = [...inFolders, ...FILES.map((name) => name + ENDING)]
  const modules = [
    ...sources.flatMap((name) => sourceFile(name) ?? []),
    ...[...Object.values(MODULES), ...IMPORTED_BY_MODULES].map(vendorFile),
  ]
  return [pageFile(modules), ...modules]
}

/** The page itself is told its modules, and which images it may ask for. */
function pageFile(modules: readonly ConsoleFile[]): ConsoleFile {
  const read: ConsoleFile['read'] = (imageHosts) => {
    const links = importedBy(MAIN, modules).map((path) => `<link rel="modulepreload" href="${path}" />`)
    const text = readFileSync(join(SOURCE_DIR, PAGE), 'utf8')
      .replace(MODULES_MARK, links.join('\n    '))
      .replace('data-image-hosts=""', `data-image-hosts="${imageHosts.join(' ')}"`)
    return Buffer.from(text)
  }
  return { path: '/', contentType: HTML_TYPE, read }
}

/** The modules that a module needs before it runs. What it imports later, while it runs, is not among them. */
function importedBy(main: string, files: readonly ConsoleFile[]): string[] {
  const fileByPath = new Map(files.map((file) => [file.path, file]))
  const found = new Set<string>()
  const visit = (path: string): void => {
    const file = fileByPath.get(path)
    if (file === undefined || found.has(path)) return
    found.add(path)
    const script = file.read([]).toString()
    for (const [, name = ''] of script.matchAll(/\b(?:from|import)\s*['"]([^'"]+)['"]/g))
      visit(new URL(name, `http://console${path}`).pathname)
  }
  visit(main)
  found.delete(main)
  return [...found]
}

/** Null for what browsers do not get: folders, declarations, notes. */
function sourceFile(name: string): ConsoleFile | null {
  const contentType = CONTENT_TYPES[extname(name)]
  if (contentType === undefined || name.endsWith('.d.ts')) return null
  const path = CONSOLE_PATH + name.replace(/\.ts$/, '.js')
  const read = () => {
    const text = readFileSync(join(SOURCE_DIR, name), 'utf8')
    return Buffer.from(contentType === JAVASCRIPT_TYPE ? browserModule(text, extname(name) === '.ts') : text)
  }
  return { path, contentType, read }
}

/** Browsers know no packages and no types: names of packages become addresses here, and `.ts` becomes `.js`. */
function browserModule(source: string, hasTypes: boolean): string {
  const script = hasTypes ? stripTypeScriptTypes(source) : source
  return script.replace(
    /(\bfrom\s+|\bimport\s+|\bimport\()'([^']+)'/g,
    (_, keyword: string, name: string) => {
      const file = MODULES[name]
      return `${keyword}'${file === undefined ? name.replace(/\.ts$/, '.js') : VENDOR_PATH + file}'`
    },
  )
}

function vendorFile(file: string): ConsoleFile {
  const read = () => {
    // Not `require.resolve`: a package's exports give Node other files than browsers.
    const folders = createRequire(import.meta.url).resolve.paths(file) ?? []
    const folder = folders.find((each) => existsSync(join(each, file)))
    assert(folder !== undefined, `${file} is installed`)
    return readFileSync(join(folder, file))
  }
  return { path: VENDOR_PATH + file, contentType: JAVASCRIPT_TYPE, read }
}
