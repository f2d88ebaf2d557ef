// Checkpoints and the restart from them, of a market of 100 000 tokens after a simulated day: how long a checkpoint takes and how much
// memory, and how long a start takes from it and for the events behind it.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkpointJobs } from '../../../src/checkpoint/checkpoint-job.ts'
import { findRecorded } from '../../../src/checkpoint/find-base.ts'
import { checkpointFolder, journalFolder } from '../../../src/store/paths.ts'
import {
  jsonOf,
  lessIsBetter,
  type Measured,
  median,
  type Question,
  type RunOptions,
  serverArgs,
} from '../../harness.ts'

const MEBIBYTE = 1_048_576
/** Events behind the checkpoint, as in five minutes of about 1 300 trades/s. The first hundred thousand also wait for the compiler. */
const BEHIND = 400_000
const RESTARTS = 5
const programOf = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const dataDirOf = ({ small }: RunOptions): string =>
  join(tmpdir(), `mintlake-bench-day-${small ? 'small' : 'normal'}`)
const sizesOf = ({ small, full }: RunOptions) =>
  small
    ? { tokens: 500, trades: 10_000, behind: 1_000 }
    : { tokens: 100_000, trades: full ? 8_000_000 : 2_000_000, behind: BEHIND }

function recordDay(options: RunOptions): void {
  const folder = dataDirOf(options)
  const { tokens, trades, behind } = sizesOf(options)
  const args = [programOf('datasets/recorded-day.ts'), folder, `${tokens}`, `${trades + behind}`]
  const { status } = spawnSync(process.execPath, ['--no-warnings', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new Error('the day could not be recorded')
}

async function checkpoint(options: RunOptions, throughEventNo: number) {
  const dataDir = dataDirOf(options)
  const folders = {
    journalFolder: journalFolder(dataDir),
    checkpointFolder: checkpointFolder(dataDir),
    folderId: 'bench',
  }
  const task = {
    ...folders,
    throughEventNo,
    barsInLakeToMs: 0,
    originEventNo: 1,
    lostEvents: 0,
    unusable: [],
    crash: null,
  }
  return checkpointJobs().start(task).result
}

async function run(options: RunOptions): Promise<Measured> {
  const dataDir = dataDirOf(options)
  const { behind } = sizesOf(options)
  const folders = {
    journalFolder: journalFolder(dataDir),
    checkpointFolder: checkpointFolder(dataDir),
    folderId: 'bench',
  }
  const { end } = await findRecorded(folders, 0)
  await checkpoint(options, end.lastEventNo - behind)
  const restarts: Record<string, number>[] = []
  for (let round = 0; round < (options.small ? 1 : RESTARTS); round++) {
    const args = [...serverArgs(), programOf('servers/market-restart.ts'), dataDir]
    restarts.push(await jsonOf<Record<string, number>>(process.execPath, args))
  }
  const medianOf = (metric: string): number => median(restarts.map((restart) => restart[metric]))
  // The next one: from the one before, with the events of an interval.
  const next = await checkpoint(options, end.lastEventNo)
  return {
    metrics: {
      restoreMs: medianOf('restoreMs'),
      redoMsPer100k: medianOf('redoMsPer100k'),
      restartPeakMebibytes: medianOf('peakMebibytes'),
      checkpointMs: next.restoreMs + next.replayMs + next.writeMs,
      checkpointWriteMs: next.writeMs,
      checkpointMebibytes: next.bytes / MEBIBYTE,
      checkpointPeakMebibytes: next.peakBytes / MEBIBYTE,
    },
    checksum: `${next.eventNo}`,
  }
}

export const question: Question = {
  name: 'restart',
  title: 'checkpoints, and the restart of a market of 100 000 tokens after a day',
  rounds: 1,
  candidates: { ours: run },
  comparisons: [
    lessIsBetter('restart: the market of the checkpoint', 'restoreMs', 'ms', { gate: 5_000, stretch: 2_500 }),
    lessIsBetter('restart: each 100 000 events of 400 000 behind it', 'redoMsPer100k', 'ms', {
      gate: 1_000,
      stretch: 600,
    }),
    lessIsBetter('restart: memory at most', 'restartPeakMebibytes', 'MiB'),
    lessIsBetter('a checkpoint with 400 000 events behind the one before', 'checkpointMs', 'ms'),
    lessIsBetter('a checkpoint: memory of its process', 'checkpointPeakMebibytes', 'MiB', { gate: 2_048 }),
    lessIsBetter('a checkpoint on disk', 'checkpointMebibytes', 'MiB'),
  ],
  prepare: recordDay,
  cleanUp: (options) => rmSync(dataDirOf(options), { recursive: true, force: true }),
}
