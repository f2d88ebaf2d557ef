// The segments that are not written any more, oldest first: made durable, and deleted when nobody needs their events.
import { join } from 'node:path'
import type { Disk, DiskFile } from '../../lib/disk/disk.ts'
import { UnreadableError } from '../../lib/disk/whole-files.ts'
import { ignoreMissing } from '../../lib/error-text.ts'
import { stateAfter } from '../../lib/states.ts'
import type { JournalEnd } from '../reader.ts'
import { endFrame } from '../segments/format.ts'
import { rewriteSegment } from './segment-file.ts'
import { SEGMENT_STATES, type SegmentEvent, type SegmentState } from './segment-states.ts'

interface ClosedSegment {
  name: string
  lastEventNo: number
  bytes: number
  /** Its open file until it is durable; null: it is durable, was written anew, or was left by an earlier process. */
  file: DiskFile | null
  state: SegmentState
}

function become(segment: ClosedSegment, event: SegmentEvent): void {
  segment.state = stateAfter(SEGMENT_STATES, segment.state, event)
}

export interface ClosedSegmentsOptions {
  disk: Disk
  folder: string
  /** What earlier processes left. */
  end: JournalEnd
  onUnreadable(error: unknown): void
}

export class ClosedSegments {
  bytes = 0
  readonly #disk: Disk
  readonly #folder: string
  readonly #onUnreadable: (error: unknown) => void
  #segments: ClosedSegment[]
  #void: readonly string[]

  constructor({ disk, folder, end, onUnreadable }: ClosedSegmentsOptions) {
    this.#disk = disk
    this.#folder = folder
    this.#onUnreadable = onUnreadable
    this.#void = end.voidSegments.map(({ name }) => name)
    this.#segments = end.segments.map(({ name, bytes, cutoffNo }) => {
      const lastEventNo = Math.min(cutoffNo, end.lastEventNo)
      // A killed process may have left bytes that exist in the page cache only, and a sync of them may have failed already.
      const state = lastEventNo <= end.syncedEventNo ? 'durable' : 'syncFailed'
      return { name, bytes, lastEventNo, file: null, state }
    })
    for (const { bytes } of this.#segments) this.bytes += bytes
  }

  get count(): number {
    return this.#segments.length
  }

  /** Bytes of the segments that have events behind this one. */
  bytesBehind(eventNo: number): number {
    let bytes = 0
    for (const segment of this.#segments) if (segment.lastEventNo > eventNo) bytes += segment.bytes
    return bytes
  }

  add(segment: ClosedSegment): void {
    this.#segments.push(segment)
    this.bytes += segment.bytes
  }

  /** A sync of this segment has failed that began before it was closed. */
  markFailed(name: string): void {
    for (const segment of this.#segments) if (segment.name === name) become(segment, 'syncFailed')
  }

  /** Syncs the contents of all segments. Rejects where the disk refuses: then it has to be called again. */
  async syncFiles(): Promise<void> {
    // Looked for anew each time: meanwhile segments are deleted, which must not hide the next one, and closed, which need it too.
    const isUnsynced = ({ state }: ClosedSegment): boolean => state === 'unsynced' || state === 'syncFailed'
    for (;;) {
      const segment = this.#segments.find(isUnsynced)
      if (segment === undefined) return
      await (segment.state === 'syncFailed' ? this.#rewrite(segment) : this.#syncFile(segment))
    }
  }

  /** To be called when the folder was synced after the files. */
  async becomeDurable(): Promise<void> {
    for (const segment of [...this.#segments]) {
      if (segment.state !== 'synced') continue
      // Shows that nothing behind it was lost. Without it the next segment does.
      await segment.file?.write(endFrame(segment.lastEventNo)).catch(() => undefined)
      await this.#closeFile(segment)
      become(segment, 'folderSynced')
    }
  }

  async #syncFile(segment: ClosedSegment): Promise<void> {
    const file = segment.file ?? (await this.#disk.open(join(this.#folder, segment.name)))
    try {
      await file.sync()
      become(segment, 'synced')
    } catch (error) {
      become(segment, 'syncFailed')
      throw error
    } finally {
      if (segment.file === null) await file.close().catch(() => undefined)
    }
  }

  /** Durably deletes what lies behind the end of the journal, which what is written next would contradict. */
  async removeVoid(): Promise<void> {
    if (this.#void.length === 0) return
    for (const name of this.#void) await this.#unlink(name)
    await this.#disk.syncFolder(this.#folder)
    this.#void = []
  }

  async #unlink(name: string): Promise<void> {
    await this.#disk.unlink(join(this.#folder, name)).catch(ignoreMissing)
  }

  async #rewrite(segment: ClosedSegment): Promise<void> {
    try {
      await rewriteSegment(this.#disk, this.#folder, segment.name)
    } catch (error) {
      // It cannot be read any more: its readers report that as damage.
      if (!(error instanceof UnreadableError)) throw error
      this.#onUnreadable(error)
    }
    await this.#closeFile(segment)
    become(segment, 'rewritten')
  }

  async #closeFile(segment: ClosedSegment): Promise<void> {
    await segment.file?.close().catch(() => undefined)
    segment.file = null
  }

  /** Deletes the durable segments that have no event behind this one. */
  async removeThrough(eventNo: number): Promise<void> {
    let isRemoved = false
    for (;;) {
      const [oldest] = this.#segments
      if (oldest === undefined || oldest.state !== 'durable' || oldest.lastEventNo > eventNo) break
      await this.#unlink(oldest.name)
      this.#segments.shift()
      this.bytes -= oldest.bytes
      isRemoved = true
    }
    if (isRemoved) await this.#disk.syncFolder(this.#folder)
  }

  async close(): Promise<void> {
    for (const segment of [...this.#segments]) await this.#closeFile(segment)
  }
}
