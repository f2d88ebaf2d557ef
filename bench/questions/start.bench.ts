// Time and memory of a start after a kill, with submissions in the log that the lake does not have: until the store answers
// and takes commits again. The lake catches up in the background.
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inFolder, jsonOf, type Measured, type Question, type RunOptions, serverArgs } from '../harness.ts'

const TOKENS = 100_000
const AGENTS = 1_000
const TAIL = 30_000
/** 1.7 GB, where commits are refused from two on. */
const LONG_TAIL = 1_000_000
const programOf = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))
const folderOf = ({ small, full }: RunOptions, tail: string): string =>
  join(tmpdir(), `mintlake-bench-start-${small ? 'small' : full ? 'full' : 'normal'}-${tail}`)

/** The lake alone, and with a tail: that of ten million rows takes half an hour to write, so all tails stand on one. */
const LAKE = 'lake'

const run = (program: string, ...args: (string | number)[]) =>
  spawnSync(process.execPath, ['--no-warnings', programOf(program), ...args.map(String)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })

function writeLake(options: RunOptions): void {
  const { small, full } = options
  const folder = folderOf(options, LAKE)
  rmSync(folder, { recursive: true, force: true })
  const rows = small ? 1_000 : full ? 10_000_000 : 200_000
  const { status } = run('datasets/lake-writer.ts', folder, rows, TOKENS, AGENTS)
  if (status !== 0) throw new Error(`the lake could not be written: ${status}`)
}

function writeTail(options: RunOptions, tail: string, commits: number): void {
  const folder = folderOf(options, tail)
  rmSync(folder, { recursive: true, force: true })
  cpSync(folderOf(options, LAKE), folder, { recursive: true, verbatimSymlinks: true })
  // The program ends itself with SIGKILL.
  const { signal } = run('datasets/log-tail.ts', folder, options.small ? 100 : commits)
  if (signal !== 'SIGKILL') throw new Error('the log could not be written')
}

const start =
  (tail: string) =>
  (options: RunOptions): Promise<Measured> =>
    inFolder(async (folder) => {
      cpSync(folderOf(options, tail), folder, { recursive: true, verbatimSymlinks: true })
      const args = [...serverArgs(), programOf('servers/store-start.ts'), folder]
      return { metrics: await jsonOf(process.execPath, args), checksum: tail }
    })

const SHORT = 'a tail of 30 000 submissions'
const LONG = 'a tail of a million submissions'
const ready = (of: string, gate: number) =>
  ({ title: `start with ${of}`, metric: 'openMs', of, unit: 'ms', gate, better: 'lower' }) as const

export const question: Question = {
  name: 'start',
  title: 'start after a kill',
  rounds: 3,
  fullOnly: [LONG],
  candidates: { [SHORT]: start('short'), [LONG]: start('long') },
  comparisons: [
    ready(SHORT, 2_000),
    { ...ready(SHORT, 0), title: 'until its lake has them', metric: 'caughtUpMs', gate: undefined },
    ready(LONG, 15_000),
    { ...ready(LONG, 500), title: `start with ${LONG}: memory`, metric: 'openPeakMebibytes', unit: 'MiB' },
  ],
  prepare(options) {
    writeLake(options)
    writeTail(options, 'short', TAIL)
    if (options.full) writeTail(options, 'long', LONG_TAIL)
  },
  cleanUp(options) {
    for (const tail of [LAKE, 'short', 'long'])
      rmSync(folderOf(options, tail), { recursive: true, force: true })
  },
}
