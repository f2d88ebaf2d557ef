// Prints one paragraph and exits with 1 when this Node or its dependencies cannot run Mintlake. Uses no dependency and no syntax
// newer than Node 14.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isPackage } from './program.mjs'

const NEEDED_MAJOR = 22
const require = createRequire(import.meta.url)
const wanted = require('../package.json').dependencies.node
const running = process.versions.node
const [major, minor] = running.split('.').map(Number)

function refuse(what, todo) {
  console.error(`mintlake cannot start: ${what}\n  what to do: ${todo}`)
  process.exit(1)
}

let installed = true
try {
  require.resolve('zod')
} catch {
  installed = false
}

const install = isPackage ? 'npm install' : 'npm ci'
const folder = isPackage ? 'the folder that has mintlake in its node_modules' : 'this folder'

if (!installed)
  refuse('its dependencies are not installed.', `run "${install}" in ${folder}, then try again.`)
// Type stripping needs 22.18 or later, and the HTTP engine ships binaries up to Node 22.
if (major !== NEEDED_MAJOR || minor < 18) {
  refuse(
    `it runs on Node ${NEEDED_MAJOR} (22.18 or later), and this is Node ${running}.`,
    `${install} installs Node ${wanted} beside the other dependencies through an install script; it seems that ` +
      `install scripts are switched off. Run "${install} --ignore-scripts=false", or "npm rebuild node", in ${folder}, ` +
      `or put a Node ${NEEDED_MAJOR} on the PATH.`,
  )
}

const { platform, arch, versions } = process

/** Whether DuckDB's binary for this platform is installed. */
function hasDuckdb() {
  const bindings = createRequire(require.resolve('@duckdb/node-api')).resolve('@duckdb/node-bindings')
  return ['', '-musl'].some((libc) => {
    try {
      return createRequire(bindings).resolve(`@duckdb/node-bindings-${platform}-${arch}${libc}/duckdb.node`)
    } catch {
      return false
    }
  })
}

/** Whether the HTTP engine's is: the repack on npm has a folder for them, the official release does not. */
function hasEngine() {
  const entry = import.meta.resolve('uWebSockets.js')
  const name = `uws_${platform}_${arch}_${versions.modules}.node`
  return ['bin/', ''].some((folder) => existsSync(new URL(folder + name, entry)))
}

const missing = [hasEngine() ? '' : 'the HTTP engine uWebSockets.js', hasDuckdb() ? '' : 'DuckDB'].filter(
  Boolean,
)
if (missing.length > 0)
  refuse(
    `the binary of ${missing.join(' and that of ')} for ${platform} on ${arch} is missing.`,
    `dependencies that were copied from another machine do not fit: remove node_modules and run "${install}" in ${folder}. ` +
      'Binaries exist for Linux (glibc) and macOS on x64 and arm64, and for Windows on x64.',
  )
