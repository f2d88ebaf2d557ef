// A process that writes a market of one day with two submissions to the lake and labels them in two steps, perhaps up to a crash
// point. A second run closes the same bars again.
import type { CrashPoint } from '../../../src/store/process/crash-points.ts'
import { analysisIdAt, closedBar, NOON_MS, openTestStore, submission } from '../support.ts'

const [folder, crash] = process.argv.slice(2)
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/** Ids contain the time, which selects the date to look in. */
const [EARLY_ID, LATE_ID] = [analysisIdAt(NOON_MS), analysisIdAt(NOON_MS + 1)]

const store = await openTestStore(
  folder,
  crash === '' ? {} : { crash: { at: crash as CrashPoint, withServer: true } },
)

for (const [id, atMs] of [
  [EARLY_ID, NOON_MS + 30_000],
  [LATE_ID, NOON_MS + 90 * MINUTE_MS],
] as const) {
  if ((await store.analysis(id)) !== null) continue
  await store.commit(submission(id, { mint: 'mint-1', submitted_at: atMs, price_at_submission_usd: 2 }))
}

// A second run closes the same bars again.
for (let minute = 0; minute < 20 * 60; minute += 7) {
  const t = NOON_MS + minute * MINUTE_MS
  store.bars.add(closedBar({ t, c: 2 + Math.sin(minute), n: minute + 1, closedAtMs: t + 2 * MINUTE_MS }))
}
store.bars.completeTo(NOON_MS + 10 * HOUR_MS)
await store.bars.flush()
await store.flushLake()
store.bars.completeTo(NOON_MS + 30 * HOUR_MS)
await store.bars.flush()
await store.flushLake()
await store.flushLake()
await store.close()
