// Keeps TypeScript without its types between starts, beside the compiled code: Node 22 strips every module in every process again,
// which takes half the time in which a server starts from a clone. Does nothing unless NODE_COMPILE_CACHE names a folder.
import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = process.env.NODE_COMPILE_CACHE
/** Another version of Node may strip otherwise. */
const folder = root && join(root, `stripped-${process.version}`)
const isStripped = (url) => url.startsWith('file:') && url.endsWith('.ts') && !url.includes('/node_modules/')

/** As Node does it itself, but for the warning that the function, unlike what it does, is experimental. */
function strip(source, url) {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(source, { sourceUrl: url })
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Null where the file is missing or of another source. */
function readKept(path, key) {
  try {
    const text = readFileSync(path, 'utf8')
    return text.startsWith(key) ? text.slice(key.length) : null
  } catch {
    return null
  }
}

/** Whole or not at all, since other processes read it meanwhile. Without write access nothing is kept. */
function keep(path, text) {
  try {
    mkdirSync(folder, { recursive: true })
    const temporary = `${path}.${process.pid}`
    writeFileSync(temporary, text)
    renameSync(temporary, path)
  } catch {}
}

function load(url, context, next) {
  if (!isStripped(url)) return next(url, context)
  const source = readFileSync(fileURLToPath(url), 'utf8')
  // A comment, so that line numbers stay and nothing has to be cut off.
  const key = `/* ${hash('sha256', source)} */`
  const path = join(folder, `${hash('sha256', url)}.js`)
  let kept = readKept(path, key)
  if (kept === null) {
    kept = strip(source, url)
    keep(path, key + kept)
  }
  return { format: 'module', source: kept, shortCircuit: true }
}

/** Modules of this project name each other by relative paths with their suffix: Node's own resolution of some 400 of them, which
 *  looks for a package.json above each, takes a fifth of a second of a start. */
function resolve(specifier, context, next) {
  const isOwn =
    specifier.startsWith('.') && specifier.endsWith('.ts') && context.parentURL?.startsWith('file:')
  if (!isOwn) return next(specifier, context)
  return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true }
}

if (folder) registerHooks({ load, resolve })
