// Compaction on a full disk, where the manifest cannot be written.

import { existsSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { makeFolder } from '../../../src/lib/files.ts'
import { Compactor } from '../../../src/store/compaction/compactor.ts'
import { withScratchDatabase } from '../../../src/store/duckdb/scratch-database.ts'
import { CLOCK_KNOWN, CREATE_MANIFEST } from '../../../src/store/duckdb/sql.ts'
import type { Lake } from '../../../src/store/lake/lake.ts'
import { openLinks } from '../../../src/store/lake/links.ts'
import { insertFiles, markReplaced } from '../../../src/store/lake/manifest.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import { NOON_MS, removeFolder, temporaryFolder } from '../support.ts'

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
