// The segments that are not written any more, oldest first: made durable, and deleted when nobody needs their events.
import { join } from 'node:path'
import type { Disk, DiskFile } from '../../lib/disk.ts'
import { systemCode } from '../../lib/error-text.ts'
import type { PlannedSegment } from '../segments/plan.ts'
import { rewriteSegment, UnreadableError } from './segment-file.ts'

interface ClosedSegment {
  name: string
  firstEventNo: number
  lastEventNo: number
  bytes: number
  /** Its open file until it is durable; null: it is durable, or was left by an earlier process. */
  file: DiskFile | null
  state: 'durable' | 'unsynced' | 'sync_failed'
}

export interface ClosedSegmentsOptions {
  disk: Disk
  folder: string
  /** Those that earlier processes left, and the last event in them. */
  found: readonly PlannedSegment[]
  lastEventNo: number
  onUnreadable(error: unknown): void
}

export class ClosedSegments {
  bytes = 0
  readonly #disk: Disk
  readonly #folder: string
  readonly #onUnreadable: (error: unknown) => void
  #segments: ClosedSegment[]

  constructor({ disk, folder, found, lastEventNo, onUnreadable }: ClosedSegmentsOptions) {
    this.#disk = disk
    this.#folder = folder
    this.#onUnreadable = onUnreadable
    // A killed process may have left bytes that exist in the page cache only.
    this.#segments = found.map(({ name, bytes, firstEventNo, cutoffEventNo }) => ({
      ...{ name, bytes, firstEventNo, file: null, state: 'unsynced' },
      lastEventNo: Math.min(cutoffEventNo, lastEventNo),
    }))
    for (const { bytes } of this.#segments) this.bytes += bytes
  }

  get count(): number {
    return this.#segments.length
  }

  /** Number of the first event that is held; null where there is none. */
  get firstEventNo(): number | null {
    return this.#segments[0]?.firstEventNo ?? null
  }

  add(segment: ClosedSegment): void {
    this.#segments.push(segment)
    this.bytes += segment.bytes
  }

  /** A sync of this segment has failed that began before it was closed. */
  markFailed(name: string): void {
    for (const segment of this.#segments) if (segment.name === name) segment.state = 'sync_failed'
  }

  /** Makes the contents of all segments durable; their names need a sync of the folder. Rejects where the disk refuses: then it has
   *  to be called again. @returns whether names have changed */
  async sync(): Promise<boolean> {
    let isRenamed = false
    for (const segment of this.#segments.filter(({ state }) => state !== 'durable')) {
      if (segment.state === 'sync_failed') isRenamed = (await this.#rewrite(segment)) || isRenamed
      else await this.#syncFile(segment)
      await segment.file?.close().catch(() => undefined)
      segment.file = null
      segment.state = 'durable'
    }
    return isRenamed
  }

  async #syncFile(segment: ClosedSegment): Promise<void> {
    const file = segment.file ?? (await this.#disk.open(join(this.#folder, segment.name)))
    segment.file = file
    try {
      await file.sync()
    } catch (error) {
      segment.state = 'sync_failed'
      throw error
    }
  }

  /** @returns false where it cannot be read any more: its readers report that as damage. */
  async #rewrite({ name }: ClosedSegment): Promise<boolean> {
    try {
      await rewriteSegment(this.#disk, this.#folder, name)
      return true
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error
      this.#onUnreadable(error)
      return false
    }
  }

  /** Deletes the durable segments that have no event behind this one. */
  async removeThrough(eventNo: number): Promise<void> {
    let isRemoved = false
    for (;;) {
      const [oldest] = this.#segments
      if (oldest === undefined || oldest.state !== 'durable' || oldest.lastEventNo > eventNo) break
      await this.#disk.unlink(join(this.#folder, oldest.name)).catch((error: unknown) => {
        if (systemCode(error) !== 'ENOENT') throw error
      })
      this.#segments.shift()
      this.bytes -= oldest.bytes
      isRemoved = true
    }
    if (isRemoved) await this.#disk.syncFolder(this.#folder)
  }

  async close(): Promise<void> {
    for (const segment of this.#segments) await segment.file?.close().catch(() => undefined)
  }
}
