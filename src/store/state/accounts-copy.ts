// `accounts.log`: agents, keys, profiles and bans once more, beside state.duckdb, since no table of the lake has them. Each flush adds
// what it changes before it commits, so the copy is never behind the state. A state that is rebuilt takes them from here.
//
// Lines are framed as in the log: length, CRC-32, JSON. The first is the header with the description of the folder, which
// is told again where it has changed. The others are `[table, key, value]`; null: the entry was deleted. The last one of a key counts.
import { createReadStream } from 'node:fs'
import { type FileHandle, lstat, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { systemCode } from '../../lib/error-text.ts'
import { syncPath } from '../../lib/files.ts'
import { type FolderInfo, parseFolderInfo, readFolderInfo } from '../data-folder/folder-info.ts'
import { ACCOUNTS_GROWTH_BYTES_MIN, ACCOUNTS_WRITE_BYTES } from '../limits.ts'
import { LineBuffer, NEWLINE, PREFIX_BYTES, readPayload } from '../log/segments/format.ts'
import { accountsPath } from '../paths.ts'
import { readState } from './read-state.ts'
import type { StoreState } from './state.ts'

const FORMAT = 1
/** Hashes of keys are for nobody but the server's user. */
const FILE_MODE = 0o600

/** The tables of the state that are in the copy. */
const ACCOUNT_TABLES = ['agents', 'agentKeys', 'agentEvents'] as const
type AccountTable = (typeof ACCOUNT_TABLES)[number]

const entryText = (table: AccountTable, [key, value]: readonly [string, unknown]): string =>
  JSON.stringify([table, key, value ?? null])

const headerText = (folder: FolderInfo | null): string => JSON.stringify({ format: FORMAT, folder })

/** Writes the copy. One for each lake process. */
export class AccountsCopy {
  readonly #dataDir: string
  /** Its size when it was last written as a whole; null: not by this process, or a write to it has failed. */
  #wholeBytes: number | null = null
  /** What was added since. */
  #addedBytes = 0
  /** Its header, as it was written last. */
  #header = headerText(null)

  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  /**
   * Brings the copy to this state, durably: adds what has changed since it was saved, or writes all of it where this process has not
   * done so, or where more was added than there was. To be called before the changes are saved.
   * @param connection of the saved state, on which nothing else runs
   */
  async write(connection: DuckDBConnection, state: StoreState): Promise<void> {
    const whole = this.#wholeBytes
    this.#wholeBytes = null
    if (whole === null || this.#addedBytes > Math.max(whole, ACCOUNTS_GROWTH_BYTES_MIN)) {
      this.#wholeBytes = await this.#writeWhole(connection, state)
      this.#addedBytes = 0
      return
    }
    this.#addedBytes += await this.#add(state)
    this.#wholeBytes = whole
  }

  /** @returns the bytes of the copy */
  async #writeWhole(connection: DuckDBConnection, state: StoreState): Promise<number> {
    const path = accountsPath(this.#dataDir)
    const temporary = `${path}.tmp`
    const file = await open(temporary, 'w', FILE_MODE)
    let bytes: number
    try {
      this.#header = this.#readHeader()
      bytes = await writeLines(file, wholeLines(connection, state, this.#header))
      await file.sync()
    } finally {
      await file.close()
    }
    // Renaming cannot replace a folder.
    if ((await lstat(path).catch(() => null))?.isDirectory())
      await rename(path, `${path}.${Date.now()}.set-aside`)
    await rename(temporary, path)
    await syncPath(dirname(path))
    return bytes
  }

  /** @returns the bytes that were added */
  async #add(state: StoreState): Promise<number> {
    const header = this.#readHeader()
    const headers = header === this.#header ? [] : [header]
    if (headers.length === 0 && !ACCOUNT_TABLES.some((table) => state[table].hasChanges)) return 0
    const file = await open(accountsPath(this.#dataDir), 'a', FILE_MODE)
    try {
      const bytes = (await writeLines(file, headers)) + (await writeLines(file, changedLines(state)))
      await file.datasync()
      this.#header = header
      return bytes
    } finally {
      await file.close()
    }
  }

  /** As store.json is now: it tells a kind of data once some has come. The last one where it is missing or cannot be read. */
  #readHeader(): string {
    try {
      const folder = readFolderInfo(this.#dataDir)
      return folder === null ? this.#header : headerText(folder)
    } catch {
      return this.#header
    }
  }
}

/** The saved entries are read piece by piece: a state that is saved again does not hold them all. What has changed since follows. */
async function* wholeLines(
  connection: DuckDBConnection,
  state: StoreState,
  header: string,
): AsyncIterable<string> {
  yield header
  for (const table of ACCOUNT_TABLES)
    for await (const { json } of readState(connection, [table]))
      for (const entry of JSON.parse(json)) yield entryText(table, entry)
  yield* changedLines(state)
}

function* changedLines(state: StoreState): Iterable<string> {
  for (const table of ACCOUNT_TABLES)
    for (const entry of state[table].changes()) yield entryText(table, entry)
}

async function writeLines(
  file: FileHandle,
  lines: Iterable<string> | AsyncIterable<string>,
): Promise<number> {
  const buffer = new LineBuffer()
  let bytes = 0
  const writeOut = async (): Promise<void> => {
    bytes += buffer.length
    await file.writeFile(buffer.bytes)
    buffer.clear()
  }
  for await (const line of lines) {
    buffer.add(line)
    if (buffer.length >= ACCOUNTS_WRITE_BYTES) await writeOut()
  }
  await writeOut()
  return bytes
}

/** What a copy has. */
export interface ReadAccounts {
  /** Description of the folder; null: not known. */
  folder: FolderInfo | null
  /** Entries added to the state. */
  entries: number
  /** Lines that are damaged, and whose entries are therefore missing or old. */
  damagedLines: number
}

/** Adds the entries of the copy to a state. Null: there is no copy. Rejects where it cannot be read. */
export async function readAccounts(dataDir: string, state: StoreState): Promise<ReadAccounts | null> {
  const found: ReadAccounts = { folder: null, entries: 0, damagedLines: 0 }
  try {
    for await (const line of linesOf(accountsPath(dataDir))) addLine(line, state, found)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    if (systemCode(error) !== 'EISDIR') throw error
    found.damagedLines++
  }
  found.entries = ACCOUNT_TABLES.reduce((sum, table) => sum + state[table].size, 0)
  return found
}

/** The lines of a file without their newlines. What follows the last newline was never complete. */
async function* linesOf(path: string): AsyncIterable<Buffer> {
  let rest = Buffer.alloc(0)
  for await (const chunk of createReadStream(path)) {
    rest = Buffer.concat([rest, chunk as Buffer])
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      yield rest.subarray(0, end)
      rest = rest.subarray(end + 1)
    }
  }
}

function addLine(line: Buffer, state: StoreState, found: ReadAccounts): void {
  const payload = readPayload(line)
  if (payload !== null) addEntry(JSON.parse(payload.toString()), state, found)
  const rest = payload === null ? line : line.subarray(PREFIX_BYTES + payload.length)
  if (rest.length === 0) return
  found.damagedLines++
  // The newline is damaged, and the next line has become a part of this one.
  if (payload !== null) addLine(rest.subarray(1), state, found)
}

function addEntry(parsed: unknown, state: StoreState, found: ReadAccounts): void {
  if (Array.isArray(parsed)) {
    const [table, key, value] = parsed as [AccountTable, string, never]
    if (value === null) state[table].delete(key)
    else state[table].set(key, value)
  } else {
    found.folder = parseFolderInfo(JSON.stringify((parsed as { folder: unknown }).folder))
  }
}
