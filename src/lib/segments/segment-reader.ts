// Reads the segments of a folder: which there are, what counts of each, and their frames.
import { join } from 'node:path'
import type { Disk } from '../disk/disk.ts'
import { ignoreMissing, systemCode } from '../error-text.ts'
import { SCAN_CHUNK_BYTES, SEGMENT_BYTES, SEGMENT_START_BYTES } from './limits.ts'
import { type ScanItem, scan } from './scan.ts'
import { SegmentCheck, type SegmentCheckOptions } from './segment-check.ts'
import {
  type EntriesHead,
  type HeaderHead,
  type PlannedSegment,
  removedError,
  type SegmentFormat,
  type SegmentPlan,
  unknownFormatError,
} from './types.ts'

interface SegmentStart<Header extends HeaderHead, Entries extends EntriesHead> {
  bytes: number
  /** Its header or, where that is damaged, the first entries; null where neither can be read. */
  head: Header | Entries | null
}

export class SegmentReader<Header extends HeaderHead, Entries extends EntriesHead> {
  readonly #disk: Disk
  readonly #format: SegmentFormat<Header, Entries>

  constructor(disk: Disk, format: SegmentFormat<Header, Entries>) {
    this.#disk = disk
    this.#format = format
  }

  /**
   * Lists all segments in the folder, oldest first, and finds the last valid entry of each, which later ones determine. None where the
   * folder is missing. Reads only the start of each file. Rejects with SegmentError `unknown_format` where one has a newer format.
   * @param owner identity that they must have; null: any
   */
  async plan(folder: string, owner: string | null): Promise<SegmentPlan<Header>> {
    const plan: SegmentPlan<Header> = { segments: [], foreign: [], removed: [], highestNamedNo: 0 }
    const names = (await this.#disk.list(folder).catch(ignoreMissing)) ?? []
    for (const name of names.sort()) {
      if (this.#format.isPassedOver(name)) continue
      plan.highestNamedNo = Math.max(plan.highestNamedNo, this.#format.names.numberOf(name) ?? 0)
      try {
        const segment = await this.#planSegment(folder, name, owner)
        if (segment === null) plan.foreign.push(name)
        else plan.segments.push(segment)
      } catch (error) {
        ignoreMissing(error)
        plan.removed.push(join(folder, name))
      }
    }
    let cutoffNo = Number.POSITIVE_INFINITY
    for (const segment of plan.segments.toReversed()) {
      segment.cutoffNo = cutoffNo
      cutoffNo = Math.min(cutoffNo, segment.afterNo)
    }
    return plan
  }

  /** Scans a segment from a byte on. Rejects with SegmentError where it was removed; that it cannot be opened is an item. */
  async *scan(
    { path, bytes }: PlannedSegment,
    fromByte = 0,
  ): AsyncGenerator<ScanItem<Header, Entries>, void> {
    let file: Awaited<ReturnType<Disk['open']>>
    try {
      file = await this.#disk.open(path)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') throw removedError(path)
      return yield { head: null, offset: 0, length: 0, frame: Buffer.alloc(0), error }
    }
    try {
      const chunkBytes = Math.min(Math.max(bytes, SEGMENT_START_BYTES), SCAN_CHUNK_BYTES)
      yield* scan(file, this.#format, { chunkBytes, fromByte })
    } finally {
      await file.close()
    }
  }

  /** Decides which entries of a segment are valid; to be fed with its scan. */
  check(options: Omit<SegmentCheckOptions, 'hasDurableHeader'>): SegmentCheck {
    return new SegmentCheck({ ...options, hasDurableHeader: this.#format.hasDurableHeader })
  }

  /**
   * The last entry that the frames of a segment prove to have been durable; 0 where there are none. These numbers never decrease, so the
   * end of the file tells; where no frame can be read there, the whole file is searched.
   */
  async findProvenNo(segment: PlannedSegment): Promise<number> {
    const endFrom = Math.max(0, segment.bytes - SCAN_CHUNK_BYTES)
    for (const fromByte of new Set([endFrom, 0])) {
      let provenNo: number | null = null
      for await (const { head } of this.scan(segment, fromByte))
        if (head !== null) provenNo = Math.max(provenNo ?? 0, head.durableNo)
      if (provenNo !== null) return provenNo
    }
    return 0
  }

  /** Null where the file is not a segment of this owner. */
  async #planSegment(
    folder: string,
    name: string,
    owner: string | null,
  ): Promise<PlannedSegment<Header> | null> {
    const firstNo = this.#format.names.numberOf(name)
    const path = join(folder, name)
    const start = firstNo === null ? null : await this.#tryReadStart(path)
    if (firstNo === null || start === null) return null
    const { bytes, head } = start
    const header = head?.kind === 'header' ? head : null
    // A damaged header says nothing against it.
    const isOwn =
      header === null || (header.firstNo === firstNo && (owner === null || header.owner === owner))
    const afterNo = this.#format.countsTo(firstNo, head?.durableNo ?? Number.POSITIVE_INFINITY)
    return isOwn ? { name, path, bytes, firstNo, header, afterNo, cutoffNo: Infinity } : null
  }

  /** A file that the disk does not open is known by its name, so that the others are read. */
  async #tryReadStart(path: string): Promise<SegmentStart<Header, Entries> | null> {
    try {
      return await this.#readStart(path)
    } catch (error) {
      if (!this.#format.unreadable.includes(systemCode(error))) throw error
      return { bytes: SEGMENT_BYTES, head: null }
    }
  }

  /** Null where it is a folder. */
  async #readStart(path: string): Promise<SegmentStart<Header, Entries> | null> {
    const file = await this.#disk.open(path)
    try {
      const bytes = await file.size()
      const items = scan(file, this.#format, { chunkBytes: SEGMENT_START_BYTES })
      for await (const { head, offset, error } of items) {
        if (systemCode(error) === 'EISDIR') return null
        if (offset === 0 && head?.kind === 'newer')
          throw unknownFormatError(path, head.format, this.#format.version)
        if (head?.kind === 'entries' || (offset === 0 && head?.kind === 'header')) return { bytes, head }
      }
      return { bytes, head: null }
    } finally {
      await file.close()
    }
  }
}
