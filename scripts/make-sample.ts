// In: nothing. Out: data/samples/v1, the frozen sample of the lake (`node scripts/make-sample.ts`).
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runSample } from './sample/run.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'mintlake-sample-'))
const report = await runSample({
  dataDir,
  seed: 20_251_103,
  startMs: Date.UTC(2025, 10, 3, 6),
  hours: 40,
  agentHours: 28,
  tokens: 60,
  tradesPerSecond: 0.08,
})
console.log(dataDir, report.answers)
