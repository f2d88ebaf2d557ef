// In: token profiles and a lake process that ends. Out: proof that each version is handed over once to each process.
import { expect, test } from 'vitest'
import type { Row } from '../../src/schema/tables.ts'
import { ProfileOutbox } from '../../src/store/market-data/profile-outbox.ts'
import type { LakeClient } from '../../src/store/process/client.ts'
import { rowOf } from './support.ts'

test('what a process that ended had is handed to the next one once, though a flush and the market come together', async () => {
  const process = { starts: 1, mints: [] as unknown[] }
  const client = {
    get starts() {
      return process.starts
    },
    async ask(_kind: string, { rows }: { rows: Row[] }) {
      process.mints.push(...rows.map(({ mint }) => mint))
      return { taken: true, inLake: 0 }
    },
  }
  const outbox = new ProfileOutbox(client as unknown as LakeClient)
  await outbox.write([rowOf('tokens', { mint: 'a' })])
  Object.assign(process, { starts: 2, mints: [] })
  await Promise.all([outbox.write([rowOf('tokens', { mint: 'b' })]), outbox.deliver()])
  expect(process.mints).toEqual(['a', 'b'])
})
