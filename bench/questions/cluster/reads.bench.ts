// Pages that two readers serve beside one, while trades are pushed. Two cores have to do for two readers, their load, the writer and NATS:
// what counts is pages a CPU second of each reader, which is what it serves in a second on a core of its own.
import type { Measured, Question, RunOptions } from '../../harness.ts'
import { measureLoad, pushRecorded } from '../../load.ts'
import { onCluster } from '../../servers/cluster.ts'

const PATH = '/api/v1/market?sort=hot&limit=100&format=ndjson'

const served =
  (readerCount: 1 | 2) =>
  (options: RunOptions): Promise<Measured> => {
    const tokens = options.small ? 500 : 10_000
    return onCluster({ tokens, readers: readerCount, readerCores: [0, 1] }, async ({ writer, readers }) => {
      const push = pushRecorded(writer.port, { perPost: 20, rate: 200, tokens }, options.small ? 1 : 5)
      const measured = await Promise.all(readers.map((reader) => measureLoad(reader, PATH, options)))
      await push
      const sum = (metric: string): number =>
        measured.reduce((total, { metrics }) => total + metrics[metric], 0)
      return {
        metrics: { perCpuSecond: sum('perCpuSecond'), perSecond: sum('perSecond') },
        checksum: `${readerCount}`,
      }
    })
  }

const ONE = 'one reader'

export const question: Question = {
  name: 'cluster-reads',
  title: 'pages of two readers',
  rounds: 3,
  candidates: { ours: served(2), [ONE]: served(1) },
  comparisons: [
    {
      title: 'pages of two readers, if each has a core',
      ...{ metric: 'perCpuSecond', against: ONE, unit: 'pages/s', better: 'higher' },
      note: 'simulated: pages a CPU second of each, added up',
    },
    {
      title: 'pages of two readers, all on two cores',
      ...{ metric: 'perSecond', against: ONE, unit: 'pages/s', better: 'higher' },
      note: 'two readers, their load, the writer and NATS share two cores',
    },
  ],
}
