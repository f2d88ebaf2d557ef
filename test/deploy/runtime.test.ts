// What a start says where it cannot run: in a folder that has the scripts, and dependencies that are not whole.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../support/test-server.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const ENGINE = `node_modules/uWebSockets.js/bin/uws_${process.platform}_${process.arch}_${process.versions.modules}.node`
const DUCKDB = `node_modules/@duckdb/node-bindings-${process.platform}-${process.arch}/duckdb.node`

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
  cpSync(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function addFile(path: string): void {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), '')
}
/** Packages without binaries, as far as the check looks. */
function addPackages(): void {
  for (const name of ['zod', '@duckdb/node-api', '@duckdb/node-bindings'])
    addFile(`node_modules/${name}/index.js`)
  addFile('node_modules/uWebSockets.js/index.mjs')
  writeFileSync(
    join(folder, 'node_modules/uWebSockets.js/package.json'),
    '{"exports":{"import":"./index.mjs"}}',
  )
}
function check() {
  const { status, stderr } = spawnSync(process.execPath, [join(folder, 'scripts/check-runtime.mjs')], {
    encoding: 'utf8',
  })
  return { status, stderr }
}

it('asks for npm ci where dependencies are missing, and for npm install in a package', () => {
  mkdirSync(join(folder, 'src'))
  writeFileSync(join(folder, 'src/main.ts'), '')
  expect(check()).toEqual({
    status: 1,
    stderr: expect.stringMatching(/not installed\.\n.*"npm ci" in this folder/),
  })
  rmSync(join(folder, 'src'), { recursive: true })
  expect(check().stderr).toMatch(/"npm install" in the folder that has mintlake/)
})

it('names the binaries that are missing', () => {
  addPackages()
  expect(check()).toEqual({
    status: 1,
    stderr: expect.stringMatching(
      /the binary of the HTTP engine uWebSockets\.js and that of DuckDB for \w+ on \w+/,
    ),
  })
  addFile(ENGINE)
  expect(check().stderr).toMatch(/the binary of DuckDB for/)
  addFile(DUCKDB)
  expect(check()).toEqual({ status: 0, stderr: '' })
})
