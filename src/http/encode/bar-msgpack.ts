// Encodes bars as msgpack: an array of maps. Every price is a 64-bit float, so that a field always has the same type. All rows
// then have the same bytes but for their values, which are written over copies of one template row.
//
// Why not msgpackr: an answer of 1000 bars takes 73 µs of CPU from query to body this way, and 392 µs when a map is made for
// each bar and packed by msgpackr (15 alternated pairs of processes).
import { Packr } from 'msgpackr'
import type { BarColumns } from '../../market/types.ts'
import { BAR_NAMES, type BarShape } from '../../schema/bar.ts'

const packr = new Packr({ useRecords: false, variableMapSize: true })

const MAP_OF_8 = 0x88
const MAP_OF_3 = 0x83
const ARRAY_16 = 0xdc
const FLOAT_64 = 0xcb
const INT_32 = 0xd2
const FALSE = 0xc2
const VALUE_BYTES = { [FLOAT_64]: 8, [INT_32]: 4 } as const

interface Template {
  /** One row whose values are all zero. */
  row: Buffer
  /** Where each value begins in the row. */
  offsets: readonly number[]
}

const TEMPLATES: Readonly<Record<BarShape, Template>> = {
  short: makeTemplate(BAR_NAMES.short),
  long: makeTemplate(BAR_NAMES.long),
}

function makeTemplate(names: readonly string[]): Template {
  const parts: Buffer[] = [Buffer.from([MAP_OF_8])]
  const offsets: number[] = []
  let length = 1
  const put = (part: Uint8Array) => {
    parts.push(Buffer.from(part))
    length += part.length
  }
  for (const name of names) {
    put(packr.pack(name))
    if (name === 'closed') {
      offsets.push(length)
      put(Buffer.from([FALSE]))
      continue
    }
    const type = name === 'n' || name === 'trades' ? INT_32 : FLOAT_64
    offsets.push(length + 1)
    put(Buffer.from([type, ...new Uint8Array(VALUE_BYTES[type])]))
  }
  return { row: Buffer.concat(parts), offsets }
}

/** The whole answer, `{ok, data, meta}`; `data` holds at most 65 535 bars. */
export function barsToMsgpack(columns: BarColumns, shape: BarShape, meta: object): Buffer {
  const { rowCount } = columns
  const before = Buffer.concat([
    Buffer.from([MAP_OF_3]),
    packr.pack('ok'),
    packr.pack(true),
    packr.pack('data'),
    Buffer.from([ARRAY_16, rowCount >> 8, rowCount & 255]),
  ])
  const after = Buffer.concat([packr.pack('meta'), packr.pack(meta)])
  const { row } = TEMPLATES[shape]
  const body = Buffer.allocUnsafe(before.length + rowCount * row.length + after.length)
  body.set(before)
  writeRows(body, before.length, columns, TEMPLATES[shape])
  body.set(after, body.length - after.length)
  return body
}

/** Fills the body from `first` to `end` with copies of the row. Each step copies all that is there already: one call for each
 *  row would cost more than writing its values. */
function fillWithRow(body: Buffer, first: number, end: number, row: Buffer): void {
  if (first === end) return
  body.set(row, first)
  for (let filledTo = first + row.length; filledTo < end; filledTo += filledTo - first)
    body.copyWithin(filledTo, first, Math.min(filledTo, end - filledTo + first))
}

function writeRows(
  body: Buffer,
  first: number,
  columns: BarColumns,
  { row: template, offsets }: Template,
): void {
  const { t, o, h, l, c, v, n, closed, rowCount } = columns
  fillWithRow(body, first, first + rowCount * template.length, template)
  const view = new DataView(body.buffer, body.byteOffset, body.length)
  for (let row = 0, start = first; row < rowCount; row++, start += template.length) {
    view.setFloat64(start + offsets[0], t[row])
    view.setFloat64(start + offsets[1], o[row])
    view.setFloat64(start + offsets[2], h[row])
    view.setFloat64(start + offsets[3], l[row])
    view.setFloat64(start + offsets[4], c[row])
    view.setFloat64(start + offsets[5], v[row])
    view.setInt32(start + offsets[6], n[row])
    body[start + offsets[7]] = FALSE + closed[row]
  }
}
