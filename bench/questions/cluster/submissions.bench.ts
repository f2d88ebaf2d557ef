// Submissions through a reader, which passes them on, beside those that are sent to the writer.
import { fileURLToPath } from 'node:url'
import { jsonOf, type Measured, onCore, type Question, type RunOptions } from '../../harness.ts'
import { nodeOf, onCluster, type Through } from '../../servers/cluster.ts'

const SUBMITTERS = fileURLToPath(new URL('../../clients/submitters.ts', import.meta.url))
/** The submitters analyse the first so many tokens. */
const TOKENS = 1_000

const submitted =
  (through: Through) =>
  ({ small }: RunOptions): Promise<Measured> =>
    onCluster({ tokens: TOKENS, readers: 1 }, async (cluster) => {
      const { port } = nodeOf(cluster, through)
      const [connections, warmSeconds, seconds] = small ? [4, 0.3, 0.5] : [32, 3, 8]
      const submit = (forSeconds: number) =>
        jsonOf<Measured>(
          ...onCore(1, process.execPath, [
            ...['--no-warnings', SUBMITTERS],
            ...[port, connections, forSeconds].map(String),
          ]),
        )
      await submit(warmSeconds)
      return submit(seconds)
    })

const DIRECT = 'sent to the writer'

export const question: Question = {
  name: 'cluster-submissions',
  title: 'submissions through a reader',
  rounds: 3,
  candidates: { ours: submitted('reader'), [DIRECT]: submitted('writer') },
  comparisons: [
    {
      title: 'submissions through a reader',
      ...{ metric: 'perSecond', against: DIRECT, unit: 'submissions/s', better: 'higher' },
      note: 'writer, reader and NATS share one core',
    },
    ...(['p50Ms', 'p99Ms'] as const).map((metric) => ({
      title: `submissions through a reader: ${metric.slice(0, 3)}`,
      ...{ metric, against: DIRECT, unit: 'ms', better: 'lower' as const },
    })),
  ],
}
