// Damaged or missing files of the lake. They leave the live files, with the reason, and are moved to `lake/.set-aside`, out of
// readers' sight; they are never deleted. A file that is found whole again is restored.
import { dirname } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { assert } from '../../lib/assert.ts'
import { errorFirstLine } from '../../lib/error-text.ts'
import { syncPath } from '../../lib/files.ts'
import { LAKE_SCHEMA_VERSION, TABLES } from '../../schema/tables.ts'
import { linkOrCopy } from '../data-folder/snapshot.ts'
import { isFullError } from '../duckdb/database.ts'
import type { LogLine } from '../types.ts'
import { type CheckDepth, type FaultyFile, findFaultyFiles } from './file-check.ts'
import { writePendingFiles } from './file-writer.ts'
import {
  contains,
  type DataFile,
  linkFile,
  moveFile,
  overlaps,
  relativePath,
  removeFile,
} from './lake-files.ts'
import type { Links } from './links.ts'
import {
  type ListedFile,
  listLiveFiles,
  listQuarantinedFiles,
  markLive,
  markQuarantined,
  type NewFile,
  type QuarantinedFile,
  quarantinedFile,
} from './manifest.ts'
import { toReadableFiles } from './parquet-sql.ts'
import { countUnrepeated, selectUnrepeated } from './repeated-bars.ts'
import { findWholeCopy, type WholeCopy } from './whole-copy.ts'

export interface QuarantineOptions {
  links: Links
  log(line: LogLine): void
  /** Called when the live files have changed. */
  onChange(): void
}

export class Quarantine {
  readonly #options: QuarantineOptions
  /** Off the list of live files, and not moved yet, because the catalog may still name them. */
  #toMove: DataFile[] = []

  constructor(options: QuarantineOptions) {
    this.#options = options
  }

  /** Checks live files and quarantines the faulty ones. @returns how many there were */
  async check(
    connection: DuckDBConnection,
    files: readonly ListedFile[],
    depth: CheckDepth,
    nowMs: number,
  ): Promise<number> {
    return this.add(connection, await findFaultyFiles(files, this.#options.links.pathOf, depth), nowMs)
  }

  /** Quarantines files that a check has found faulty, unless they were replaced since. @returns how many */
  async add(connection: DuckDBConnection, faulty: readonly FaultyFile[], nowMs: number): Promise<number> {
    let added = 0
    for (const each of faulty) {
      const live = await listLiveFiles(connection, each.file.table)
      if (!live.some((file) => relativePath(file) === relativePath(each.file))) continue
      await this.#addOne(connection, each, nowMs)
      this.#options.onChange()
      added++
    }
    return added
  }

  /**
   * Writes live files of bars anew without the bars that other files have. Each stays live all along: where its bars were missing for
   * a moment, a flush would make labels unknown for good.
   */
  async rewriteRepeating(
    connection: DuckDBConnection,
    repeating: readonly FaultyFile[],
    nowMs: number,
  ): Promise<void> {
    const { links, log, onChange } = this.#options
    // Each is compared with those before it: of two that repeat each other one keeps the bars.
    const waiting = new Set(repeating.map(({ file }) => relativePath(file)))
    for (const { file, fault } of repeating) {
      const copy = { file, path: links.pathOf(file) }
      const written = await this.#writeUnrepeated(connection, copy, nowMs, waiting)
      waiting.delete(relativePath(file))
      if (written === null) continue
      await markLive(connection, written, [], nowMs)
      await links.add([file])
      onChange()
      const fields = { path: relativePath(file), rows: written.rows }
      log({ level: 'warn', message: `a file of the lake ${fault}, and is written anew without them`, fields })
    }
  }

  /** Moves quarantined files to their folder. To be called once the catalog no longer names them. */
  async moveFiles(): Promise<void> {
    const files = this.#toMove
    this.#toMove = []
    for (const file of files) await this.#moveOne(file)
  }

  /** Makes quarantined files that are whole again live, without bars that live files have. @returns those */
  async restore(connection: DuckDBConnection, nowMs: number): Promise<QuarantinedFile[]> {
    const restored: QuarantinedFile[] = []
    for (const file of await listQuarantinedFiles(connection)) {
      if (await this.#restoreOne(connection, file, nowMs)) restored.push(file)
    }
    return restored
  }

  async #addOne(connection: DuckDBConnection, { file, fault }: FaultyFile, nowMs: number): Promise<void> {
    if (await this.#restoreFromLink(file)) return
    await markQuarantined(connection, quarantinedFile(file, fault, nowMs))
    const fields = { path: relativePath(file), fault, rowsLost: file.rows }
    const message = 'a file of the lake is set aside; see mintlake lake repair'
    this.#options.log({ level: 'error', message, fields })
    this.#toMove.push(file)
  }

  /** In a copied folder the hard link has become a second file, which may be whole. */
  async #restoreFromLink(file: ListedFile): Promise<boolean> {
    const { links } = this.#options
    const linkPath = links.linkPathOf(file)
    if (!links.hasLinks || (await findWholeCopy(file, [linkPath])) === null) return false
    await moveFile(links.pathOf(file), links.setAsidePathOf(file))
    await linkFile(linkPath, links.pathOf(file))
    return true
  }

  async #moveOne(file: DataFile): Promise<void> {
    const { links, log } = this.#options
    try {
      await links.remove([file])
      await moveFile(links.pathOf(file), links.setAsidePathOf(file))
    } catch (error) {
      const fields = { path: relativePath(file), error: errorFirstLine(error) }
      log({ level: 'warn', message: 'a damaged file of the lake cannot be moved; left where it is', fields })
    }
  }

  async #restoreOne(connection: DuckDBConnection, file: QuarantinedFile, nowMs: number): Promise<boolean> {
    const { links, log, onChange } = this.#options
    const copy = await this.#findWholeCopy(file)
    if (copy === null) return false
    // Files merged from what was left of this one are replaced by it. Other overlapping files may have rows it lacks.
    const overlapping = (await listLiveFiles(connection, file.table)).filter((other) => overlaps(file, other))
    if (!overlapping.every((other) => contains(file, other))) return false
    const path = links.pathOf(file)
    const written =
      file.table === TABLES.bars.name ? await this.#writeUnrepeated(connection, copy, nowMs) : null
    if (written === null && copy.path !== path) {
      await linkFile(copy.path, path)
      // The name must be durable before the list says that the file is there.
      await syncPath(dirname(path))
    }
    await markLive(connection, written ?? copy.file, overlapping, nowMs)
    this.#toMove = this.#toMove.filter((each) => relativePath(each) !== relativePath(file))
    await links.remove(overlapping)
    await links.add([file])
    const fields = { path: relativePath(file) }
    log({ level: 'warn', message: 'a file of the lake is whole again', fields })
    onChange()
    return true
  }

  /**
   * Writes a file of bars in its place without those that other files have. Its row numbers stay, even where no bar is left, since
   * each is in the range of a file; what is whole is kept where quarantined files lie.
   * @param except paths of live files with which it is not compared
   * @returns the new file; null: it has no such bars
   */
  async #writeUnrepeated(
    connection: DuckDBConnection,
    { file, path }: WholeCopy,
    nowMs: number,
    except: ReadonlySet<string> = new Set(),
  ): Promise<NewFile | null> {
    const table = TABLES.bars
    const { pathOf, setAsidePathOf } = this.#options.links
    const live = await listLiveFiles(connection, table.name)
    const others = live.filter(
      (other) => other.date === file.date && !contains(file, other) && !except.has(relativePath(other)),
    )
    const readable = toReadableFiles(others, pathOf)
    const kept = setAsidePathOf(file)
    try {
      const rows = await countUnrepeated(connection, { ...file, path }, readable)
      if (rows === file.rows) return null
      if (path !== kept) {
        await removeFile(kept)
        await linkOrCopy(path, kept)
        await syncPath(dirname(kept))
      }
      const pending = { file, rows, table, select: selectUnrepeated({ ...file, path: kept }, readable) }
      const [written] = await writePendingFiles(connection, [pending], { pathOf, failpoint: () => {} })
      return { ...written, schemaVersion: LAKE_SCHEMA_VERSION }
    } catch (error) {
      // One of the others may be damaged: the file is compared with the rest.
      if (isFullError(error) || (await this.check(connection, others, 'content', nowMs)) === 0) throw error
      const copy = await this.#findWholeCopy(file)
      assert(copy !== null, 'the file was whole')
      return this.#writeUnrepeated(connection, copy, nowMs, except)
    }
  }

  #findWholeCopy(file: ListedFile): Promise<WholeCopy | null> {
    const { links } = this.#options
    return findWholeCopy(file, [links.pathOf(file), links.linkPathOf(file), links.setAsidePathOf(file)])
  }
}
