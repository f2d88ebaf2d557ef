// Decodes an event by its layout: fields in their order, for as long as there are bytes.
import { isFixedSize } from '@solana/codecs'
import { type EventLayout, FIELD_DECODERS, type FieldType, layoutOf } from './layouts.ts'

const DISCRIMINATOR_BYTES = 8

const LENGTH_BYTES = 4
const SHARE_BYTES = 34

/** The fields of an event that had their bytes. A field is asked for by its name; it is decoded then. */
export class DecodedEvent {
  readonly name: string
  /** Bytes behind the last field that we know. */
  readonly leftOverBytes: number
  readonly #bytes: Uint8Array
  /** Where each field begins. */
  readonly #offsets: ReadonlyMap<string, readonly [type: FieldType, at: number]>

  constructor(
    { name }: EventLayout,
    bytes: Uint8Array,
    offsets: ReadonlyMap<string, readonly [FieldType, number]>,
    leftOverBytes: number,
  ) {
    this.name = name
    this.#bytes = bytes
    this.#offsets = offsets
    this.leftOverBytes = leftOverBytes
  }

  has(field: string): boolean {
    return this.#offsets.has(field)
  }

  /** The names of all fields that had their bytes, in their order. */
  get fields(): readonly string[] {
    return [...this.#offsets.keys()]
  }

  /** The value of a field; undefined where its bytes were not there. */
  value(field: string): unknown {
    const place = this.#offsets.get(field)
    return place === undefined ? undefined : FIELD_DECODERS[place[0]].decode(this.#bytes, place[1])
  }

  /** An integer of any width; null where it was not there. */
  integer(field: string): bigint | null {
    const value = this.value(field)
    return typeof value === 'bigint' ? value : typeof value === 'number' ? BigInt(value) : null
  }

  /** An address or a text; null where it was not there. */
  text(field: string): string | null {
    const value = this.value(field)
    return typeof value === 'string' ? value : null
  }

  flag(field: string): boolean | null {
    const value = this.value(field)
    return typeof value === 'boolean' ? value : null
  }
}

/** How many bytes the field at this place takes, before any memory is made for it; null where they are not all there. */
function fieldBytes(type: FieldType, bytes: Uint8Array, at: number): number | null {
  const left = bytes.length - at
  const decoder = FIELD_DECODERS[type]
  if (isFixedSize(decoder)) return decoder.fixedSize <= left ? decoder.fixedSize : null
  if (left < LENGTH_BYTES) return null
  const length = new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0, true)
  const size = LENGTH_BYTES + length * (type === 'shares' ? SHARE_BYTES : 1)
  return size <= left ? size : null
}

/** Decodes fields from an offset on; null where one of those that must be there is not. */
function decodeFields(layout: EventLayout, bytes: Uint8Array, from: number): DecodedEvent | null {
  const offsets = new Map<string, readonly [FieldType, number]>()
  let at = from
  for (const [name, type] of layout.fields) {
    const size = fieldBytes(type, bytes, at)
    if (size === null) break
    // A flag is 0 or 1: anything else means that the layout is not this one.
    if (type === 'bool' && bytes[at] > 1) break
    offsets.set(name, [type, at])
    at += size
  }
  return offsets.size < layout.required ? null : new DecodedEvent(layout, bytes, offsets, bytes.length - at)
}

/** What the bytes of an event are: an event; `unreadable`: one of ours whose layout has changed; or one that we do not know. */
export type EventReading =
  | { kind: 'event'; event: DecodedEvent }
  | { kind: 'unreadable'; name: string }
  | { kind: 'unknown' }

/** @param program whose event it is, which the bytes do not say. */
export function readEvent(program: string, bytes: Uint8Array): EventReading {
  if (bytes.length < DISCRIMINATOR_BYTES) return { kind: 'unknown' }
  const discriminator = Buffer.from(bytes.buffer, bytes.byteOffset, DISCRIMINATOR_BYTES).toString('hex')
  const layout = layoutOf(program, discriminator)
  if (layout === undefined) return { kind: 'unknown' }
  const event = decodeFields(layout, bytes, DISCRIMINATOR_BYTES)
  // Fields are added as wholes: bytes that are left where a field of ours should be are another layout.
  const isOther = event === null || (event.leftOverBytes > 0 && event.fields.length < layout.fields.length)
  return isOther ? { kind: 'unreadable', name: layout.name } : { kind: 'event', event }
}
