// Pages of the market list: the lines of their rows, and the versions by which readers know them.
import type { Rankings } from '../rankings/rankings.ts'
import type { Page, PageQuery, RowFields } from '../types.ts'
import type { RowChanges } from './row-changes.ts'
import type { RowLines } from './row-lines.ts'

/** What a page of given slots shows. */
export interface PageParts {
  total: number
  /** Position as of which the order is exact. */
  version: number
  fields: RowFields | null
  /** Whether neither a row nor the order has changed; of a list that stays as it is, false. */
  isOrderNewest(): boolean
}

export class Pages {
  readonly #rankings: Rankings
  readonly #rowLines: RowLines
  readonly #changes: RowChanges

  constructor(rankings: Rankings, rowLines: RowLines, changes: RowChanges) {
    this.#rankings = rankings
    this.#rowLines = rowLines
    this.#changes = changes
  }

  page({ tab, sort, order, offset, limit, fields = null }: PageQuery): Page {
    const { seq } = this.#changes
    const orderVersion = this.#rankings.versionOf(sort)
    const ranking = this.#rankings.of(tab, sort)
    const slots = ranking.slice(offset, limit, order === 'desc')
    const isOrderNewest = () => this.#changes.seq === seq && this.#rankings.versionOf(sort) === orderVersion
    return this.join(slots, { total: ranking.size, version: seq, fields, isOrderNewest })
  }

  /** Renders at most `rowsMax` of these rows that have no current line. @returns whether all have one now. */
  prepare(slots: Uint32Array, rowsMax: number, fields: RowFields | null): boolean {
    const set = this.#rowLines.of(fields)
    let made = 0
    for (let row = 0; row < slots.length; row++) {
      if (set.kept(slots[row]) !== null) continue
      if (made === rowsMax) return false
      set.line(slots[row])
      made++
    }
    return true
  }

  /** A page of these slots in this order. */
  join(slots: Uint32Array, { total, version, fields, isOrderNewest }: PageParts): Page {
    const set = this.#rowLines.of(fields)
    const lines = new Array<Buffer>(slots.length)
    for (let row = 0; row < slots.length; row++) lines[row] = set.line(slots[row])
    const numbers = [version, this.#changes.seq, rowsVersion(slots, total)].map((part) => part.toString(36))
    const { windowState } = set
    const state = fields === null ? windowState : `${fields.key} ${windowState}`
    return new RowPage({
      lines,
      total,
      version,
      contentVersion: [...numbers, state.replaceAll(/[^\w.]/g, '-')].join('-'),
      isNewest: () => isOrderNewest() && this.#rowLines.of(fields).windowState === windowState,
      isCurrent: () => {
        const now = this.#rowLines.of(fields)
        return lines.every((line, row) => now.kept(slots[row]) === line)
      },
    })
  }
}

/** Changes when other tokens are on a page, or in another order: time alone may do that, by a figure or a filter of one. */
function rowsVersion(slots: Uint32Array, total: number): number {
  let mixed = total
  for (let row = 0; row < slots.length; row++) {
    mixed = Math.imul(mixed ^ slots[row], 0x9e3779b1)
    mixed ^= mixed >>> 15
  }
  return mixed >>> 0
}

type RowPageParts = Pick<Page, 'lines' | 'total' | 'version' | 'contentVersion' | 'isNewest' | 'isCurrent'>

class RowPage implements Page {
  readonly lines: readonly Buffer[]
  readonly bytes: number
  readonly total: number
  readonly version: number
  readonly contentVersion: string
  readonly isNewest: () => boolean
  readonly isCurrent: () => boolean

  constructor({ lines, total, version, contentVersion, isNewest, isCurrent }: RowPageParts) {
    let bytes = 0
    for (const line of lines) bytes += line.length
    this.lines = lines
    this.bytes = bytes
    this.total = total
    this.version = version
    this.contentVersion = contentVersion
    this.isNewest = isNewest
    this.isCurrent = isCurrent
  }

  get rowCount(): number {
    return this.lines.length
  }

  get ndjson(): Buffer {
    return Buffer.concat(this.lines, this.bytes)
  }
}
