// In: files of the lake's list that may be gone or damaged. Out: those that are, set aside: off the live files and out of
// sight of readers, with the reason. A file that is whole again comes back. Never deletes what it sets aside, and never lets
// one bad file keep the others from being read or written.
import { dirname, join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorFirstLine } from '../../lib/error-text.ts'
import { syncPath } from '../../lib/files.ts'
import { type Database, isFatalError, isFullError } from '../duckdb/database.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { READ_ATTEMPTS } from '../limits.ts'
import type { LogLine } from '../process/protocol.ts'
import { type CheckDepth, type FaultyPart, findFaults, isVerifierError } from './file-check.ts'
import { contains, linkFile, moveFile, overlaps, type Part, partPath } from './lake-files.ts'
import type { Links } from './links.ts'
import {
  type ListedPart,
  liveParts,
  type SetAsidePart,
  setAsidePart,
  setAsideParts,
  setPresent,
} from './manifest.ts'
import { type ReadableFile, readableFiles } from './parquet-sql.ts'

/** Where files lie that were set aside, below the lake's folder. */
export const SET_ASIDE_FOLDER = '.set-aside'

/** Work over the live files of one table. */
export interface LakeReading<Result> {
  table: LakeTable
  nowMs: number
  /** Which files it needs. */
  wanted(part: ListedPart): boolean
  work(files: readonly ReadableFile[]): Promise<Result>
}

export interface SetAside {
  /** Looks at live files, and sets aside those that are faulty. @returns how many were. */
  check(
    connection: DuckDBConnection,
    parts: readonly ListedPart[],
    depth: CheckDepth,
    nowMs: number,
  ): Promise<number>
  /** The same, in two steps: `faulty` was found without holding the connection. */
  remove(connection: DuckDBConnection, faulty: readonly FaultyPart[], nowMs: number): Promise<number>
  /** Moves what was set aside out of the readers' way, once the catalog does not name it any more. */
  moveAway(): Promise<void>
  /** Files that were set aside and are whole again are live again. @returns those. */
  takeBack(connection: DuckDBConnection, nowMs: number): Promise<SetAsidePart[]>
  /** Does work over live files; where it fails for a file that cannot be read, that is set aside and it is done again. */
  read<Result>(connection: DuckDBConnection, reading: LakeReading<Result>): Promise<Result>
  /** The same for work on another connection than the one that may change the list. */
  readBeside<Result>(connection: DuckDBConnection, reading: LakeReading<Result>): Promise<Result>
}

export interface SetAsideOptions {
  database: Database
  lakeDir: string
  links: Links
  log(line: LogLine): void
  /** Called when the live files have changed. */
  onChange(): void
}

/** A failure that may be a file's. */
const mayBeOfFile = (error: unknown): boolean =>
  !isFatalError(error) && !isFullError(error) && !isVerifierError(error)

export function openSetAside(options: SetAsideOptions): SetAside {
  const { database, lakeDir, links, log, onChange } = options
  const asidePath = (part: Part): string => join(lakeDir, SET_ASIDE_FOLDER, partPath(part))

  /** Off the list, and in their place until no catalog names them. */
  let leaving: Part[] = []

  /** The file goes out of the readers' sight; what cannot be moved is off the list all the same. */
  async function hideFile(part: Part): Promise<void> {
    try {
      await links.remove([part])
      await moveFile(links.pathOf(part), asidePath(part))
    } catch (error) {
      const fields = { path: partPath(part), error: errorFirstLine(error) }
      log({ level: 'warn', message: 'a damaged file of the lake cannot be moved; left where it is', fields })
    }
  }

  /** The name that readers list may still have what the other one lost, where they are two files. */
  async function takeFromLinked(part: ListedPart): Promise<boolean> {
    const linked = links.linkedAt(part)
    if (!links.hasLinks || (await findFaults([part], () => linked, 'content')).length > 0) return false
    await moveFile(links.pathOf(part), asidePath(part))
    await linkFile(linked, links.pathOf(part))
    return true
  }

  async function removeOne(
    connection: DuckDBConnection,
    { part, fault }: FaultyPart,
    nowMs: number,
  ): Promise<void> {
    if (await takeFromLinked(part)) return
    await setAsidePart(connection, part, fault, nowMs)
    const fields = { path: partPath(part), fault, rowsLost: part.rows }
    log({ level: 'error', message: 'a file of the lake is set aside; see mintlake lake repair', fields })
    leaving.push(part)
  }

  async function remove(
    connection: DuckDBConnection,
    faulty: readonly FaultyPart[],
    nowMs: number,
  ): Promise<number> {
    let removed = 0
    for (const each of faulty) {
      const live = await liveParts(connection, each.part.table)
      // It may have been replaced since it was looked at.
      if (!live.some((part) => partPath(part) === partPath(each.part))) continue
      await removeOne(connection, each, nowMs)
      onChange()
      removed++
    }
    return removed
  }

  async function check(
    connection: DuckDBConnection,
    parts: readonly ListedPart[],
    depth: CheckDepth,
    nowMs: number,
  ): Promise<number> {
    const suspects = await findFaults(parts, links.pathOf, depth)
    return remove(connection, suspects, nowMs)
  }

  async function moveAway(): Promise<void> {
    const parts = leaving
    leaving = []
    for (const part of parts) await hideFile(part)
  }

  /** A place where the file lies whole; null: nowhere. */
  async function wholeCopy(part: SetAsidePart): Promise<string | null> {
    const places = [...new Set([links.pathOf(part), links.linkedAt(part), asidePath(part)])]
    for (const path of places) {
      if ((await findFaults([part], () => path, 'content')).length === 0) return path
    }
    return null
  }

  async function takeBackOne(
    connection: DuckDBConnection,
    part: SetAsidePart,
    nowMs: number,
  ): Promise<boolean> {
    const path = await wholeCopy(part)
    if (path === null) return false
    const live = (await liveParts(connection, part.table)).filter((other) => overlaps(part, other))
    // Files that were made of what was left of it have nothing that it has not; others may.
    if (!live.every((other) => contains(part, other))) return false
    if (path !== links.pathOf(part)) {
      await linkFile(path, links.pathOf(part))
      // Its name lasts before the list says that it is there.
      await syncPath(dirname(links.pathOf(part)))
    }
    await setPresent(connection, part, live, nowMs)
    leaving = leaving.filter((each) => partPath(each) !== partPath(part))
    await links.remove(live)
    await links.add([part])
    log({ level: 'warn', message: 'a file of the lake is whole again', fields: { path: partPath(part) } })
    onChange()
    return true
  }

  async function takeBack(connection: DuckDBConnection, nowMs: number): Promise<SetAsidePart[]> {
    const back: SetAsidePart[] = []
    for (const part of await setAsideParts(connection)) {
      if (await takeBackOne(connection, part, nowMs)) back.push(part)
    }
    return back
  }

  async function attempt<Result>(connection: DuckDBConnection, { table, wanted, work }: LakeReading<Result>) {
    const parts = (await liveParts(connection, table.name)).filter(wanted)
    try {
      return { parts, result: await work(readableFiles(parts, links.pathOf)) }
    } catch (error) {
      if (!mayBeOfFile(error)) throw error
      return { parts, error }
    }
  }

  async function read<Result>(connection: DuckDBConnection, reading: LakeReading<Result>): Promise<Result> {
    for (;;) {
      const outcome = await attempt(connection, reading)
      if ('result' in outcome) return outcome.result as Result
      if ((await check(connection, outcome.parts, 'content', reading.nowMs)) === 0) throw outcome.error
    }
  }

  async function readBeside<Result>(
    connection: DuckDBConnection,
    reading: LakeReading<Result>,
  ): Promise<Result> {
    for (let attempts = 1; ; attempts++) {
      const outcome = await attempt(connection, reading)
      if ('result' in outcome) return outcome.result as Result
      const removed = await database.maintenance.run((owner) =>
        check(owner, outcome.parts, 'content', reading.nowMs),
      )
      const live = new Set((await liveParts(connection, reading.table.name)).map(partPath))
      // Files that were replaced meanwhile are no fault, and reason enough to begin anew.
      if (attempts >= READ_ATTEMPTS) throw outcome.error
      if (removed === 0 && outcome.parts.every((part) => live.has(partPath(part)))) throw outcome.error
    }
  }

  return { check, remove, moveAway, takeBack, read, readBeside }
}
