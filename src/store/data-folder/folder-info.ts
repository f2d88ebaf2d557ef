// `store.json` in the data folder: the format of the store, the identity of its log, and whether it holds simulated or real
// data. Written once, and again when the first data of a kind comes.
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ulid } from 'ulid'
import { z } from 'zod'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { syncPathNow } from '../../lib/files.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { howToRepair, invalid, StoreError, unavailable } from '../errors.ts'
import { folderInfoPath } from '../paths.ts'
import type { Provenance } from '../types.ts'

/** The format that this version writes. A folder of a higher format is refused. */
export const STORE_FORMAT = 2

const schema = z.object({
  format: z.number().int().min(1),
  logId: z.string().min(1).max(64),
  createdAtMs: z.number(),
  /** Whether simulated data, and whether real data, has ever come to this folder. */
  holdsSimulated: z.boolean(),
  holdsReal: z.boolean(),
})
export type FolderInfo = z.infer<typeof schema>

/** Null for a new folder. Throws `invalid` where the file is damaged or this version cannot use the folder. */
export function readFolderInfo(dataDir: string): FolderInfo | null {
  const path = folderInfoPath(dataDir)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') {
      refuseFormat1(dataDir)
      return null
    }
    if (systemCode(error) === 'EISDIR') throw damagedInfo(dataDir)
    throw unavailable(`${path} cannot be read: ${errorMessage(error)}`)
  }
  const format = Number(/^\s*\{\s*"format":\s*(\d{1,6})\b/.exec(text)?.[1])
  if (format > STORE_FORMAT) {
    throw invalid(
      `the data folder ${dataDir} has format ${format}, which a newer version of Mintlake wrote; this one reads up to ${STORE_FORMAT}`,
    )
  }
  const info = parseFolderInfo(text)
  if (info === null) throw damagedInfo(dataDir)
  return info
}

/**
 * Version 0.1 had no `store.json`: its rows were in `mintlake.duckdb`, which no later version reads. Later ones put a short text
 * there; a database has 12 kB or more.
 */
function refuseFormat1(dataDir: string): void {
  const bytes = statSync(join(dataDir, 'mintlake.duckdb'), { throwIfNoEntry: false })?.size ?? 0
  if (bytes < 4096) return
  throw invalid(
    `the data folder ${dataDir} was written by Mintlake 0.1, which this version does not read: export its tables with that version (mintlake export), and use another --data-dir`,
  )
}

const damagedInfo = (dataDir: string): StoreError =>
  invalid(
    `${folderInfoPath(dataDir)} is damaged. ${howToRepair(dataDir)} makes it anew from what else the folder has`,
  )

/** Whether reading `store.json` failed because it is damaged. */
export const isDamagedInfo = (dataDir: string, error: unknown): boolean =>
  error instanceof StoreError && error.message === damagedInfo(dataDir).message

/** Null where the text is no description of a folder. */
export const parseFolderInfo = (text: string): FolderInfo | null =>
  safeParse(schema, parseJson(text)).data ?? null

/** Writes the file durably and atomically. */
export function writeFolderInfo(dataDir: string, info: FolderInfo): void {
  const path = folderInfoPath(dataDir)
  const temporary = `${path}.tmp`
  writeFileSync(temporary, `${JSON.stringify(info, null, 2)}\n`)
  syncPathNow(temporary)
  renameSync(temporary, path)
  syncPathNow(dirname(path))
}

export interface FolderUse {
  provenance: Provenance | null
  /** The folder may hold both simulated and real data. */
  isMixed: boolean
  nowMs: number
}

/** Reads `store.json`; null for a new folder. Throws `invalid` where simulated and real data would be mixed without `isMixed`. */
export function checkFolderUse(
  dataDir: string,
  { provenance, isMixed }: Omit<FolderUse, 'nowMs'>,
): FolderInfo | null {
  const found = readFolderInfo(dataDir)
  const simulated = provenance?.simulated ?? null
  const isForeign = simulated === true ? found?.holdsReal : simulated === false && found?.holdsSimulated
  if (isForeign && !isMixed) {
    const [holds, comes] = simulated ? ['real', 'simulated'] : ['simulated', 'real']
    throw invalid(
      `the data folder ${dataDir} holds ${holds} data, and this feed's is ${comes}: use another --data-dir, or --mixed true to keep both in one lake, told apart by the column simulated`,
    )
  }
  return found
}

/** Reads `store.json` after that check, or makes it for a new folder. */
export function claimFolder(dataDir: string, { nowMs, ...use }: FolderUse): FolderInfo {
  const found = checkFolderUse(dataDir, use)
  if (found !== null) return found
  const info = {
    format: STORE_FORMAT,
    logId: ulid(nowMs),
    createdAtMs: nowMs,
    holdsSimulated: false,
    holdsReal: false,
  }
  writeFolderInfo(dataDir, info)
  return info
}

/** Notes in `store.json` that the folder holds data of this kind: not before there is some, so that a start which fails does not decide
 *  what a folder is for. Throws where it cannot be written. */
export function noteProvenance(dataDir: string, { simulated }: Provenance): void {
  const info = readFolderInfo(dataDir)
  const kind = simulated ? 'holdsSimulated' : 'holdsReal'
  if (info !== null && !info[kind]) writeFolderInfo(dataDir, { ...info, [kind]: true })
}
