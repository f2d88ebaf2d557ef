// `mintlake sql --sample`, and what `mintlake sql` says of a query of labels on a young lake.
import { readdirSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { SteppedClock } from '../support/clock.ts'
import { seedToken, submission, submit } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import { openTestServer, type TestServer, temporaryFolder } from '../support/test-server.ts'

const NOON_MS = Date.UTC(2026, 5, 1, 12)
const LABELLED = 'SELECT analysis_id FROM labelled WHERE fwd_ret_24h IS NOT NULL'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer({}, { clock: new SteppedClock(NOON_MS) })
  await server.store.flushLake()
})
afterAll(() => server.remove())

const here = (sql: string) => runCommand(['sql', sql, '--format', 'csv', '--data-dir', server.dataDir])

it('the sample is queried without a lake or a server, and its copy is removed', async () => {
  // Of this test alone: others copy the sample too, at the same time.
  const copies = temporaryFolder()
  vi.stubEnv('TMPDIR', copies)
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(copies, { recursive: true })
  })
  const all = await runCommand(['sql', '--sample', 'SELECT count(*) AS n FROM training', '--format', 'csv'])
  expect(all).toEqual({ code: 0, out: 'n\n1224\n', err: '' })
  expect((await runCommand(['sql', '--sample', LABELLED, '--format', 'jsonl'])).out.split('\n').length).toBe(
    631,
  )
  expect((await runCommand(['sql', '--sample', 'SELEKT'])).code).toBe(1)
  expect(readdirSync(copies)).toEqual([])
})

it('--sample and --data-dir together are refused', async () => {
  expect(await runCommand(['sql', '--sample', 'SELECT 1', '--data-dir', server.dataDir])).toMatchObject({
    code: 2,
    err: expect.stringContaining('name two lakes'),
  })
})

it('what a query may not write is told as that, and what it may create instead', async () => {
  for (const sql of ['CREATE TABLE t AS SELECT 1', 'CREATE VIEW v AS SELECT 1', 'CREATE MACRO m(x) AS x']) {
    const { code, err } = await here(sql)
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining('the lake is read-only') })
    expect(err).toContain('CREATE TEMP TABLE')
    expect(err).not.toContain('disk')
  }
  // Nor does a text of the query make the disk read-only.
  expect(await here(`SELECT error('EROFS')`)).toEqual({
    code: 1,
    out: '',
    err: 'mintlake: Invalid Input Error: EROFS\n',
  })
  const { err } = await here('SELECT nothing AS "attached in read-only mode"')
  expect(err).toContain('"nothing" was not found')
  expect(err).not.toContain('TEMP')
  expect(await here('CREATE TEMP TABLE t AS SELECT 41 AS n; FROM t')).toMatchObject({
    code: 0,
    out: 'n\n41\n',
  })
})

it('a query of labels says when the first outcome of its horizon will be there, and only then', async () => {
  expect((await here(LABELLED)).err).toContain('this lake has no accepted submission yet; --sample')
  const key = await server.client.register()
  const answer = await submit(server.client, key, submission(await seedToken(server.client, NOON_MS)))
  expect(answer.status, answer.text).toBe(201)
  await server.store.flushLake()
  expect(await here(LABELLED)).toMatchObject({
    code: 0,
    err: expect.stringContaining(
      // A minute until the bars of the day are closed, and a flush.
      'no outcome of this lake is 24h old yet, the first will be there at 2026-06-02T12:01:10',
    ),
  })
  const recipe = `SET VARIABLE horizon = '6h'; SELECT COLUMNS('^fwd_ret_' || getvariable('horizon') || '$') FROM labelled`
  expect((await here(recipe)).err).toContain('T18:01:10')
  // A row whose label is NULL for want of time.
  expect((await here('SELECT avg(fwd_ret_1h) AS mean FROM labelled')).err).toContain('T13:01:10')
  expect((await here("SELECT mint FROM training WHERE mint = 'none'")).err).toBe('')
  const sampled = await runCommand(['sql', '--sample', `${LABELLED} AND fwd_ret_24h > 1e9`])
  expect(sampled).toMatchObject({ code: 0, err: '' })
})
