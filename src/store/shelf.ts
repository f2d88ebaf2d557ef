// In: files of the lake. Out: where each lies, and which of them a reader who lists folders sees. A file lies below
// `.files`, where the catalog sends its readers; while it is live it has a second name (a hard link) in the folders that
// `lake/<table>/*/*.parquet` matches. So a file that was replaced is gone from the folders at once, and yet stays for
// readers who have begun with the catalog. Where the disk has no hard links there is one place, and replaced files
// stay visible until they are removed. Never decides what is live.
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  fileBytes,
  type LakeListing,
  linkFile,
  listTable,
  makeFolder,
  type Part,
  partPath,
  removeFile,
} from './lake-files.ts'

export interface Shelf {
  /** False where the disk has no hard links. */
  readonly hasLinks: boolean
  /** Absolute path of a file. */
  pathOf(part: Part): string
  /** The second name, where folders are listed. */
  shownAt(part: Part): string
  /** Every file of a table that lies here, listed or not. */
  listing(table: string): Promise<LakeListing>
  /** Shows live files to those who list folders. */
  show(parts: readonly Part[]): Promise<void>
  /** Hides replaced files from them. */
  hide(parts: readonly Part[]): Promise<void>
  /** Makes the folders of a table show exactly `live`; what is not ours is left alone. */
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
    if (NO_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) return false
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
export interface ShelfView {
  /** False where the disk has no hard links. */
  readonly hasLinks: boolean
  /** Folder of the tables' folders of files. */
  readonly root: string
  pathOf(part: Part): string
  /** The second name, where folders are listed. */
  shownAt(part: Part): string
}

const viewOf = (lakeDir: string, hasLinks: boolean): ShelfView => {
  const root = hasLinks ? join(lakeDir, FILES_FOLDER) : lakeDir
  return {
    hasLinks,
    root,
    pathOf: (part) => join(root, partPath(part)),
    shownAt: (part) => join(lakeDir, partPath(part)),
  }
}

/** A shelf as it stands: nothing is made, nothing is tried. A store with hard links keeps a folder for each table. */
export async function viewShelf(lakeDir: string): Promise<ShelfView> {
  const held = await readdir(join(lakeDir, FILES_FOLDER)).catch(() => [])
  return viewOf(lakeDir, held.length > 0)
}

export async function openShelf(lakeDir: string): Promise<Shelf> {
  const { hasLinks, root, pathOf, shownAt } = viewOf(lakeDir, await canLink(join(lakeDir, FILES_FOLDER)))

  async function show(parts: readonly Part[]): Promise<void> {
    if (hasLinks) for (const part of parts) await linkFile(pathOf(part), shownAt(part))
  }

  async function hide(parts: readonly Part[]): Promise<void> {
    if (hasLinks) for (const part of parts) await removeFile(shownAt(part))
  }

  /** A folder written before there was `.files`: its files get their place there. */
  async function adopt(parts: readonly Part[]): Promise<void> {
    for (const part of parts) {
      if ((await fileBytes(pathOf(part)).catch(() => -1)) === -1)
        await linkFile(shownAt(part), pathOf(part)).catch(() => undefined)
    }
  }

  async function settle(table: string, live: readonly Part[]): Promise<LakeListing> {
    const shown = await listTable(lakeDir, table)
    if (!hasLinks) return shown
    const names = new Set(live.map(partPath))
    await hide(shown.parts.filter((part) => !names.has(partPath(part))))
    for (const part of live) {
      if (!(await sameFile(pathOf(part), shownAt(part)))) await show([part])
    }
    return shown
  }

  return {
    hasLinks,
    pathOf,
    shownAt,
    async listing(table) {
      if (hasLinks) await adopt((await listTable(lakeDir, table)).parts)
      return listTable(root, table)
    },
    show,
    hide,
    settle,
  }
}
