// Hands files of the lake to readers on other machines, in ranges of bytes. Reads are few at a time: on a disk that hangs each
// of them holds a thread, and commits need threads too.

import { type FileHandle, open } from 'node:fs/promises'
import pLimit from 'p-limit'
import { systemCode } from '../../lib/error-text.ts'
import { SingleFlight } from '../../lib/single-flight.ts'
import { unlessLate } from '../../lib/wait.ts'
import { notFound, StoreError, unavailable } from '../errors.ts'
import { fileNameOfPath, isFileName } from '../lake/lake-files.ts'
import {
  DOWNLOAD_CHUNK_BYTES,
  DOWNLOAD_READ_MS_MAX,
  DOWNLOAD_READS_AT_ONCE,
  DOWNLOAD_RETRY_AFTER_MS,
  DOWNLOADS_AT_ONCE,
  LAKE_LISTING_TTL_MS,
} from '../limits.ts'
import type { Store } from '../store.ts'
import type { Download, LakeFile } from '../types.ts'

const gone = (name: string): StoreError =>
  new StoreError(
    'gone',
    `${name} is not in the lake any more: its rows were merged into another file, are past their retention, or were given up as lost. Read the catalog again.`,
  )

const lost = (name: string): StoreError =>
  unavailable(
    `${name} is lost or damaged: its rows are missing until the operator has put it back, or settled the loss`,
  )

export class LakeFileServer {
  /** Bytes handed out since the start. */
  sentBytes = 0
  readonly #listing: SingleFlight<readonly LakeFile[]>
  readonly #reads = pLimit(DOWNLOAD_READS_AT_ONCE)
  readonly #running = new Set<FileDownload>()
  readonly #store: Pick<Store, 'lakeFiles' | 'lostFiles'>

  /** @param nowMs by which the age of a listing is measured, ms */
  constructor(store: Pick<Store, 'lakeFiles' | 'lostFiles'>, nowMs: () => number) {
    this.#store = store
    this.#listing = new SingleFlight(() => store.lakeFiles(), LAKE_LISTING_TTL_MS, nowMs)
  }

  /** Downloads that have not ended, or wait for the disk. */
  get running(): number {
    return this.#running.size
  }

  /** The live files of the lake. */
  async list(): Promise<readonly LakeFile[]> {
    return (await this.#listing.get()).filter(({ isLive, name }) => isLive && !this.#isLost(name))
  }

  /** A live file, or one that is kept for readers who started before. Rejects with `not_found`, `gone`, or `unavailable` where it is lost. */
  async find(name: string): Promise<LakeFile> {
    // Only listed names are looked up: no text of a client becomes a path.
    if (!isFileName(name)) throw notFound(`${name} is no name of a file of the lake.`)
    if (this.#isLost(name)) throw lost(name)
    const found = (await this.#listing.get()).find((file) => file.name === name)
    if (found === undefined) throw gone(name)
    return found
  }

  /** The listing may be older than that. */
  #isLost(name: string): boolean {
    return this.#store.lostFiles.some(({ path }) => fileNameOfPath(path) === name)
  }

  /** Begins to read `bytes` bytes from `firstByte` on. Rejects with `unavailable` while too many downloads run. */
  async begin(file: LakeFile, firstByte: number, bytes: number): Promise<Download> {
    if (this.#running.size >= DOWNLOADS_AT_ONCE)
      throw unavailable(`${DOWNLOADS_AT_ONCE} files of the lake are being read already`, {
        retryAfterMs: DOWNLOAD_RETRY_AFTER_MS,
      })
    const download = new FileDownload(firstByte, bytes, {
      inTurn: (work) => this.#reads(work),
      onBytes: (count) => {
        this.sentBytes += count
      },
      onEnd: () => this.#running.delete(download),
    })
    // Counted before the file is open, so that a burst of requests cannot exceed the maximum.
    this.#running.add(download)
    try {
      await download.open(file)
      return download
    } catch (error) {
      download.stop()
      throw error
    }
  }
}

interface DownloadCalls {
  /** Runs a disk operation when it is its turn. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result>
  onBytes(count: number): void
  onEnd(): void
}

class FileDownload implements Download {
  readonly #calls: DownloadCalls
  readonly #buffer: Buffer
  #handle: FileHandle | null = null
  #position: number
  #left: number
  #isStopped = false
  /** A disk operation that is under way or waits for its turn. */
  #reading: Promise<void> | null = null

  constructor(firstByte: number, bytes: number, calls: DownloadCalls) {
    this.#calls = calls
    this.#position = firstByte
    this.#left = bytes
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(bytes, DOWNLOAD_CHUNK_BYTES))
  }

  /** Rejects with `gone` where the file was deleted, `unavailable` where it is lost or not of the listed size. */
  async open({ name, path, bytes, isLive }: LakeFile): Promise<void> {
    const size = await this.#read(async () => {
      const handle = await open(path, 'r')
      this.#handle = handle
      const { size } = await handle.stat()
      // The reader may have gone meanwhile, or have been told that the disk does not answer.
      if (this.#isStopped) this.#close()
      return size
    }).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') throw isLive ? lost(name) : gone(name)
      throw unavailable(`${name} cannot be read`, { cause: error })
    })
    if (size !== bytes) throw unavailable(`${name} is damaged: it has ${size} bytes and not ${bytes}`)
  }

  async next(): Promise<Buffer | null> {
    const handle = this.#handle
    if (handle === null || this.#left === 0) {
      this.stop()
      return null
    }
    const wanted = Math.min(this.#left, this.#buffer.length)
    const { bytesRead } = await this.#read(() => handle.read(this.#buffer, 0, wanted, this.#position))
    if (bytesRead === 0) throw unavailable('the file ended before its listed size')
    this.#position += bytesRead
    this.#left -= bytesRead
    this.#calls.onBytes(bytesRead)
    return this.#buffer.subarray(0, bytesRead)
  }

  stop(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#close()
    // On a disk that hangs it goes on holding its place, so that no more wait than may run.
    if (this.#reading === null) this.#calls.onEnd()
    else void this.#reading.then(() => this.#calls.onEnd())
  }

  /** Runs a disk operation in its turn. On a disk that hangs it goes on, and holds its turn; the reader is told with `unavailable`. */
  #read<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#calls.inTurn(work)
    const done = (): void => {
      this.#reading = null
    }
    this.#reading = result.then(done, done)
    return unlessLate(DOWNLOAD_READ_MS_MAX, result, () => {
      throw unavailable('the disk does not answer')
    })
  }

  /** A read that is under way ends first. */
  #close(): void {
    const handle = this.#handle
    this.#handle = null
    handle?.close().catch(() => undefined)
  }
}
