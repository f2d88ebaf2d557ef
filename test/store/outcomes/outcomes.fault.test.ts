// Processes killed while outcomes are computed and recorded: the outcomes are the same as without a kill, each recorded once.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CRASH_POINTS, type CrashPoint } from '../../../src/store/process/crash-points.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { analysisIdAt, lakeGlob, NOON_MS, readSql, removeFolder, temporaryFolder } from '../support.ts'

const CHILD = fileURLToPath(new URL('./outcomes.child.ts', import.meta.url))
const [EARLY_ID, LATE_ID] = [analysisIdAt(NOON_MS), analysisIdAt(NOON_MS + 1)]
const folders: string[] = []

const newFolder = (): string => {
  folders.push(temporaryFolder())
  return folders.at(-1)!
}

async function run(folder: string, crashAt: CrashPoint | '' = ''): Promise<string | number | null> {
  const child = spawn(process.execPath, [CHILD, folder, crashAt], { stdio: 'inherit' })
  const [code, signal] = await once(child, 'exit')
  return signal ?? code
}

/** All rows of the files without the time of writing, including earlier rows of the same submission; and the bars. */
async function found(folder: string) {
  const outcomes = await readSql(
    `SELECT * EXCLUDE (known_at, dt) FROM ${lakeGlob(folder, 'outcomes')} ORDER BY analysis_id, label_available_at`,
  )
  const bars = await readSql(`SELECT * EXCLUDE (known_at, dt) FROM ${lakeGlob(folder, 'bars')} ORDER BY t`)
  const latest = await readSql(
    'SELECT analysis_id, labelled_to FROM lake.outcomes ORDER BY 1',
    `ATTACH '${folder}/lake/catalog.duckdb' AS lake (READ_ONLY)`,
  )
  return { outcomes, bars, latest }
}

let undisturbed: Awaited<ReturnType<typeof found>>
beforeAll(async () => {
  const folder = newFolder()
  expect(await run(folder)).toBe(0)
  undisturbed = await found(folder)
}, 60_000)
afterAll(() => folders.forEach(removeFolder))

test('outcomes are recorded horizon by horizon, and the catalog shows the newest of each submission', () => {
  const steps = undisturbed.outcomes.map(({ analysis_id, labelled_to }) => `${analysis_id} ${labelled_to}`)
  const horizons = ['5m', '15m', '1h', '6h', '24h']
  expect(steps).toEqual([EARLY_ID, LATE_ID].flatMap((id) => horizons.map((name) => `${id} ${name}`)))
  expect(undisturbed.latest).toEqual([
    { analysis_id: EARLY_ID, labelled_to: '24h' },
    { analysis_id: LATE_ID, labelled_to: '24h' },
  ])
  const labels = undisturbed.outcomes.map((row) => [row.fwd_ret_5m, row.fwd_ret_6h, row.dead_24h])
  expect(labels[0]).toEqual([expect.any(Number), null, null])
  expect(labels[3]).toEqual([labels[0][0], expect.any(Number), null])
  expect(labels[4]).toEqual([labels[0][0], labels[3][1], false])
})

test('a process that is killed at every step records the same outcomes once it runs to the end', {
  tags: 'drill',
  timeout: 180_000,
}, async () => {
  const folder = newFolder()
  for (const point of CRASH_POINTS.filter((each) => each.startsWith('outcomes')))
    expect(`${point} ${await run(folder, point)}`).toBe(`${point} SIGKILL`)
  expect(await run(folder)).toBe(0)
  expect(await found(folder)).toEqual(undisturbed)
  const { scope, findings } = await verifyLake({ dataDir: folder, nowMs: NOON_MS })
  expect({ scope, findings }).toEqual({ scope: 'whole', findings: [] })
})
