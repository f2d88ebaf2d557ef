// How long a pushed trade takes to a reader's followers, beside the writer's own, in the same cluster.
import { compiled, type Measured, type Question, type RunOptions } from '../../harness.ts'
import { FOLLOWERS, followed } from '../../load.ts'
import { type Cluster, nodeOf, onCluster, type Through } from '../../servers/cluster.ts'

const sizes = ({ small }: RunOptions) =>
  small
    ? { tokens: 500, followers: 2, rate: 200, seconds: 0.5 }
    : { tokens: 10_000, followers: 10, rate: 2_000, seconds: 5 }

async function measure(cluster: Cluster, through: Through, options: RunOptions): Promise<Measured> {
  const { writer, mints } = cluster
  const { followers, rate, seconds } = sizes(options)
  const { port, pid } = nodeOf(cluster, through)
  const page = await fetch(`http://127.0.0.1:${port}/api/v1/market?format=ndjson&limit=1`)
  const rowBytes = (await page.text()).length
  const load = { feedPort: writer.port, port, pid, mints, followers, rate, seconds, rowBytes }
  const { p50Ms, p99Ms, rows } = await followed({ feed: 'ws', ...load })
  return { metrics: { p50Ms, p99Ms }, checksum: `${rows} rows` }
}

const followedThrough =
  (through: Through) =>
  (options: RunOptions): Promise<Measured> =>
    onCluster({ tokens: sizes(options).tokens, readers: 1 }, (cluster) => measure(cluster, through, options))

const WRITER = 'followers of the writer'

export const question: Question = {
  name: 'cluster-latency',
  title: 'from a push to the followers of a reader',
  rounds: 3,
  candidates: { ours: followedThrough('reader'), [WRITER]: followedThrough('writer') },
  comparisons: (['p50Ms', 'p99Ms'] as const).map((metric) => ({
    title: `from a push to a follower of a reader, 2 000 trades/s: ${metric.slice(0, 3)}`,
    ...{ metric, against: WRITER, unit: 'ms', better: 'lower' as const },
  })),
  prepare: () => {
    compiled(FOLLOWERS)
  },
}
