// In: names and places of the lake's files. Out: files that are whole or not there. Never reads a row.
// A file is written under a name that no reader's `*.parquet` matches, synced, then renamed, and its folder synced.
import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync } from 'node:fs'
import { link, lstat, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { systemCode } from '../../lib/error-text.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'

/** The rows of one table that one flush writes: `row_seq` from `first` to `last`, both inclusive. */
export interface SeqRange {
  first: number
  last: number
}

/** A file of a flush: the rows of one date in one range of one table. The name says it all. */
export interface Part extends SeqRange {
  table: string
  /** YYYY-MM-DD, UTC. */
  date: string
}

/** True when every row number of `inner` is in the range of `outer`. */
export const contains = (outer: SeqRange, inner: SeqRange): boolean =>
  outer.first <= inner.first && inner.last <= outer.last

/** True when files of one table may have rows in common. */
export const overlaps = (a: Part, b: Part): boolean =>
  a.date === b.date && a.first <= b.last && b.first <= a.last

const SEQ_DIGITS = 15
const PART_NAME = /^part-(\d{15})-(\d{15})\.parquet$/
const DATE_FOLDER = /^dt=(\d{4}-\d{2}-\d{2})$/
const TEMPORARY_SUFFIX = '.tmp'

const padded = (seq: number): string => String(seq).padStart(SEQ_DIGITS, '0')

/** Path below the lake's folder, with forward slashes on every system. */
export const partPath = (part: Part): string =>
  `${part.table}/dt=${part.date}/part-${padded(part.first)}-${padded(part.last)}.parquet`

/** The UTC date of a moment, as a part has it. */
export const utcDate = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10)

export const temporaryPath = (path: string): string => path + TEMPORARY_SUFFIX

/** Gives a synced temporary file its name, durably. Readers see it from here on. */
export async function publish(path: string): Promise<void> {
  await rename(temporaryPath(path), path)
  await syncPath(dirname(path))
}

export const fileBytes = async (path: string): Promise<number> => (await stat(path)).size

/** SHA-256 of a file's content, in hexadecimal. */
export async function contentHash(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** Gives a file a second name, in the place of whatever bears it. */
export async function linkFile(path: string, to: string): Promise<void> {
  await makeFolder(dirname(to))
  await removeFile(to)
  await link(path, to)
}

/** Puts what bears a name, be it a file or a folder, under another, in the place of what is there; missing is fine. */
export async function moveFile(path: string, to: string): Promise<void> {
  if ((await lstat(path).catch(() => null)) === null) return
  await makeFolder(dirname(to))
  await rm(to, { recursive: true, force: true })
  await rename(path, to)
  await syncPath(dirname(to))
}

/** Removes a file that no list names; missing is fine. A folder in its place is no file of ours: it is put out of the way. */
export async function removeFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true })
  } catch (error) {
    if (!(await lstat(path)).isDirectory()) throw error
    await rename(path, `${path}.${Date.now()}.set-aside`)
  }
}

function noFolder(error: unknown): string[] {
  // Gone meanwhile, or a file of somebody's that bears a folder's name.
  if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return []
  throw error
}

/** Runs what writes a file. What failed half-way takes no room: the disk may be full. */
export async function wholeOrGone<Value>(path: string, write: () => Promise<Value>): Promise<Value> {
  try {
    return await write()
  } catch (error) {
    await removeFile(path)
    throw error
  }
}

export interface LakeListing {
  parts: Part[]
  /** Absolute paths of what an interrupted flush left half-written. */
  temporaries: string[]
  /** Absolute paths of Parquet files that the store did not write; left alone. */
  foreign: string[]
}

/** What lies on disk of one table, whose folder is made where it is not there. */
export async function listTable(lakeDir: string, table: string): Promise<LakeListing> {
  mkdirSync(join(lakeDir, table), { recursive: true })
  return lookAtTable(lakeDir, table)
}

/** The same, for those who only look. */
export async function lookAtTable(lakeDir: string, table: string): Promise<LakeListing> {
  const listing: LakeListing = { parts: [], temporaries: [], foreign: [] }
  const root = join(lakeDir, table)
  for (const folder of (await readdir(root).catch(noFolder)).sort()) {
    const date = DATE_FOLDER.exec(folder)?.[1]
    if (date === undefined) continue
    for (const name of (await readdir(join(root, folder)).catch(noFolder)).sort()) {
      sort(listing, { table, date, path: join(root, folder, name), name })
    }
  }
  return listing
}

function sort(listing: LakeListing, file: { table: string; date: string; path: string; name: string }): void {
  const { table, date, path, name } = file
  const range = PART_NAME.exec(name)
  if (range !== null) listing.parts.push({ table, date, first: Number(range[1]), last: Number(range[2]) })
  else if (name.endsWith(`.parquet${TEMPORARY_SUFFIX}`)) listing.temporaries.push(path)
  else if (name.endsWith('.parquet')) listing.foreign.push(path)
}
