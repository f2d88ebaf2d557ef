// What one round of a flush takes: bounded, and never a part of a commit.
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { planRange } from '../../src/store/flush-range.ts'
import { CREATE_MANIFEST, LAKE_TABLES } from '../../src/store/sql.ts'

const table = LAKE_TABLES.find(({ name }) => name === 'training')!
let instance: DuckDBInstance
let connection: DuckDBConnection

/** Three commits of 12 rows, every third of them of this table: 1, 4, 7, 10; 13, 16, 19, 22; 25, 28, 31, 34. */
beforeAll(async () => {
  instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  connection = await instance.connect()
  for (const statement of CREATE_MANIFEST) await connection.run(statement)
  await connection.run(`CREATE TABLE training AS
    SELECT seq AS row_seq, epoch_ms(1000 + (seq - 1) // 12) AS known_at FROM range(1, 37, 3) AS rows(seq)`)
})
afterAll(() => {
  connection.closeSync()
  instance.closeSync()
})

const planned = (ackedSeq: number, rowsMax?: number) => planRange(connection, table, 1, ackedSeq, rowsMax)

it('is everything that was acknowledged', async () => {
  expect(await planned(36)).toEqual({ first: 1, last: 34 })
  expect(await planned(24)).toEqual({ first: 1, last: 22 })
})

it.each([1, 2, 4])('goes to the end of the commit that its bound of %i rows falls into', async (rowsMax) => {
  expect(await planned(36, rowsMax)).toEqual({ first: 1, last: 10 })
})

it('goes to the end of the next one from the first row of it on', async () => {
  expect(await planned(36, 5)).toEqual({ first: 1, last: 22 })
  expect(await planned(0)).toBeNull()
})
