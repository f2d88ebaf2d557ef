// The state after random commits is the same however often it was saved and loaded in between.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Row, TableName } from '../../../src/schema/tables.ts'
import { transaction } from '../../../src/store/duckdb/database.ts'
import { duckdb } from '../../../src/store/duckdb/duckdb.ts'
import { AGING_COMMITS_MIN, STATE_CHUNK_BYTES, STATE_PIECE_ENTRIES } from '../../../src/store/limits.ts'
import { moveToChunks } from '../../../src/store/state/move-to-chunks.ts'
import { readState, restoreState } from '../../../src/store/state/read-state.ts'
import { recoverFrom } from '../../../src/store/state/recovered.ts'
import { applyCommit, type CommitRecord, type StateAges, StoreState } from '../../../src/store/state/state.ts'
import { loadPosition, saveState } from '../../../src/store/state/state-database.ts'
import { CREATE_STATE } from '../../../src/store/state/state-sql.ts'

const OPTIONS = { cooldownKeptMs: 600_000, labelsDelayMs: 600_000 }
const DAY_MS = 86_400_000
const START_MS = Date.UTC(2026, 0, 1)

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mintlake-state-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const agentId = fc.constantFrom('ag_1', 'ag_2', 'ag_3')
const mint = fc.constantFrom('A', 'B', 'C', 'D')
const atMs = fc.integer({ min: START_MS, max: START_MS + DAY_MS })
const keyHash = fc.constantFrom('h1', 'h2')
const event = (kind: fc.Arbitrary<string>, data: fc.Arbitrary<object>) =>
  fc.record({ agent_id: agentId, at: atMs, kind, data: data.map((value) => JSON.stringify(value)) })

const placed = (table: TableName, row: fc.Arbitrary<Row>) => row.map((value) => [table, value] as const)
const submissionRow = fc.record({
  analysis_id: fc.uuid(),
  outcome: fc.constantFrom('validated', 'unvalidated'),
  agent_id: agentId,
  mint,
  submitted_at: atMs,
  sentiment: fc.constantFrom('bullish', 'bearish'),
  score: fc.integer({ min: 0, max: 100 }),
})
const anyRow = fc.oneof(
  placed('training', submissionRow),
  placed('rejections', submissionRow),
  placed(
    'xp_ledger',
    fc.record({
      agent_id: agentId,
      kind: fc.constantFrom('analysis', 'trade'),
      xp: fc.constantFrom(17.5, 50),
    }),
  ),
  placed('submit_attempts', fc.record({ agent_id: agentId, at: atMs })),
  placed(
    'agents',
    fc.record({ agent_id: agentId, name: fc.string(), type: fc.constant('agent'), created_at: atMs }),
  ),
  placed(
    'agent_keys',
    fc.record({ key_hash: keyHash, key_prefix: fc.constant('ps_'), agent_id: agentId, created_at: atMs }),
  ),
  placed('agent_events', event(fc.constant('profile'), fc.record({ name: fc.string({ unit: 'grapheme' }) }))),
  placed('agent_events', event(fc.constant('key_expires'), fc.record({ keyHash, atMs }))),
  placed('agent_events', event(fc.constantFrom('key_unused', 'key_used'), fc.record({ keyHash }))),
  placed(
    'agent_events',
    event(fc.constantFrom('suspended', 'banned', 'unbanned'), fc.record({ untilMs: atMs })),
  ),
  placed(
    'idempotency',
    fc.record({
      agent_id: agentId,
      idempotency_key: fc.constantFrom('k1', 'k2'),
      body_hash: fc.string(),
      status: fc.constant(201),
      body: fc.string(),
      at: atMs,
    }),
  ),
)
const commits = fc
  .array(
    fc.record({
      rows: fc.array(anyRow, { minLength: 1, maxLength: 4 }),
      waitMs: fc.constantFrom(1, 30_000, 700_000, 2 * DAY_MS),
    }),
    {
      maxLength: 40,
    },
  )
  .map((made) => {
    let knownAtMs = START_MS
    return made.map(({ rows, waitMs }, index): CommitRecord => {
      knownAtMs += waitMs
      return { lsn: index + 1, knownAtMs, rows }
    })
  })

async function withDatabase<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const instance = await duckdb.DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    for (const statement of CREATE_STATE) await connection.run(statement)
    return await work(connection)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** As a start of the server does. */
const loadWhole = async (connection: DuckDBConnection, ages: StateAges = OPTIONS): Promise<StoreState> =>
  restoreState(await loadPosition(connection), readState(connection), ages)

describe('a state', () => {
  test('counts outcomes, and shows of each mint the latest labels that are old enough', () => {
    fc.assert(
      fc.property(commits, (records) => {
        const state = new StoreState(OPTIONS)
        for (const record of records) applyCommit(state, record)
        const { coverage, outcomeCounts, recentLabels } = recoverFrom(state)
        // One commit lets a quarter of the delay pass at most.
        let agedMs = 0
        const aged = records.map((record, index) => {
          agedMs += Math.min(
            record.knownAtMs - (records[index - 1]?.knownAtMs ?? 0),
            OPTIONS.labelsDelayMs / 4,
          )
          return { ...record, agedMs }
        })
        const rows = aged.flatMap((record) =>
          record.rows.map(([table, row]) => ({
            ...row,
            table,
            isOld: record.agedMs <= agedMs - OPTIONS.labelsDelayMs,
          })),
        )
        const examples = rows.filter(({ table }) => table === 'training')
        expect(recentLabels.map(({ analysisId }) => analysisId)).toEqual(
          examples.filter(({ isOld }) => !isOld).map((row) => Reflect.get(row, 'analysis_id')),
        )
        for (const { mint, count, lastSentiment, lastScore } of coverage) {
          const own = examples.filter((row) => Reflect.get(row, 'mint') === mint)
          const shown = own.findLast(({ isOld }) => isOld) ?? { sentiment: null, score: null }
          expect(count).toBe(own.length)
          expect({ sentiment: lastSentiment, score: lastScore }).toMatchObject({
            sentiment: Reflect.get(shown, 'sentiment'),
            score: Reflect.get(shown, 'score'),
          })
        }
        for (const { agentId: agent, ...counts } of outcomeCounts) {
          const own = rows.filter((row) => Reflect.get(row, 'agent_id') === agent)
          const of = (outcome: string) =>
            own.filter((row) => row.table === 'training' && Reflect.get(row, 'outcome') === outcome).length
          const rejected = own.filter((row) => row.table === 'rejections').length
          expect(counts).toEqual({ validated: of('validated'), unvalidated: of('unvalidated'), rejected })
        }
      }),
    )
  })

  test('is the same whether it was saved and loaded after any commit, or never', async () => {
    await fc.assert(
      fc.asyncProperty(
        commits,
        fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
        async (records, savedAfter) => {
          const straight = new StoreState(OPTIONS)
          for (const record of records) applyCommit(straight, record)
          const loaded = await withDatabase(async (connection) => {
            let state = new StoreState(OPTIONS)
            for (const [index, record] of records.entries()) {
              applyCommit(state, record)
              if (!savedAfter[index]) continue
              await transaction(connection, () => saveState(connection, state, folder))
              state = await loadWhole(connection)
            }
            return state
          })
          expect(recoverFrom(loaded)).toEqual(recoverFrom(straight))
          expect([loaded.lsn, loaded.knownAtMs]).toEqual([straight.lsn, straight.knownAtMs])
        },
      ),
      { numRuns: 12 },
    )
  })

  test('keeps no saved chunk whose entries have all ended, and at most as many entries as a limit needs', async () => {
    await withDatabase(async (connection) => {
      const state = new StoreState({ ...OPTIONS, cooldownKeptMs: 60_000 })
      const save = () => transaction(connection, () => saveState(connection, state, folder))
      for (let lsn = 1; lsn <= 30; lsn++) {
        const row = { agent_id: 'ag_1', mint: `mint-${lsn}`, submitted_at: 5 }
        applyCommit(state, { lsn, knownAtMs: START_MS + lsn * 10_000, rows: [['rejections', row]] })
        await save()
      }
      const held = async () =>
        (
          await connection.runAndReadAll(
            'SELECT table_name, count(*)::INT, sum(entry_count)::INT FROM state_chunks GROUP BY 1 ORDER BY 1',
          )
        ).getRowsJson()
      expect(await held()).toEqual([
        ['cooldowns', 6, 6],
        ['strikes', 30, 30],
      ])
      Object.assign(state.ageLimits.strikes, { entriesMax: 4 })
      applyCommit(state, { lsn: 31, knownAtMs: START_MS + 310_000, rows: [] })
      await save()
      expect(await held()).toEqual([
        ['cooldowns', 5, 5],
        ['strikes', 4, 4],
      ])
    })
  })

  test('that an earlier version saved entry by entry is the same, before and after its entries are moved', async () => {
    await withDatabase(async (connection) => {
      const entries = [
        ['submitAttempts', '3.1', 3, { agentId: 'ag_1', atMs: 990, knownAtMs: 1_000 }],
        ['cooldowns', 'ag_1 A', 3, { agentId: 'ag_1', mint: 'A', atMs: 990, knownAtMs: 1_000 }],
        ['strikes', '3.0', 4, { agentId: 'ag_1', atMs: 991, knownAtMs: 1_000 }],
        [
          'recentLabels',
          'an_1',
          5,
          { mint: 'A', sentiment: 'bullish', score: 7, atMs: 990, knownAtMs: 1_000 },
        ],
        ['mintTotals', 'A', 5, { count: 1, lastSentiment: '', lastScore: 0 }],
      ] as const
      for (const [table, key, place, value] of entries)
        await connection.run('INSERT INTO state_entries VALUES ($table, $key, $place, $value)', {
          table,
          key,
          place,
          value: JSON.stringify(value),
        })
      await connection.run('UPDATE state_position SET lsn = 5, known_at_ms = 1000')
      const read = async () => recoverFrom(await loadWhole(connection))
      const before = await read()
      expect(before).toMatchObject({
        submitAttempts: [{ agent_id: 'ag_1', at: 990 }],
        cooldowns: [{ agentId: 'ag_1', mint: 'A', atMs: 990 }],
        strikes: [{ agentId: 'ag_1', atMs: 991 }],
        recentLabels: [{ analysisId: 'an_1', mint: 'A', sentiment: 'bullish', score: 7, atMs: 990 }],
        coverage: [{ mint: 'A', count: 1 }],
      })
      await moveToChunks(connection)
      expect(await read()).toEqual(before)
      const left = await connection.runAndReadAll('SELECT DISTINCT table_name FROM state_entries ORDER BY 1')
      expect(left.getRowsJson()).toEqual([['marks'], ['mintTotals']])
      await moveToChunks(connection)
      expect(await read()).toEqual(before)
    })
  })

  test('that was saved in chunks of megabytes is the same once they are cut, and is then read in small pieces', async () => {
    await withDatabase(async (connection) => {
      const labels = (index: number) =>
        `[${START_MS + index},{"analysisId":"an_${index}","mint":"A","sentiment":"bullish","score":7,"atMs":${index}}]`
      for (let from = 0; from < 30_000; from += 10_000) {
        const entries = Array.from({ length: 10_000 }, (_, index) => labels(from + index)).join(',')
        const sql = `INSERT INTO state_chunks VALUES ('recentLabels', ${from}, ${START_MS + from + 10_000}, 10000, $entries)`
        await connection.run(sql, { entries })
      }
      await connection.run(`UPDATE state_position SET lsn = 30000, known_at_ms = ${START_MS + 30_000}`)
      const before = recoverFrom(await loadWhole(connection))
      expect(before.recentLabels).toHaveLength(30_000)
      await moveToChunks(connection)
      expect(recoverFrom(await loadWhole(connection))).toEqual(before)
      let entryCount = 0
      for await (const piece of readState(connection)) {
        expect(piece.entryCount).toBeLessThanOrEqual(STATE_PIECE_ENTRIES)
        entryCount += piece.entryCount
      }
      expect(entryCount).toBe(30_000)
      const longest = await connection.runAndReadAll('SELECT max(length(entries)) FROM state_chunks')
      expect(Number(longest.getRowsJson()[0][0])).toBeLessThanOrEqual(STATE_CHUNK_BYTES + 200)
    })
  })

  test('that was saved with other ages shows labels once, when the ages of the run say so, and forgets none', async () => {
    const [short, long] = [
      { ...OPTIONS, labelsDelayMs: 60_000 },
      { ...OPTIONS, labelsDelayMs: DAY_MS },
    ]
    const submission = (mint: string) => ({
      ...{ analysis_id: `an_${mint}`, agent_id: 'ag_1', mint, submitted_at: START_MS },
      ...{ sentiment: 'bullish', score: 5, outcome: 'validated' },
    })
    /** Of the time that entries are kept, one commit lets a part pass: a single one may have been made by a wrong clock. */
    const pass = (state: StoreState, ms: number): void => {
      const [{ lsn, knownAtMs: fromMs }, commits] = [state, 4 * AGING_COMMITS_MIN]
      const stepMs = (START_MS + ms - fromMs) / commits
      for (let commit = 1; commit <= commits; commit++)
        applyCommit(state, { lsn: lsn + commit, knownAtMs: fromMs + commit * stepMs, rows: [] })
    }
    const shown = (state: StoreState) =>
      recoverFrom(state).coverage.map(({ mint, lastScore }) => [mint, lastScore])
    for (const [savedWith, expected] of [
      [long, [null, null]],
      [short, [5, null]],
    ] as const) {
      await withDatabase(async (connection) => {
        const state = new StoreState(savedWith)
        applyCommit(state, { lsn: 1, knownAtMs: START_MS, rows: [['training', submission('A')]] })
        pass(state, 90_000)
        const { lsn, knownAtMs } = state
        applyCommit(state, { lsn: lsn + 1, knownAtMs, rows: [['training', submission('B')]] })
        await transaction(connection, () => saveState(connection, state, folder))
        const asSaved = await loadWhole(connection, savedWith)
        expect(shown(asSaved).map(([, score]) => score)).toEqual(expected)
        expect(shown(await loadWhole(connection, short))).toEqual([
          ['A', 5],
          ['B', null],
        ])
        const loaded = await loadWhole(connection, short)
        pass(loaded, 150_000)
        const both = [
          ['A', 5],
          ['B', 5],
        ]
        expect(shown(loaded)).toEqual(both)
        // What was shown stays so under a longer delay; what was not is shown later.
        const later = await loadWhole(connection, long)
        pass(later, 2 * DAY_MS)
        expect(shown(later)).toEqual(both)
      })
    }
  })

  test('is not changed by a commit that was applied before', () => {
    fc.assert(
      fc.property(commits, fc.nat(), (records, from) => {
        const [once, again] = [new StoreState(OPTIONS), new StoreState(OPTIONS)]
        for (const record of records) applyCommit(once, record)
        for (const record of records) applyCommit(again, record)
        for (const record of records.slice(from % (records.length + 1))) applyCommit(again, record)
        expect(recoverFrom(again)).toEqual(recoverFrom(once))
      }),
    )
  })
})

describe('what a state keeps', () => {
  const commit = (lsn: number, knownAtMs: number, ...rows: (readonly [TableName, Row])[]): CommitRecord => ({
    lsn,
    knownAtMs,
    rows,
  })
  const submission = (over: Row = {}): Row => ({
    agent_id: 'ag_1',
    mint: 'A',
    submitted_at: 5,
    sentiment: 'bullish',
    score: 1,
    ...over,
  })

  test('of a submission is the wall clock time of its request, whatever time its market had', () => {
    const state = new StoreState(OPTIONS)
    applyCommit(
      state,
      commit(
        1,
        1_000,
        ['training', submission({ received_at: 990 })],
        ['submit_attempts', { agent_id: 'ag_1', at: 990 }],
      ),
    )
    applyCommit(state, commit(2, 2_000, ['rejections', submission({ mint: 'B' })]))
    const { cooldowns, strikes, submitAttempts } = recoverFrom(state)
    expect(cooldowns).toEqual([
      { agentId: 'ag_1', mint: 'A', atMs: 990 },
      { agentId: 'ag_1', mint: 'B', atMs: 2_000 },
    ])
    expect(strikes).toEqual([{ agentId: 'ag_1', atMs: 2_000 }])
    expect(submitAttempts).toEqual([{ agent_id: 'ag_1', at: 990 }])
  })

  test('of attempts, cooldowns, strikes and answers ends with the span of their limit', () => {
    const state = new StoreState(OPTIONS)
    const answer = { agent_id: 'ag_1', idempotency_key: 'k', body_hash: 'h', status: 201, body: '{}', at: 1 }
    applyCommit(
      state,
      commit(
        1,
        1_000,
        ['rejections', submission()],
        ['submit_attempts', { agent_id: 'ag_1', at: 1 }],
        ['idempotency', answer],
      ),
    )
    const left = () => [
      state.submitAttempts.size,
      state.cooldowns.size,
      state.idempotency.size,
      state.strikes.size,
    ]
    let lsn = 1
    /** Commits until then, each `stepMs` after the one before at most. */
    const at = (untilMs: number, stepMs: number) => {
      for (let ms = state.knownAtMs; ms < untilMs; ) {
        ms = Math.min(ms + stepMs, untilMs)
        applyCommit(state, commit(++lsn, ms))
      }
    }
    at(60_999, 5_000)
    expect(left()).toEqual([1, 1, 1, 1])
    at(61_000, 5_000)
    expect(left()).toEqual([0, 1, 1, 1])
    at(601_000, 60_000)
    expect(left()).toEqual([0, 0, 1, 1])
    at(1_000 + DAY_MS, DAY_MS / 10)
    expect(left()).toEqual([0, 0, 0, 1])
    at(1_000 + 30 * DAY_MS, DAY_MS)
    expect(left()).toEqual([0, 0, 0, 0])
  })

  test('does not end by one commit of a clock that was ahead', () => {
    const answer = {
      agent_id: 'ag_1',
      idempotency_key: 'k',
      body_hash: 'h',
      status: 201,
      body: '{}',
      at: 990,
    }
    const rows: [TableName, Row][] = [
      ['training', submission({ received_at: 990 })],
      ['rejections', submission({ received_at: 990 })],
      ['submit_attempts', { agent_id: 'ag_1', at: 990 }],
      ['idempotency', answer],
    ]
    const keptAfter = (...timesMs: number[]) => {
      const state = new StoreState(OPTIONS)
      applyCommit(state, commit(1, 1_000, ...rows))
      for (const [index, ms] of timesMs.entries()) applyCommit(state, commit(2 + index, ms))
      return recoverFrom(state)
    }
    expect(keptAfter(40 * DAY_MS, 40 * DAY_MS + 1)).toEqual(keptAfter())
  })

  test('of sanctions is their order by commit, not by the clock, from the last time that they were lifted', () => {
    const state = new StoreState(OPTIONS)
    const sanction = (kind: string, at: number): [TableName, Row] => [
      'agent_events',
      { agent_id: 'ag_1', at, kind, data: '{"untilMs":null}' },
    ]
    applyCommit(state, commit(1, 1_000, sanction('suspended', 1_000)))
    applyCommit(state, commit(2, 2_000, sanction('unbanned', 2_000)))
    applyCommit(state, commit(3, 3_000, sanction('banned', 500)))
    expect(recoverFrom(state).agentEvents.map(({ kind }) => kind)).toEqual(['unbanned', 'banned'])
  })
})
