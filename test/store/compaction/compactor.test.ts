// Replaced files are removed even when their expiry cannot be recorded because the disk is full: removing them makes room.
import { existsSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { makeFolder } from '../../../src/lib/files.ts'
import { Compactor } from '../../../src/store/compaction/compactor.ts'
import { inScratchDatabase } from '../../../src/store/duckdb/scratch-database.ts'
import { CLOCK_KNOWN, CREATE_MANIFEST } from '../../../src/store/duckdb/sql.ts'
import type { Lake } from '../../../src/store/lake/lake.ts'
import { openLinks } from '../../../src/store/lake/links.ts'
import { insertParts, retire } from '../../../src/store/lake/manifest.ts'
import { NOON_MS, removeFolder, temporaryFolder } from '../support.ts'

const PART = { table: 'training', date: '2025-06-01', first: 1, last: 2, rows: 2, bytes: 1, sha256: null }

test('files that were replaced are removed, though no date could leave and nothing be merged', async () => {
  const lakeDir = temporaryFolder()
  const links = await openLinks(lakeDir)
  const path = links.pathOf(PART)
  await makeFolder(dirname(path))
  writeFileSync(path, 'x')
  await inScratchDatabase(':memory:', {}, async (connection) => {
    for (const statement of CREATE_MANIFEST) await connection.run(statement)
    await insertParts(connection, [PART], 0)
    await retire(connection, [PART], 0)
    await connection.run(`DROP TABLE ${CLOCK_KNOWN}`)
    const maintenance = { run: <T>(task: (of: typeof connection) => Promise<T>) => task(connection) }
    const lake = {
      lakeDir,
      links,
      database: { maintenance },
      allLive: async () => [],
      checkBeside: async () => 0,
    }
    const compactor = new Compactor(lake as unknown as Lake, {
      ...{ dataDir: lakeDir, lakeGraceMs: 0, retainDays: {}, diskReserveMb: 0 },
      ...{ failpoint: () => {}, log: () => {} },
    })
    await expect(compactor.compact({ wallMs: NOON_MS, monotonicMs: 0 }, 0)).rejects.toThrow(CLOCK_KNOWN)
  })
  expect(existsSync(path)).toBe(false)
  removeFolder(lakeDir)
})
