// In: bars as columns. Out: msgpack: plain maps that any reader opens, every price a 64-bit float whatever its value, so
// that a field has one type. A row always has the same bytes but for its values: they are written over copies of one.
// Never decides which bars.
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

/** One row without its values, and where they go. */
interface Template {
  row: Buffer
  at: readonly number[]
}

const TEMPLATES: Readonly<Record<BarShape, Template>> = {
  short: templateOf(BAR_NAMES.short),
  long: templateOf(BAR_NAMES.long),
}

function templateOf(names: readonly string[]): Template {
  const parts: Buffer[] = [Buffer.from([MAP_OF_8])]
  const at: number[] = []
  let length = 1
  const put = (part: Uint8Array) => {
    parts.push(Buffer.from(part))
    length += part.length
  }
  for (const name of names) {
    put(packr.pack(name))
    if (name === 'closed') {
      at.push(length)
      put(Buffer.from([FALSE]))
      continue
    }
    const type = name === 'n' || name === 'trades' ? INT_32 : FLOAT_64
    at.push(length + 1)
    put(Buffer.from([type, ...new Uint8Array(VALUE_BYTES[type])]))
  }
  return { row: Buffer.concat(parts), at }
}

/** `{ok,data,meta}` as msgpack. */
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
  putRows(body, before.length, columns, TEMPLATES[shape])
  body.set(after, body.length - after.length)
  return body
}

/** The same row again and again, in ever larger copies: a copy for each costs more than its values. */
function repeat(body: Buffer, first: number, end: number, row: Buffer): void {
  if (first === end) return
  body.set(row, first)
  for (let made = first + row.length; made < end; made += made - first)
    body.copyWithin(made, first, Math.min(made, end - made + first))
}

function putRows(body: Buffer, first: number, columns: BarColumns, { row: template, at }: Template): void {
  const { t, o, h, l, c, v, n, closed, rowCount } = columns
  repeat(body, first, first + rowCount * template.length, template)
  const view = new DataView(body.buffer, body.byteOffset, body.length)
  for (let row = 0, start = first; row < rowCount; row++, start += template.length) {
    view.setFloat64(start + at[0], t[row])
    view.setFloat64(start + at[1], o[row])
    view.setFloat64(start + at[2], h[row])
    view.setFloat64(start + at[3], l[row])
    view.setFloat64(start + at[4], c[row])
    view.setFloat64(start + at[5], v[row])
    view.setInt32(start + at[6], n[row])
    body[start + at[7]] = FALSE + closed[row]
  }
}
