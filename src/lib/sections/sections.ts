// A saved state, such as that of a market, is a list of named sections of bytes. Numbers lie in them as in memory, whose byte order all
// machines share that Mintlake runs on.
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { safeParse } from '../safe-parse.ts'
import { parseJson } from '../text/json-text.ts'
import { CheckpointError } from './checkpoint-error.ts'
import { TextColumn } from './text-column.ts'

export interface Section {
  name: string
  /** May be a view of memory: it is valid until the state changes. */
  bytes: Uint8Array
}

/** A part whose state is saved: what it has of each slot of a table. */
export interface Saved {
  /** @param slotsUsed slots that hold something: those from 0 to before it. */
  save(slotsUsed: number): Iterable<Section>
  /** Takes the state of a part that was saved, into a part that is empty. @throws CheckpointError */
  /** Where it takes long it yields in between. */
  restore(sections: SectionReader, slotsUsed: number): Iterable<void> | undefined | void
}

/** Slots whose texts lie in one section, which bounds the memory that it takes. */
const SLOTS_PER_SECTION = 4_096

/** The slots of each section of texts: from `first` to before `end`. */
export function* slotRanges(slotsUsed: number): Iterable<{ part: number; first: number; end: number }> {
  for (let part = 0, first = 0; first < slotsUsed; part++, first += SLOTS_PER_SECTION)
    yield { part, first, end: Math.min(slotsUsed, first + SLOTS_PER_SECTION) }
}

type Numbers = Float64Array | Uint32Array | Uint8Array

const bytesOf = (numbers: Numbers): Uint8Array =>
  new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)

export const numbersSection = (name: string, numbers: Numbers): Section => ({ name, bytes: bytesOf(numbers) })

/** A section of numbers that lie in many places, copied one behind the other. */
export const joinedSection = (name: string, parts: readonly Numbers[]): Section => ({
  name,
  bytes: Buffer.concat(parts.map(bytesOf)),
})

export const jsonSection = (name: string, value: unknown): Section => ({
  name,
  bytes: Buffer.from(JSON.stringify(value)),
})

/** Length and checksum of each section, by name. */
export const sectionIndexSchema = z.record(z.string(), z.object({ bytes: z.number(), crc32: z.number() }))
export type SectionIndex = z.infer<typeof sectionIndexSchema>

/** Reads sections, and compares each with the index that was made when they were saved. */
export class SectionReader {
  readonly #read: (name: string) => Uint8Array | null
  readonly #index: SectionIndex

  constructor(read: (name: string) => Uint8Array | null, index: SectionIndex) {
    this.#read = read
    this.#index = index
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#index, name)
  }

  bytes(name: string): Uint8Array {
    const bytes = this.#read(name)
    if (bytes === null || !this.has(name)) throw new CheckpointError(`The section ${name} is missing.`)
    const expected = this.#index[name]
    if (bytes.length !== expected.bytes)
      throw new CheckpointError(`The section ${name} has ${bytes.length} bytes instead of ${expected.bytes}.`)
    if (crc32(bytes) !== expected.crc32) throw new CheckpointError(`The section ${name} is damaged.`)
    return bytes
  }

  json<Value>(name: string, schema: z.ZodType<Value>): Value {
    return parseSection(name, Buffer.from(this.bytes(name)).toString(), schema)
  }

  /** Texts of a section, which hold on to its bytes. @param count how many there must be. */
  texts(name: string, count: number): TextColumn {
    const texts = new TextColumn(name, this.bytes(name))
    if (texts.count !== count) throw wrongLength(name)
    return texts
  }

  /** Numbers of a section: views of its bytes, or copies. */
  float64(name: string): Float64Array {
    const bytes = this.bytes(name)
    const length = bytes.length / Float64Array.BYTES_PER_ELEMENT
    if (!Number.isInteger(length)) throw wrongLength(name)
    if (bytes.byteOffset % Float64Array.BYTES_PER_ELEMENT === 0)
      return new Float64Array(bytes.buffer, bytes.byteOffset, length)
    const numbers = new Float64Array(length)
    fill(name, numbers, bytes)
    return numbers
  }

  uint32(name: string): Uint32Array {
    const bytes = this.bytes(name)
    const numbers = new Uint32Array(Math.floor(bytes.length / Uint32Array.BYTES_PER_ELEMENT))
    fill(name, numbers, bytes)
    return numbers
  }

  /** Copies a section into `target`, which it must fill. */
  fill(name: string, target: Numbers): void {
    fill(name, target, this.bytes(name))
  }
}

function fill(name: string, target: Numbers, bytes: Uint8Array): void {
  if (bytes.length !== target.byteLength) throw wrongLength(name)
  new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes)
}

export const wrongLength = (name: string): CheckpointError =>
  new CheckpointError(`The section ${name} does not have the length that others imply.`)

export function parseSection<Value>(name: string, text: string, schema: z.ZodType<Value>): Value {
  const parsed = safeParse(schema, parseJson(text))
  if (!parsed.success) throw new CheckpointError(`The section ${name} does not have the form of one.`)
  return parsed.data
}
