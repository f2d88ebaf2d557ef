// How long a pushed trade takes to a reader's followers, beside the writer's own, in the same cluster.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compiled, jsonOf, type Measured, onCore, type Question, type RunOptions } from '../../harness.ts'
import { type Cluster, nodeOf, onCluster, type Through } from '../../servers/cluster.ts'

const LOAD = new URL('../../limits/followers.c', import.meta.url)
const PATH = '/api/v1/market?follow=1&format=ndjson&limit=1'
const sizes = ({ small }: RunOptions) =>
  small
    ? { tokens: 500, followers: 2, rate: 200, seconds: 0.5 }
    : { tokens: 10_000, followers: 10, rate: 2_000, seconds: 5 }

async function measure(cluster: Cluster, through: Through, options: RunOptions): Promise<Measured> {
  const { writer, mints } = cluster
  const { followers, rate, seconds } = sizes(options)
  const node = nodeOf(cluster, through)
  const page = await fetch(`http://127.0.0.1:${node.port}/api/v1/market?format=ndjson&limit=1`)
  const rowBytes = (await page.text()).length
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
  try {
    const file = join(folder, 'mints')
    writeFileSync(file, mints.join('\n'))
    const args = ['ws', writer.port, node.port, PATH, followers, rate, seconds, file, node.pid, rowBytes]
    const followed = await jsonOf<{ p50Ms: number; p99Ms: number; rows: number; sent: number }>(
      ...onCore(1, compiled(LOAD), args.map(String)),
      60_000,
    )
    const { p50Ms, p99Ms, rows, sent } = followed
    if (rows < sent * followers)
      throw new Error(`${rows} rows came of ${sent} trades to ${followers} followers`)
    return { metrics: { p50Ms, p99Ms }, checksum: `${rows} rows` }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const followed =
  (through: Through) =>
  (options: RunOptions): Promise<Measured> =>
    onCluster({ tokens: sizes(options).tokens, readers: 1 }, (cluster) => measure(cluster, through, options))

const WRITER = 'followers of the writer'

export const question: Question = {
  name: 'cluster-latency',
  title: 'from a push to the followers of a reader',
  rounds: 3,
  candidates: { ours: followed('reader'), [WRITER]: followed('writer') },
  comparisons: (['p50Ms', 'p99Ms'] as const).map((metric) => ({
    title: `from a push to a follower of a reader, 2 000 trades/s: ${metric.slice(0, 3)}`,
    ...{ metric, against: WRITER, unit: 'ms', better: 'lower' as const },
  })),
  prepare: () => {
    compiled(LOAD)
  },
}
