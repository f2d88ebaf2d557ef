// Runs the type checker with noUncheckedIndexedAccess and fails for errors in `src`, but for the folders below. The flag holds for
// all files that a project reads, so that a second project of the other folders alone would report these too.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** These work on columns of numbers, at indexes that their loops keep within bounds. */
const FOLDERS_OF_COLUMNS = [
  'src/http/encode/',
  'src/ingest/',
  'src/journal/batch/',
  'src/lib/sections/',
  'src/market/',
  'src/store/',
]

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript-7/package.json')), 'bin/tsc')
const args = [compiler, '--noUncheckedIndexedAccess', 'true', '--pretty', 'false']
const { stdout, stderr, status, error } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
if (error !== undefined) throw error

/** An error begins with its file and place: `src/app.ts(1,2): error TS…`. More lines of it are indented. */
const errors = stdout.split(/\n(?=\S)/).filter((text) => /error TS\d+:/.test(text))
const isExempt = (text) =>
  /^(test|bench|scripts)\//.test(text) || FOLDERS_OF_COLUMNS.some((folder) => text.startsWith(folder))
const found = errors.filter((text) => !isExempt(text))
const isCrash = status !== 0 && errors.length === 0
if (isCrash) console.error(`the type checker ended with ${status}:\n${stdout}${stderr}`)
for (const text of found) console.error(text.trimEnd())
if (found.length > 0 || isCrash) process.exitCode = 1
