// Where the lake's files are. Each lies below `lake/.files`, where the catalog sends its readers. While it is live it also has
// a hard link in the folders that `lake/<table>/*/*.parquet` matches.
//
// A replaced file thus disappears from the glob at once
// and stays for readers who started with the catalog. On a disk without hard links there is one path only, and replaced
// files match the glob until they are deleted.
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../lib/error-text.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import {
  createAndListTableFolder,
  type DataFile,
  type FolderListing,
  fileSizeBytes,
  linkFile,
  relativePath,
  removeFile,
} from './lake-files.ts'

const FILES_FOLDER = '.files'
/** Where quarantined files lie, below the lake's folder. */
export const SET_ASIDE_FOLDER = '.set-aside'
/** Error codes of file systems without hard links. */
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
    // A full disk says nothing about links. Files in this folder do: they are only put here where links work.
    return (await readdir(root).catch(() => [])).some((name) => !name.startsWith('probe'))
  } finally {
    await rm(probe, { recursive: true, force: true })
    await rm(`${probe}.link`, { recursive: true, force: true })
  }
}

/** Whether two paths lead to one file. In a copy of the folder they lead to two, of which one may be damaged. */
async function isSameFile(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([a, b].map((path) => stat(path).catch(() => null)))
  return one !== null && other !== null && one.ino === other.ino && one.dev === other.dev
}

/** The paths of a lake's files; changes nothing on the disk. */
export class LakePaths {
  /** False where the disk has no hard links. */
  readonly hasLinks: boolean
  readonly lakeDir: string
  /** Folder that holds a folder of files for each table. */
  readonly root: string

  constructor(lakeDir: string, hasLinks: boolean) {
    this.hasLinks = hasLinks
    this.lakeDir = lakeDir
    this.root = hasLinks ? join(lakeDir, FILES_FOLDER) : lakeDir
  }

  /** Absolute path of a file. */
  readonly pathOf = (file: DataFile): string => join(this.root, relativePath(file))

  /** Absolute path of its hard link; the same as `pathOf` where there are none. */
  readonly linkPathOf = (file: DataFile): string => join(this.lakeDir, relativePath(file))

  /** Absolute path at which it lies while it is set aside. */
  readonly setAsidePathOf = (file: DataFile): string =>
    join(this.lakeDir, SET_ASIDE_FOLDER, relativePath(file))
}

/** The paths of a lake as it is on the disk. With hard links, `.files` has a folder for each table. */
export async function readLakePaths(lakeDir: string): Promise<LakePaths> {
  const folders = await readdir(join(lakeDir, FILES_FOLDER)).catch(() => [])
  return new LakePaths(lakeDir, folders.length > 0)
}

/** Opens the lake of `lakeDir`, and finds out whether its disk has hard links. */
export async function openLinks(lakeDir: string): Promise<Links> {
  return new Links(lakeDir, await canLink(join(lakeDir, FILES_FOLDER)))
}

/** The paths of a lake, and changes of its hard links. Which files are live is for the caller to say. */
export class Links extends LakePaths {
  /** Lists all files of a table, on the manifest or not. */
  async listFiles(table: string): Promise<FolderListing> {
    if (this.hasLinks) await this.#moveOldLayout((await createAndListTableFolder(this.lakeDir, table)).files)
    const listing = await createAndListTableFolder(this.root, table)
    // An earlier process may have ended after creating these folders, or one of a date, and before syncing their names.
    await syncPath(join(this.root, table))
    await syncPath(this.root)
    return listing
  }

  /** Links live files, for readers who use the glob. */
  async add(files: readonly DataFile[]): Promise<void> {
    if (this.hasLinks) for (const file of files) await linkFile(this.pathOf(file), this.linkPathOf(file))
  }

  /** Removes the links of files that are no longer live. */
  async remove(files: readonly DataFile[]): Promise<void> {
    if (this.hasLinks) for (const file of files) await removeFile(this.linkPathOf(file))
  }

  /** Makes the links of a table exactly those of `live`. Files that are not the store's stay. @returns what was there */
  async sync(table: string, live: readonly DataFile[]): Promise<FolderListing> {
    const linked = await createAndListTableFolder(this.lakeDir, table)
    if (!this.hasLinks) return linked
    const names = new Set(live.map(relativePath))
    await this.remove(linked.files.filter((file) => !names.has(relativePath(file))))
    for (const file of live) {
      if (!(await isSameFile(this.pathOf(file), this.linkPathOf(file)))) await this.add([file])
    }
    return linked
  }

  /** Files written before `.files` existed get their path there. */
  async #moveOldLayout(files: readonly DataFile[]): Promise<void> {
    for (const file of files) {
      if ((await fileSizeBytes(this.pathOf(file)).catch(() => -1)) === -1)
        await linkFile(this.linkPathOf(file), this.pathOf(file)).catch(() => undefined)
    }
  }
}
