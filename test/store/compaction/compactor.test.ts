// Compaction on a disk that is, or was, full.

import { existsSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { makeFolder } from '../../../src/lib/files.ts'
import { Compactor } from '../../../src/store/compaction/compactor.ts'
import { openDatabase } from '../../../src/store/duckdb/database.ts'
import { withScratchDatabase } from '../../../src/store/duckdb/scratch-database.ts'
import { CLOCK_KNOWN, CREATE_MANIFEST } from '../../../src/store/duckdb/sql.ts'
import { type Lake, openLake } from '../../../src/store/lake/lake.ts'
import { openLinks } from '../../../src/store/lake/links.ts'
import { insertFiles, markReplaced } from '../../../src/store/lake/manifest.ts'
import { MERGE_FILES_MIN } from '../../../src/store/limits.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import { loadPosition } from '../../../src/store/state/state-database.ts'
import {
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
} from '../support.ts'

const FILE = { table: 'training', date: '2025-06-01', first: 1, last: 2, rows: 2, bytes: 1, sha256: null }

test('replaced files are deleted even when expiring dates and merging fail', async () => {
  const lakeDir = temporaryFolder()
  const links = await openLinks(lakeDir)
  const path = links.pathOf(FILE)
  await makeFolder(dirname(path))
  writeFileSync(path, 'x')
  await withScratchDatabase(':memory:', {}, async (connection) => {
    for (const statement of CREATE_MANIFEST) await connection.run(statement)
    await insertFiles(connection, [FILE], 0)
    await markReplaced(connection, [FILE], 0)
    await connection.run(`DROP TABLE ${CLOCK_KNOWN}`)
    const maintenance = { run: <T>(task: (of: typeof connection) => Promise<T>) => task(connection) }
    const lake = {
      lakeDir,
      links,
      failpoint: () => {},
      database: { maintenance },
      settle: async () => {},
      listLiveFiles: async () => [],
      checkFiles: async () => 0,
    }
    const compactor = new Compactor(lake as unknown as Lake, {
      lakeGraceMs: 0,
      retain: KEEP_FOR_EVER,
      diskReserveMb: 0,
    })
    await expect(compactor.compact({ wallMs: NOON_MS, monotonicMs: 0 }, 0)).rejects.toThrow(CLOCK_KNOWN)
  })
  expect(existsSync(path)).toBe(false)
  removeFolder(lakeDir)
})

test('a recovery that a full disk has put off removes no file that a merge writes meanwhile', async () => {
  const dataDir = temporaryFolder()
  const store = await openTestStore(dataDir)
  for (let i = 0; i < MERGE_FILES_MIN; i++) {
    await store.commit(submission(`an_${i}`))
    await store.flushLake()
  }
  await store.close()
  const database = await openDatabase(dataDir)
  let isFull = true
  let settling: Promise<void> | null = null
  const lake = await openLake(database, {
    log: () => {},
    onTrouble() {
      if (isFull) throw new Error('No space left on device')
    },
    // The first flush, which completes the recovery, comes while the merged file waits to be listed.
    failpoint(point) {
      if (point === 'merge:published') settling ??= lake.settle(NOON_MS)
    },
  })
  const { lsn } = await database.maintenance.run(loadPosition)
  await expect(lake.recover({ flushedLsn: lsn, listFrom: 'manifest' }, NOON_MS)).rejects.toThrow('No space')
  isFull = false
  const options = { lakeGraceMs: 0, retain: KEEP_FOR_EVER, diskReserveMb: 0 }
  const compactor = new Compactor(lake, options)
  await compactor.compact({ wallMs: NOON_MS, monotonicMs: 0 }, 0)
  await settling
  await compactor.compact({ wallMs: NOON_MS, monotonicMs: 0 }, 0)
  await compactor.close()
  await database.close()
  const [{ rows }] = await readSql(`SELECT count(*)::INT AS rows FROM ${lakeGlob(dataDir, 'training')}`)
  expect(rows).toBe(MERGE_FILES_MIN)
  removeFolder(dataDir)
})
