// Names and paths of the lake's files, and operations on whole files. A file is written under a name that no reader's
// `*.parquet` matches, synced, renamed, and its folder synced: readers see it whole or not at all.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, lstat, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { systemCode } from '../../lib/error-text.ts'
import { makeFolder, makeFolderNow, syncPath } from '../../lib/files.ts'

/** Row numbers from `first` to `last`, both inclusive. For tables of the log they are LSNs. */
export interface SeqRange {
  first: number
  last: number
}

/** A file of the lake: rows of one table, date and range of row numbers. These make up its path. */
export interface DataFile extends SeqRange {
  table: string
  /** YYYY-MM-DD, UTC. */
  date: string
}

/** True when every row number of `inner` is in the range of `outer`. */
export const contains = (outer: SeqRange, inner: SeqRange): boolean =>
  outer.first <= inner.first && inner.last <= outer.last

/** True when two files of one table may have rows in common. */
export const overlaps = (a: DataFile, b: DataFile): boolean =>
  a.date === b.date && a.first <= b.last && b.first <= a.last

const SEQ_DIGITS = 15
const PART_NAME = /^part-(\d{15})-(\d{15})\.parquet$/
const DATE_FOLDER = /^dt=(\d{4}-\d{2}-\d{2})$/
const TEMPORARY_SUFFIX = '.tmp'

const padded = (seq: number): string => String(seq).padStart(SEQ_DIGITS, '0')

/** Path of a file below the lake's folder, with forward slashes on every system. */
export const relativePath = (file: DataFile): string =>
  `${file.table}/dt=${file.date}/part-${padded(file.first)}-${padded(file.last)}.parquet`

/** The name of a file without its folders, for readers who have a flat list. */
export const fileName = (file: DataFile): string =>
  `${file.table}-${file.date}-${padded(file.first)}-${padded(file.last)}.parquet`

/** The same of a `relativePath`. */
export const fileNameOfPath = (path: string): string => path.replace('/dt=', '-').replace('/part-', '-')

/** Whether a text has the form of a `fileName`. */
export const isFileName = (text: string): boolean =>
  /^[a-z_]{1,32}-\d{4}-\d{2}-\d{2}-\d{15}-\d{15}\.parquet$/.test(text)

/** The UTC date of a moment, YYYY-MM-DD. */
export const utcDate = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10)

const temporaryPath = (path: string): string => path + TEMPORARY_SUFFIX

export const fileSizeBytes = async (path: string): Promise<number> => (await stat(path)).size

/** SHA-256 of a file's content, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** Hard-links a file, replacing what is at `to`. */
export async function linkFile(path: string, to: string): Promise<void> {
  await makeFolder(dirname(to))
  await removeFile(to)
  await link(path, to)
}

/** Moves a file or folder, replacing what is at `to`. Does nothing where it is missing. */
export async function moveFile(path: string, to: string): Promise<void> {
  if ((await lstat(path).catch(() => null)) === null) return
  await makeFolder(dirname(to))
  await rm(to, { recursive: true, force: true })
  await rename(path, to)
  await syncPath(dirname(to))
}

/** Deletes a file. Does nothing where it is missing; a folder in its place is not the store's and is renamed. */
export async function removeFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true })
  } catch (error) {
    if (!(await lstat(path)).isDirectory()) throw error
    await rename(path, `${path}.${Date.now()}.set-aside`)
  }
}

function noEntries(error: unknown): string[] {
  // Deleted in the meantime, or somebody's file with the name of a folder.
  if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return []
  throw error
}

/** Calls `write`, and deletes the file where it fails: a half-written file must not fill up the disk. */
export async function writeOrRemove<Value>(path: string, write: () => Promise<Value>): Promise<Value> {
  try {
    return await write()
  } catch (error) {
    await removeFile(path)
    throw error
  }
}

/** Steps of writing a file: its content is written, it is durable, it has its name. */
export type WriteStep = 'copied' | 'synced' | 'published'

/** Has `write` write a file under another name, and gives it its own: once this resolves, both are durable. */
export async function writeDurably<Value>(
  path: string,
  write: (temporary: string) => Promise<Value>,
  failpoint: (step: WriteStep) => void,
): Promise<Value> {
  const temporary = temporaryPath(path)
  await makeFolder(dirname(path))
  const written = await writeOrRemove(temporary, () => write(temporary))
  failpoint('copied')
  await syncPath(temporary)
  failpoint('synced')
  await rename(temporary, path)
  await syncPath(dirname(path))
  failpoint('published')
  return written
}

export interface FolderListing {
  files: DataFile[]
  /** Absolute paths of half-written files, as an interrupted flush leaves them. */
  temporaries: string[]
  /** Absolute paths of Parquet files that the store did not write. */
  foreign: string[]
}

/** Lists the files of a table on the disk; creates the table's folder where it is missing. */
export async function createAndListTableFolder(lakeDir: string, table: string): Promise<FolderListing> {
  makeFolderNow(join(lakeDir, table))
  return listTableFolder(lakeDir, table)
}

/** Lists the files of a table on the disk. A missing folder counts as empty. */
export async function listTableFolder(lakeDir: string, table: string): Promise<FolderListing> {
  const listing: FolderListing = { files: [], temporaries: [], foreign: [] }
  const root = join(lakeDir, table)
  for (const folder of (await readdir(root).catch(noEntries)).sort()) {
    const date = DATE_FOLDER.exec(folder)?.[1]
    if (date === undefined) continue
    for (const name of (await readdir(join(root, folder)).catch(noEntries)).sort()) {
      addToListing(listing, { table, date, path: join(root, folder, name), name })
    }
  }
  return listing
}

function addToListing(
  listing: FolderListing,
  entry: { table: string; date: string; path: string; name: string },
): void {
  const { table, date, path, name } = entry
  const range = PART_NAME.exec(name)
  if (range !== null) listing.files.push({ table, date, first: Number(range[1]), last: Number(range[2]) })
  else if (name.endsWith(`.parquet${TEMPORARY_SUFFIX}`)) listing.temporaries.push(path)
  else if (name.endsWith('.parquet')) listing.foreign.push(path)
}
