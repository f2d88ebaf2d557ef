// Five queries of researchers on a lake of ten million submissions (two hundred thousand without --full) that the store wrote
// and merged, compared with one ideally sorted Parquet file and with a file for each flush. Also files, bytes a row, memory.
import {
  QUERIES,
  type QueryName,
  removeSets,
  setsOfRun,
  sizeOfLake,
  type Timed,
  timeQueries,
  writeSets,
  writtenOf,
} from '../datasets/lake-sets.ts'
import { type Measured, type Question, type RunOptions, sha } from '../harness.ts'

const MEBIBYTE = 1_048_576

const rowsOf = ({ small, full }: RunOptions): number => (small ? 3_000 : full ? 10_000_000 : 200_000)

const measured = ({ metrics, sample }: Timed): Measured => ({
  metrics,
  sample,
  checksum: sha(JSON.stringify(sample.map((value) => value.toPrecision(9)))),
})

async function ours(options: RunOptions): Promise<Measured> {
  const sets = setsOfRun()
  const { rows, peakBytes, mergePeakBytes, rowsPerSecond } = writtenOf(sets)
  const { files, bytes } = sizeOfLake(sets)
  const timed = await timeQueries([`ATTACH '${sets.catalog}' AS lake (READ_ONLY)`, 'USE lake'], options.small)
  Object.assign(timed.metrics, { files, bytesPerRow: bytes / rows, rowsPerSecond })
  timed.metrics.peakMebibytes = peakBytes / MEBIBYTE
  timed.metrics.mergePeakMebibytes = mergePeakBytes / MEBIBYTE
  return measured(timed)
}

const view = (path: string): string[] => [`CREATE VIEW training AS SELECT * FROM read_parquet('${path}')`]

export const question: Question = {
  name: 'lake',
  title: 'the lake, read by researchers',
  rounds: 3,
  candidates: {
    ours,
    'one sorted file': async (options) =>
      measured(await timeQueries(view(setsOfRun().sorted), options.small)),
    'a file for each flush': async (options) =>
      measured(await timeQueries(view(`${setsOfRun().flushed}/*.parquet`), options.small)),
  },
  comparisons: [
    ...(Object.keys(QUERIES) as QueryName[]).map((name) => ({
      title: `the lake: ${name}`,
      metric: name,
      against: 'one sorted file',
      unit: 'ms',
      gate: 1.3,
      better: 'lower' as const,
    })),
    {
      title: 'the lake: all five queries',
      metric: 'allMs',
      against: 'a file for each flush',
      unit: 'ms',
      gate: 0.2,
      better: 'lower',
    },
    { title: 'the lake: files of training', metric: 'files', unit: 'files', better: 'lower' },
    { title: 'the lake: a row on disk', metric: 'bytesPerRow', unit: 'bytes', better: 'lower' },
    { title: 'the lake: rows stored and merged', metric: 'rowsPerSecond', unit: 'rows/s', better: 'higher' },
    {
      title: 'the lake: memory of the process that writes at full speed',
      metric: 'peakMebibytes',
      unit: 'MiB',
      better: 'lower',
    },
    {
      title: 'the lake: memory of the process that merges',
      metric: 'mergePeakMebibytes',
      unit: 'MiB',
      gate: 1_024,
      better: 'lower',
    },
  ],
  prepare: (options) => writeSets(rowsOf(options)),
  cleanUp: removeSets,
}
