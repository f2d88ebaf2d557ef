// A checkpoint of the layout that versions had before: `fixtures/checkpoint-format-1.json.gz` was written by Mintlake at 386d6d1, with
// the DataPoints that it had served until then. A quarter hour had passed within the last two minutes.
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { SNAPSHOT_FIELDS, type SnapshotValues } from '../../src/schema/datapoint.ts'

type Served = SnapshotValues & { mint: string; snapshotAt: number }
const FIXTURE = new URL('fixtures/checkpoint-format-1.json.gz', import.meta.url)
const { served, sections }: { served: Served[]; sections: Record<string, string> } = JSON.parse(
  gunzipSync(readFileSync(FIXTURE)).toString(),
)

it('a checkpoint of format 1 is restored, and each DataPoint that was served from it is still known', () => {
  const market = Market.restore({ tokensMax: 3, barsPerTokenMax: 128, versionsMax: 32_768 }, (name) =>
    name in sections ? Buffer.from(sections[name] ?? '', 'base64') : null,
  )
  expect(served).toHaveLength(12)
  for (const { mint, snapshotAt, ...values } of served) {
    const known = market
      .versionsAt(mint, snapshotAt)
      .map((version) => SNAPSHOT_FIELDS.map((of) => version[of]))
    expect(known).toContainEqual(SNAPSHOT_FIELDS.map((of) => values[of]))
  }
})
