// What an operator does with a backup, by the product's own functions on real files: finishes it, restores it into another folder, repairs
// that where a byte has changed there, and starts a store on it.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Row, TableName } from '../../../../src/schema/tables.ts'
import { makeBackup, restoreBackup } from '../../../../src/store/backup/backup.ts'
import { repairFolder } from '../../../../src/store/repair-folder.ts'
import { openStore } from '../../../../src/store/store.ts'
import { readRows } from './read-lake.ts'

/** Of the restored folder, which byte changes: shares of the number of files, and of the bytes of one. */
export interface Flip {
  file: number
  place: number
  bit: number
}

export interface RestoreAsked {
  kind: 'restore'
  /** Has the folder `staged`, and gets the others. */
  folder: string
  lsn: number
  nowMs: number
  flip: Flip | null
}

export interface RestoredStore {
  rows: Record<'training' | 'rejections' | 'xp_ledger', Row[]>
  totals: readonly { agentId: string; xp: number }[]
  /** The file of which a byte has changed, below the folder. */
  flipped: string | null
  /** Sentences on what is lost. */
  told: string[]
}

const quiet = { info: () => {}, warn: () => {}, error: () => {} }

export async function restore({ folder, lsn, nowMs, flip }: RestoreAsked): Promise<RestoredStore> {
  const [staged, out, dataDir] = ['staged', 'backup', 'data'].map((name) => join(folder, name))
  const options = { nowMs, log: quiet, check: () => {} }
  const made = await makeBackup({ path: staged, lsn }, out, options)
  await restoreBackup(out, dataDir, options)
  const clock = { now: () => nowMs, monotonicMs: () => performance.now() }
  const store = { dataDir, lakeFlushMs: 3_600_000, clock, log: quiet }
  const told = made.findings.map(({ message }) => message)
  const flipped = flip === null ? null : flipByte(dataDir, flip)
  if (flipped !== null) {
    const { lost, losses, eventsLost } = await repairFolder(store)
    told.push(
      ...lost.map(({ path, reason }) => `${path}: ${reason}`),
      ...losses.map(({ sentence }) => sentence),
    )
    if (eventsLost > 0) told.push(`${eventsLost} events are lost`)
  }
  const opened = await openStore(store)
  let totals: RestoredStore['totals']
  try {
    totals = opened.recovered.xpTotals.map(({ agentId, xp }) => ({ agentId, xp }))
    await opened.caughtUp
    await opened.flushLake()
  } finally {
    await opened.close()
  }
  const rows = await readRows(dataDir)
  const of = (table: TableName): Row[] => rows[table] ?? []
  return {
    rows: { training: of('training'), rejections: of('rejections'), xp_ledger: of('xp_ledger') },
    ...{ totals, flipped, told },
  }
}

/** @returns which file it was */
function flipByte(dataDir: string, { file, place, bit }: Flip): string {
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => join(parentPath, name))
    // Of the links for a glob the files themselves are there too.
    .filter((path) => !/\/lake\/[a-z_]+\//.test(path) && statSync(path).size > 0)
    .sort()
  const chosen = files[Math.floor(file * files.length)]
  const bytes = readFileSync(chosen)
  bytes[Math.floor(place * bytes.length)] ^= 1 << bit
  writeFileSync(chosen, bytes)
  return relative(dataDir, chosen)
}
