// @module-tag drill
// The real program, killed in the middle of 200 concurrent submitters: whatever was acknowledged is there once.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, expect, it } from 'vitest'
import { seedToken, submission, submit } from '../support/submission.ts'
import { spawnServer, temporaryFolder } from '../support/test-server.ts'

const SUBMITTERS = 200
const TOKENS = 20
/** The server is killed once this many are acknowledged, while others are in flight. */
const ACKNOWLEDGED_MIN = 300
const SETTINGS = { 'submit-limits': 'rate=0,cooldown-ms=0', 'lake-flush-ms': '200' }

const dataDir = temporaryFolder()
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

async function rowsOf(sql: string): Promise<Record<string, unknown>[]> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const rows = (await connection.runAndReadAll(sql)).getRowObjectsJson() as Record<string, unknown>[]
  connection.closeSync()
  instance.closeSync()
  return rows
}

it('a killed server loses nothing that was acknowledged, and has nothing twice', async () => {
  const server = await spawnServer(SETTINGS, dataDir)
  const mints = await Promise.all(Array.from({ length: TOKENS }, () => seedToken(server.client, Date.now())))
  const keys = await Promise.all(
    Array.from({ length: SUBMITTERS }, (_, index) => server.client.register(`agent ${index}`)),
  )
  const acknowledged: string[] = []
  let reached: () => void = () => {}
  const enough = new Promise<void>((resolve) => {
    reached = resolve
  })
  let killed = false
  const submitters = keys.map(async (key, index) => {
    for (let turn = 0; !killed; turn++) {
      const answer = await submit(server.client, key, submission(mints[(index + turn) % TOKENS])).catch(
        () => null,
      )
      if (answer?.status !== 201) return
      acknowledged.push(answer.body.analysisId)
      if (acknowledged.length === ACKNOWLEDGED_MIN) reached()
    }
  })
  await enough
  await server.kill()
  killed = true
  await Promise.all(submitters)
  expect(acknowledged.length).toBeGreaterThanOrEqual(ACKNOWLEDGED_MIN)

  const again = await spawnServer(SETTINGS, dataDir)
  for (const id of acknowledged.slice(-50))
    expect((await again.client.get(`/api/v1/analysis/${id}`)).status).toBe(200)
  const { totalAnalyses } = (await again.client.get('/api/v1/analysis')).body
  const board = (await again.client.get('/api/v1/agents/leaderboard?limit=200')).body.leaderboard as {
    agentId: string
    xp: number
  }[]
  expect(await again.terminate()).toBe(0)

  const training = `read_parquet('${join(dataDir, 'lake/training/*/*.parquet')}')`
  const stored = (await rowsOf(`SELECT analysis_id AS id FROM ${training}`)).map(({ id }) => id as string)
  expect(new Set(stored).size).toBe(stored.length)
  expect(stored.length).toBe(totalAnalyses)
  const kept = new Set(stored)
  expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])

  const ledger = `read_parquet('${join(dataDir, 'lake/xp_ledger/*/*.parquet')}')`
  const totals = await rowsOf(
    `SELECT agent_id AS agent, sum(xp) AS xp, count(*)::INTEGER AS entries, count(DISTINCT analysis_id)::INTEGER AS analyses FROM ${ledger} GROUP BY 1`,
  )
  expect(totals.reduce((sum, { entries }) => sum + (entries as number), 0)).toBe(stored.length)
  for (const { entries, analyses } of totals) expect(entries).toBe(analyses)
  const ledgerXp = new Map(totals.map(({ agent, xp }) => [agent as string, xp as number]))
  for (const { agentId, xp } of board) expect(xp).toBe(ledgerXp.get(agentId))
  const [firsts] = await rowsOf(
    `SELECT max(n)::INTEGER AS n FROM (SELECT mint, count(*) FILTER (xp = 50) AS n FROM ${ledger} JOIN ${training} USING (analysis_id) GROUP BY 1)`,
  )
  expect(firsts.n).toBe(1)
})
