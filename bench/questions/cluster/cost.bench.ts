// What a cluster costs at 20 000 trades a second: the CPU of a reader, of NATS, and what publishing adds to the writer's. The pushes are
// the same with and without a bus, one after the other.
import { cpuSeconds, lessIsBetter, type Measured, type Question, type RunOptions } from '../../harness.ts'
import { pushRecorded } from '../../load.ts'
import { onCluster } from '../../servers/cluster.ts'

interface Shares {
  /** Percent of a core. */
  writer: number
  reader: number
  nats: number
}

function measure(bus: boolean, { small }: RunOptions): Promise<Shares> {
  const [tokens, rate, seconds] = small ? [500, 1_000, 1] : [100_000, 20_000, 30]
  return onCluster({ tokens, readers: bus ? 1 : 0, bus }, async ({ writer, readers, nats }) => {
    const load = { perPost: 200, rate, tokens }
    await pushRecorded(writer.port, load, small ? 0.5 : 10)
    const pids = [writer.pid, readers[0]?.pid, nats?.child.pid]
    const before = pids.map((pid) => (pid === undefined ? 0 : cpuSeconds(pid)))
    const { accepted } = await pushRecorded(writer.port, load, seconds)
    if (accepted < 0.95 * rate * seconds) throw new Error(`only ${accepted} trades were taken`)
    const [writerPct, reader, natsPct] = pids.map((pid, index) =>
      pid === undefined ? 0 : (100 * (cpuSeconds(pid) - before[index])) / seconds,
    )
    return { writer: writerPct, reader, nats: natsPct }
  })
}

async function run(options: RunOptions): Promise<Measured> {
  const alone = await measure(false, options)
  const { writer, reader, nats } = await measure(true, options)
  const floor = (pct: number): number => Math.max(0.01, pct)
  return {
    metrics: {
      readerPct: floor(reader),
      publishPct: floor(writer - alone.writer),
      natsPct: floor(nats),
      alonePct: floor(alone.writer),
    },
    checksum: 'cluster',
  }
}

export const question: Question = {
  name: 'cluster-cost',
  title: 'a cluster at 20 000 trades a second: CPU',
  rounds: 1,
  candidates: { ours: run },
  comparisons: [
    lessIsBetter('a reader at 20 000 trades/s', 'readerPct', '% of a core'),
    lessIsBetter('publishing 20 000 trades/s: the writer', 'publishPct', '% of a core'),
    lessIsBetter('publishing 20 000 trades/s: NATS', 'natsPct', '% of a core'),
  ],
}
