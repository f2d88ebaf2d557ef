// Flushes that overlap: the server gives one up after a time and asks again, while the disk still holds up the first.

import { expect, test } from 'vitest'
import { openLog } from '../../../src/store/log/log.ts'
import { logFolder } from '../../../src/store/paths.ts'
import { openLakeStore } from '../../../src/store/process/open-lake-store.ts'
import type { LakeProcessOptions } from '../../../src/store/process/protocol.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import { encodeWrite } from '../../../src/store/rows/row-encoder.ts'
import { clockOf } from '../../support/clock.ts'
import {
  lakeGlob,
  NOON_MS,
  quietLog,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
} from '../support.ts'

test('a flush that is asked for while another runs waits for it: each commit is in the lake once', async () => {
  const dataDir = temporaryFolder()
  const logId = 'test'
  const log = await openLog(
    {
      ...{ folder: logFolder(dataDir), logId, clock: clockOf(() => NOON_MS), log: quietLog },
      flushed: { lsn: 0, knownAtMs: 0 },
    },
    () => {},
  )
  for (let i = 0; i < 100; i++)
    await log.append(submission(`an_${i}`).map((write) => encodeWrite(write, null)))
  await log.seal()
  const options: LakeProcessOptions = {
    ...{
      dataDir,
      logId,
      runId: 'run',
      lakeGraceMs: 0,
      retain: KEEP_FOR_EVER,
      diskReserveMb: 0,
      provenance: null,
      crash: null,
    },
    ages: { cooldownKeptMs: 0, labelsDelayMs: 0 },
  }
  const nothing = () => {}
  const { store } = await openLakeStore(
    { options, failpoint: nothing, log: nothing, onTrouble: nothing },
    NOON_MS,
  )
  const ask = { nowMs: NOON_MS, throughLsn: 100 }
  await Promise.all([store.flusher.flush(ask), store.flusher.flush(ask)])
  await store.database.close()
  await log.close()
  expect(await readSql(`SELECT count(*)::INT AS rows FROM ${lakeGlob(dataDir, 'training')}`)).toEqual([
    { rows: 100 },
  ])
  removeFolder(dataDir)
})
