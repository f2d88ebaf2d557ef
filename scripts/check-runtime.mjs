// Prints one paragraph and exits with 1 when this Node or its dependencies cannot run Mintlake. Uses no dependency and no syntax
// newer than Node 14.
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
