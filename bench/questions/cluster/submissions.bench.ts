// Submissions through a reader, which forwards them, beside those that are sent to the writer.
import { fileURLToPath } from 'node:url'
import { jsonOf, type Measured, onCore, type Question, type RunOptions } from '../../harness.ts'
import { startCluster } from '../../servers/cluster.ts'

const SUBMITTERS = fileURLToPath(new URL('../../clients/submitters.ts', import.meta.url))
/** The submitters analyse the first so many tokens. */
const TOKENS = 1_000

const submitted =
  (through: 'reader' | 'writer') =>
  async ({ small }: RunOptions): Promise<Measured> => {
    const cluster = await startCluster({ tokens: TOKENS, readers: 1 })
    try {
      const { port } = through === 'reader' ? cluster.readers[0] : cluster.writer
      const [connections, warmSeconds, seconds] = small ? [4, 0.3, 0.5] : [32, 3, 8]
      const submit = (forSeconds: number) =>
        jsonOf<Measured>(
          ...onCore(1, process.execPath, [
            ...['--no-warnings', SUBMITTERS],
            ...[port, connections, forSeconds].map(String),
          ]),
        )
      await submit(warmSeconds)
      return await submit(seconds)
    } finally {
      await cluster.end()
    }
  }

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
    {
      title: 'submissions through a reader: p50',
      metric: 'p50Ms',
      against: DIRECT,
      unit: 'ms',
      better: 'lower',
    },
    {
      title: 'submissions through a reader: p99',
      metric: 'p99Ms',
      against: DIRECT,
      unit: 'ms',
      better: 'lower',
    },
  ],
}
