// On random commits: the columns that a start reads give the same state as all columns.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Row, TableName } from '../../../src/schema/tables.ts'
import { commitText, rowsText } from '../../../src/store/log/segments/format.ts'
import { recoverFrom } from '../../../src/store/state/recovered.ts'
import { applyCommit, STATE_COLUMNS, StoreState } from '../../../src/store/state/state.ts'
import { StateRowParser } from '../../../src/store/state/state-rows.ts'

type TableRow = readonly [TableName, Row]

const payloadOf = (rows: readonly TableRow[]): Buffer =>
  Buffer.from(
    commitText(7, 6, 1_000, rowsText(rows.map(([table, row]) => ({ table, json: JSON.stringify(row) })))),
  )

/** Texts that look like the JSON around them, or that JSON spells otherwise. */
const text = fc.oneof(
  fc.constantFrom(
    '}],[',
    '","mint":"X","',
    '"agent_id":"X"',
    '{"score":1',
    '\\',
    '\\"',
    ']]}',
    '"],["xp_ledger",{',
    '',
    'é’🎈',
    '\n\t\u0000',
    'null',
    '12',
  ),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom('}', ']', '[', '{', ',', '"', ':', '\\', 'm') }),
)
const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
const shuffled = (row: fc.Arbitrary<Row>): fc.Arbitrary<Row> =>
  row.chain((made) =>
    fc
      .shuffledSubarray(Object.keys(made), { minLength: Object.keys(made).length })
      .map((names) => Object.fromEntries(names.map((name) => [name, made[name]]))),
  )
const submission = shuffled(
  fc.record(
    {
      feed: text,
      simulated: fc.boolean(),
      analysis_id: text,
      agent_id: text,
      mint: text,
      received_at: fc.option(number),
      sentiment: text,
      score: number,
      summary: text,
      risk_factors: fc.array(text),
      validated: fc.boolean(),
    },
    { requiredKeys: ['agent_id', 'mint', 'sentiment', 'score'] },
  ) as fc.Arbitrary<Row>,
)
const of = (table: TableName, row: fc.Arbitrary<Row>): fc.Arbitrary<TableRow> =>
  row.map((value) => [table, value] as const)
const tableRow = fc.oneof(
  of('training', submission),
  of('rejections', submission),
  of('xp_ledger', shuffled(fc.record({ agent_id: text, kind: text, xp: number, note: text }))),
  of('submit_attempts', shuffled(fc.record({ agent_id: text, at: number }))),
  of('agents', shuffled(fc.record({ agent_id: text, name: text, created_at: number }))),
  of(
    'idempotency',
    fc.record({ agent_id: text, idempotency_key: text, body_hash: text, body: text, at: number }),
  ),
)
const rows = fc.array(tableRow, { minLength: 1, maxLength: 5 })

const columnsOf = ([table, row]: TableRow): TableRow => {
  const needed = new Map<string, readonly string[]>(Object.entries(STATE_COLUMNS)).get(table)
  if (needed === undefined) return [table, row]
  return [table, Object.fromEntries(needed.flatMap((name) => (name in row ? [[name, row[name]]] : [])))]
}
/** As JSON spells them: it knows no −0. */
const asJson = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value))

describe('the rows that a state is made of', () => {
  test('have the columns that it needs and their whole text, whatever the texts in them look like', () => {
    const parser = new StateRowParser()
    fc.assert(
      fc.property(rows, (made) => {
        const texts: Buffer[] = []
        const read = parser.parse(payloadOf(made), texts).map(columnsOf)
        expect(asJson(read)).toEqual(asJson(made.map(columnsOf)))
        expect(texts.map((text) => JSON.parse(text.toString()))).toEqual(asJson(made.map(([, row]) => row)))
      }),
      { numRuns: 800 },
    )
  })

  test('make the same state as all of their columns', () => {
    fc.assert(
      fc.property(fc.array(rows, { maxLength: 8 }), (commits) => {
        const [whole, brief] = [
          new StoreState({ cooldownKeptMs: 600_000, labelsDelayMs: 0 }),
          new StoreState({ cooldownKeptMs: 600_000, labelsDelayMs: 0 }),
        ]
        const parser = new StateRowParser()
        for (const [index, made] of commits.entries()) {
          const commit = { lsn: index + 1, knownAtMs: 1_000 + index }
          applyCommit(whole, { ...commit, rows: asJson(made) })
          applyCommit(brief, { ...commit, rows: parser.parse(payloadOf(made)) })
        }
        expect(recoverFrom(brief)).toEqual(recoverFrom(whole))
        expect([...brief.rowTotals.entries()]).toEqual([...whole.rowTotals.entries()])
      }),
      { numRuns: 120 },
    )
  })
})
