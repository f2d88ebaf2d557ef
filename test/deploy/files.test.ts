// Files for operators and npm that repeat what stands elsewhere.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { SERVER_FLAGS } from '../../scripts/program.mjs'
import { SETTINGS_BY_PATH } from '../../src/config/settings.ts'

const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const manifest = JSON.parse(read('package.json'))
const unit = read('scripts/mintlake.service')
const flagsIn = (text: string): string[] => text.match(/--[a-z0-9-]+=\d+/g) ?? []

it('npm start, the unit, mintlake serve and npm run cluster give Node the same flags', () => {
  const flags = flagsIn(manifest.scripts.start)
  expect(flags.length).toBeGreaterThan(0)
  expect(flagsIn(/^ExecStart=.*$/m.exec(unit)?.[0] ?? '')).toEqual(flags)
  expect(SERVER_FLAGS).toEqual(flags)
})

it('the unit sets settings that exist', () => {
  const known = Object.values(SETTINGS_BY_PATH).map(({ env }) => env)
  const set = [...unit.matchAll(/^Environment=(MINTLAKE_[A-Z_]+)=/gm)].map(([, name]) => name)
  expect(set.length).toBeGreaterThan(0)
  expect(set.filter((name) => !known.includes(name))).toEqual([])
})

it('the unit waits longer for the server than the server takes to stop', () => {
  const stopMsMax = Number(/STOP_MS_MAX = ([\d_]+)/.exec(read('src/main.ts'))?.[1].replaceAll('_', ''))
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) * 1000).toBeGreaterThan(stopMsMax)
})

it('the lock file names no engines but our own: see scripts/lock-engines.mjs', () => {
  const { packages } = JSON.parse(read('package-lock.json'))
  const named = Object.keys(packages).filter((name) => packages[name].engines !== undefined)
  expect(named).toEqual([''])
  expect(packages[''].engines).toEqual(manifest.engines)
})
