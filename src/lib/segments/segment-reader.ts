// Reads the segments of a folder: which there are, what counts of each, and their frames.
import { join } from 'node:path'
import type { Disk } from '../disk/disk.ts'
import { systemCode } from '../error-text.ts'
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

interface SegmentStart<Header extends HeaderHead> {
  bytes: number
  header: Header | null
  /** As the header says or, where it is damaged, the first entries; Infinity where neither can be read. */
  durableNo: number
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
    for (const name of (await this.#list(folder)).sort()) {
      if (this.#format.isPassedOver(name)) continue
      plan.highestNamedNo = Math.max(plan.highestNamedNo, this.#format.names.numberOf(name) ?? 0)
      try {
        const segment = await this.#planSegment(folder, name, owner)
        if (segment === null) plan.foreign.push(name)
        else plan.segments.push(segment)
      } catch (error) {
        if (systemCode(error) !== 'ENOENT') throw error
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

  async #list(folder: string): Promise<string[]> {
    try {
      return await this.#disk.list(folder)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return []
      throw error
    }
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
    const { bytes, header, durableNo } = start
    // A damaged header says nothing against it.
    const isOwn =
      header === null || (header.firstNo === firstNo && (owner === null || header.owner === owner))
    const afterNo = this.#format.countsTo(firstNo, durableNo)
    return isOwn ? { name, path, bytes, firstNo, header, afterNo, cutoffNo: Infinity } : null
  }

  /** A file that the disk does not open is known by its name, so that the others are read. */
  async #tryReadStart(path: string): Promise<SegmentStart<Header> | null> {
    try {
      return await this.#readStart(path)
    } catch (error) {
      if (!this.#format.unreadable.includes(systemCode(error) ?? '')) throw error
      return { bytes: SEGMENT_BYTES, header: null, durableNo: Number.POSITIVE_INFINITY }
    }
  }

  /** Null where it is a folder. */
  async #readStart(path: string): Promise<SegmentStart<Header> | null> {
    const file = await this.#disk.open(path)
    try {
      const bytes = await file.size()
      const items = scan(file, this.#format, { chunkBytes: SEGMENT_START_BYTES })
      for await (const { head, offset, error } of items) {
        if (systemCode(error) === 'EISDIR') return null
        if (offset === 0 && head?.kind === 'newer')
          throw unknownFormatError(path, head.format, this.#format.version)
        if (offset === 0 && head?.kind === 'header') return { bytes, header: head, durableNo: head.durableNo }
        if (head?.kind === 'entries') return { bytes, header: null, durableNo: head.durableNo }
      }
      return { bytes, header: null, durableNo: Number.POSITIVE_INFINITY }
    } finally {
      await file.close()
    }
  }
}
