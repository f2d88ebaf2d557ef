// In: files of the lake. Out: where each lies, and which of them a reader who lists folders sees. A file lies below `.files`,
// where the catalog sends its readers; while it is live it has a second name (a hard link) in the folders that
// `lake/<table>/*/*.parquet` matches. So a file that was replaced is gone from the folders at once, and yet stays for
// readers who have begun with the catalog. Where the disk has no hard links there is one place, and replaced files
// stay visible until they are removed. Never decides what is live.

import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../lib/error-text.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import {
  fileBytes,
  type LakeListing,
  linkFile,
  listTable,
  type Part,
  partPath,
  removeFile,
} from './lake-files.ts'

export interface Links {
  /** False where the disk has no hard links. */
  readonly hasLinks: boolean
  /** Absolute path of a file. */
  pathOf(part: Part): string
  /** The second name, where folders are listed. */
  linkedAt(part: Part): string
  /** Every file of a table that lies here, listed or not. */
  listing(table: string): Promise<LakeListing>
  /** Gives live files their second name, for those who list folders. */
  add(parts: readonly Part[]): Promise<void>
  /** Takes it from files that were replaced. */
  remove(parts: readonly Part[]): Promise<void>
  /** Makes the folders of a table hold exactly the names of `live`; what is not ours is left alone. */
  settle(table: string, live: readonly Part[]): Promise<LakeListing>
}

const FILES_FOLDER = '.files'
/** What disks without hard links answer. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EINVAL'])

async function canLink(root: string): Promise<boolean> {
  const probe = join(root, 'probe')
  try {
    await makeFolder(root)
    await rm(probe, { recursive: true, force: true })
    await writeFile(probe, '')
    await linkFile(probe, `${probe}.link`)
    return true
  } catch (error) {
    if (NO_LINKS.has(systemCode(error))) return false
    // A disk that is full says nothing about links; that there are files here does.
    return (await readdir(root).catch(() => [])).some((name) => !name.startsWith('probe'))
  } finally {
    await rm(probe, { recursive: true, force: true })
    await rm(`${probe}.link`, { recursive: true, force: true })
  }
}

/** Two names of one file. A copy of the folder has two files in their place, of which one may be damaged. */
async function sameFile(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([a, b].map((path) => stat(path).catch(() => null)))
  return one !== null && other !== null && one.ino === other.ino && one.dev === other.dev
}

/** Where files lie, for those who only look. */
export interface LinksView {
  /** False where the disk has no hard links. */
  readonly hasLinks: boolean
  /** Folder of the tables' folders of files. */
  readonly root: string
  pathOf(part: Part): string
  /** The second name, where folders are listed. */
  linkedAt(part: Part): string
}

const viewOf = (lakeDir: string, hasLinks: boolean): LinksView => {
  const root = hasLinks ? join(lakeDir, FILES_FOLDER) : lakeDir
  return {
    hasLinks,
    root,
    pathOf: (part) => join(root, partPath(part)),
    linkedAt: (part) => join(lakeDir, partPath(part)),
  }
}

/** The files as they lie: nothing is made, nothing is tried. A store with hard links keeps a folder for each table. */
export async function viewLinks(lakeDir: string): Promise<LinksView> {
  const held = await readdir(join(lakeDir, FILES_FOLDER)).catch(() => [])
  return viewOf(lakeDir, held.length > 0)
}

export async function openLinks(lakeDir: string): Promise<Links> {
  const { hasLinks, root, pathOf, linkedAt } = viewOf(lakeDir, await canLink(join(lakeDir, FILES_FOLDER)))

  async function add(parts: readonly Part[]): Promise<void> {
    if (hasLinks) for (const part of parts) await linkFile(pathOf(part), linkedAt(part))
  }

  async function remove(parts: readonly Part[]): Promise<void> {
    if (hasLinks) for (const part of parts) await removeFile(linkedAt(part))
  }

  /** A folder written before there was `.files`: its files get their place there. */
  async function adopt(parts: readonly Part[]): Promise<void> {
    for (const part of parts) {
      if ((await fileBytes(pathOf(part)).catch(() => -1)) === -1)
        await linkFile(linkedAt(part), pathOf(part)).catch(() => undefined)
    }
  }

  async function settle(table: string, live: readonly Part[]): Promise<LakeListing> {
    const linked = await listTable(lakeDir, table)
    if (!hasLinks) return linked
    const names = new Set(live.map(partPath))
    await remove(linked.parts.filter((part) => !names.has(partPath(part))))
    for (const part of live) {
      if (!(await sameFile(pathOf(part), linkedAt(part)))) await add([part])
    }
    return linked
  }

  return {
    hasLinks,
    pathOf,
    linkedAt,
    async listing(table) {
      if (hasLinks) await adopt((await listTable(lakeDir, table)).parts)
      const listing = await listTable(root, table)
      // Whatever made these folders, or one of a date, may have ended before it synced their names.
      await syncPath(join(root, table))
      await syncPath(root)
      return listing
    },
    add,
    remove,
    settle,
  }
}
