#!/usr/bin/env node
// The `mintlake` command. Starts itself again on the Node that is a dependency, where this one cannot run the rest, so it uses
// old and plain JavaScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import './end-with-npm.mjs'
import { programUrl, SERVER_FLAGS } from './program.mjs'

const NEEDED_MAJOR = '22'
const require = createRequire(import.meta.url)

/** Path of the Node that is a dependency. Returns null when it is not installed. */
function bundledNode() {
  try {
    const manifest = require.resolve('node/package.json')
    const { bin, version } = require(manifest)
    const path = join(dirname(manifest), bin.node)
    return version.split('.')[0] === NEEDED_MAJOR && existsSync(path) ? path : null
  } catch {
    return null
  }
}

/** Runs this file on a Node. A terminal sends Ctrl-C to both processes; other signals have to be passed on. */
function runOn(node) {
  const flags = hasServer ? SERVER_FLAGS : ['--no-warnings']
  const child = spawn(node, [...flags, fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
    // So that it ends with this process, however that ends (end-with-npm.mjs).
    env: { ...process.env, npm_lifecycle_event: 'start' },
  })
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
  process.on('SIGINT', () => {
    if (!hasTerminal) child.kill('SIGINT')
  })
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`mintlake: ${node} cannot be run: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(code === null ? 128 + constants.signals[signal] : code))
}

async function run() {
  if (isServe) {
    process.argv.splice(2, 1)
    await import('./start.mjs')
    return
  }
  await import('./check-runtime.mjs')
  if (hasServer) await import('./server-env.mjs')
  await import('./compile-cache.mjs')
  await import(programUrl('cli/program'))
}

const isServe = process.argv[2] === 'serve'
// A backtest runs a server in its own process.
const hasServer = isServe || process.argv[2] === 'backtest'
const isRight = process.versions.node.split('.')[0] === NEEDED_MAJOR
const hasFlags = !hasServer || SERVER_FLAGS.every((flag) => process.execArgv.includes(flag))
const node = isRight ? process.execPath : bundledNode()
if (node === null || (isRight && hasFlags)) await run()
else runOn(node)
