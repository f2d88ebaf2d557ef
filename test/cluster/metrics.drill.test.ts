// @module-tag drill
// What operators watch of a cluster: the suggested alerts name only what its nodes tell, and everything that says that something is wrong.
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { hasNats, skipped, TestCluster } from './support.ts'

const ALERTS = readFileSync(new URL('../../scripts/alerts.yml', import.meta.url), 'utf8')
/** They say how much there is, not that something is wrong. */
const FIGURES = [
  'mintlake_cluster_away_seconds',
  'mintlake_cluster_event_no',
  'mintlake_cluster_forwarded',
  'mintlake_cluster_published_bytes_total',
  'mintlake_cluster_published_messages_total',
  'mintlake_cluster_uploads_total',
  'mintlake_cluster_waiting_bytes',
]

let cluster: TestCluster
afterEach(() => cluster.remove())

describe.skipIf(!hasNats)(`metrics of a cluster${skipped}`, () => {
  test('the suggested alerts name those of writer and reader that can say that something is wrong', async () => {
    cluster = await TestCluster.start()
    const nodes = [await cluster.writer(), await cluster.reader()]
    const texts = await Promise.all(nodes.map(async ({ client }) => (await client.get('/metrics')).text))
    const families = new Set(
      texts.flatMap((text) =>
        [...text.matchAll(/^# TYPE (mintlake_cluster_\w+) /gm)].map(([, name]) => name),
      ),
    )
    const named = new Set(ALERTS.match(/\bmintlake_cluster_\w+/g))
    expect([...named].filter((name) => !families.has(name))).toEqual([])
    expect([...families].filter((name) => !named.has(name)).toSorted()).toEqual(FIGURES)
  })
})
