// Commands that open a stopped folder leave withheld labels and cooldowns as they are, and a server with another delay shows each once.
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../../src/lib/time.ts'
import { AGING_COMMITS_MIN, STATE_AGE_MS_MAX } from '../../../src/store/limits.ts'
import type { Store } from '../../../src/store/store.ts'
import { clockOf } from '../../support/clock.ts'
import { runCommand } from '../../support/terminal.ts'
import { openTestStore, removeFolder, submission, temporaryFolder } from '../support.ts'

let folder: string
let dataDir: string
beforeEach(() => {
  folder = temporaryFolder()
  dataDir = join(folder, 'data')
})
afterEach(() => removeFolder(folder))

const open = (labelsDelayMs: number, nowMs: number): Promise<Store> =>
  openTestStore(dataDir, { cooldownMs: DAY_MS, labelsDelayMs, clock: clockOf(() => nowMs) })
const labels = { mint: 'mint-1', sentiment: 'bearish', score: 9 }
const WITHHELD = {
  coverage: [{ mint: 'mint-1', count: 1, lastSentiment: null, lastScore: null }],
  recentLabels: [expect.objectContaining(labels)],
  cooldowns: [expect.objectContaining({ mint: 'mint-1' })],
}
const SHOWN = { coverage: [{ mint: 'mint-1', lastSentiment: 'bearish', lastScore: 9 }], recentLabels: [] }

test('backup and lake repair of a stopped folder neither show withheld labels nor lose them, and keep cooldowns', {
  tags: 'drill',
}, async () => {
  const nowMs = Date.now()
  const server = await open(HOUR_MS, nowMs)
  await server.commit(submission('an_1', { ...labels, submitted_at: nowMs }))
  await server.close()
  const out = join(folder, 'backup')
  const commands = [
    ['backup', '--data-dir', dataDir, '--out', out],
    ['lake', 'repair', '--data-dir', dataDir],
  ]
  for (const command of commands) {
    const { code, err } = await runCommand(command, {})
    expect([code, err]).toEqual([0, ''])
  }
  for (const copy of [out, dataDir]) {
    const store = await openTestStore(copy, { clock: clockOf(() => nowMs + 1_000) })
    expect(store.recovered).toMatchObject(WITHHELD)
    await store.close()
  }
  // One commit lets a part of the delay pass at most.
  let laterMs = nowMs
  for (let commits = 0; commits <= AGING_COMMITS_MIN; commits++) {
    laterMs += HOUR_MS / AGING_COMMITS_MIN
    const later = await open(HOUR_MS, laterMs)
    await later.commit(submission(`an_later_${commits}`, { mint: 'mint-2', submitted_at: laterMs }))
    await later.flushLake()
    await later.close()
  }
  const store = await open(HOUR_MS, laterMs)
  expect(store.recovered.coverage).toContainEqual(expect.objectContaining(SHOWN.coverage[0]))
  await store.close()
})

test('a server that is started with a shorter delay shows what has waited long enough, also after a start with a longer one', {
  tags: 'drill',
}, async () => {
  const nowMs = Date.now()
  const first = await open(DAY_MS, nowMs)
  await first.commit(submission('an_1', { ...labels, submitted_at: nowMs }))
  await first.close()
  const second = await open(DAY_MS, nowMs + HOUR_MS)
  await second.commit(submission('an_2', { mint: 'mint-2', submitted_at: nowMs + HOUR_MS }))
  expect(second.recovered).toMatchObject(WITHHELD)
  await second.close()
  for (const delayMs of [HOUR_MS / 2, DAY_MS]) {
    const store = await open(delayMs, nowMs + HOUR_MS)
    expect(store.recovered.coverage[0]).toMatchObject(SHOWN.coverage[0])
    expect(store.recovered.recentLabels).toEqual([expect.objectContaining({ analysisId: 'an_2' })])
    await store.close()
  }
})

test('no setting allows a longer time than is assumed of a folder that names none', async () => {
  const { SETTINGS } = await import('../../../src/config/settings.ts')
  const { labelsDelayMs, submitLimits } = SETTINGS
  const settings = [[labelsDelayMs, ''] as const, [submitLimits, 'cooldown-ms='] as const]
  for (const [setting, name] of settings) {
    expect(setting.schema.safeParse(`${name}${STATE_AGE_MS_MAX}`).success).toBe(true)
    expect(setting.schema.safeParse(`${name}${STATE_AGE_MS_MAX + 1}`).success).toBe(false)
  }
})
