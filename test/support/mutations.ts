// Hostile changes to valid messages: wrong types, misleading members (`length`, `toString`, `__proto__`), extreme numbers, deep
// nesting, damaged text. Reproducible from a seed.
import { random } from '../../bench/datasets/random.ts'

type Holder = Record<string, unknown>

const DEEP_MARK = '@deep@'
const DEPTHS = [40, 700, 20_000]
const NAMES = [
  'length',
  'size',
  'toString',
  'valueOf',
  'toJSON',
  '__proto__',
  'constructor',
  'then',
  'has',
  '',
]
const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  0.5,
  1e-320,
  1e308,
  -1e308,
  2 ** 53,
  9e15,
  -9e15,
  1_772_000_000_000_000,
  '',
  '1',
  'NaN',
  '__proto__',
  'toString',
  '\u0000',
  '\ud800',
  '💥'.repeat(40),
  'x'.repeat(3_000),
  '9'.repeat(400),
  [],
  [[]],
  [null],
  {},
  { toString: 1 },
  { toString: { toString: 1 } },
  { valueOf: 1, toString: 1 },
  { toJSON: 1 },
  { constructor: { name: 1 } },
  DEEP_MARK,
]

/** Values that pass as a text or an array if only the length is checked. */
const LENGTHS: readonly unknown[] = [
  { length: { toString: 1 } },
  { length: { valueOf: 1, toString: 1 } },
  { length: [[]] },
  { length: -1 },
  { length: 1e9 },
  { size: { toString: 1 } },
]

export class Mutator {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = random(seed)
  }

  /** A random integer from 0 to `bound` - 1. */
  below(bound: number): number {
    return Math.floor(this.#random() * bound)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]
  }

  /** The message with one to three members changed. */
  value(message: object): unknown {
    const root: Holder = { message: structuredClone(message) }
    for (let changes = 1 + this.below(3); changes > 0; changes--) this.#change(root)
    return root.message
  }

  /** A changed message as JSON text with valid syntax. A mark becomes nesting that is too deep for JSON.stringify. */
  json(message: object): string {
    const text = JSON.stringify(this.value(message)) ?? 'null'
    if (!text.includes(DEEP_MARK)) return text
    const depth = this.#random() < 0.98 ? DEPTHS[0] : this.pick(DEPTHS)
    const [open, close] = this.pick([
      ['[', ']'],
      ['{"length":', '}'],
      ['{"errors":', '}'],
    ])
    return text.replaceAll(`"${DEEP_MARK}"`, () => `${open.repeat(depth)}0${close.repeat(depth)}`)
  }

  /** The bytes with some changed, cut off or repeated. */
  bytes(whole: Uint8Array): Buffer {
    let bytes = Buffer.from(whole)
    for (let changes = 1 + this.below(4); changes > 0 && bytes.length > 0; changes--) {
      const at = this.below(bytes.length)
      const kind = this.below(4)
      if (kind === 0) bytes[at] = this.below(256)
      else if (kind === 1) bytes[at] ^= 1 << this.below(8)
      else if (kind === 2) bytes = bytes.subarray(0, at)
      else bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(this.below(at + 1))])
    }
    return bytes
  }

  #change(root: Holder): void {
    const [holder, name] = this.#place(root)
    const kind = this.below(6)
    const value = holder[name]
    if (kind === 0 && holder !== root) delete holder[name]
    else if (kind === 1) holder[name] = [value, value]
    else if (kind === 2 && typeof value === 'object' && value !== null && !Array.isArray(value))
      define(value as Holder, this.pick(NAMES), structuredClone(this.pick(VALUES)))
    else holder[name] = structuredClone(this.pick(kind === 3 ? LENGTHS : VALUES))
  }

  /** A random member at any depth of the message. */
  #place(root: Holder): [Holder, string] {
    let holder = root
    let name = 'message'
    for (;;) {
      const value = holder[name]
      if (typeof value !== 'object' || value === null || this.#random() < 0.15) return [holder, name]
      const names = Object.keys(value)
      if (names.length === 0) return [holder, name]
      holder = value as Holder
      name = this.pick(names)
    }
  }
}

/** Defines a member, also an own member `__proto__` as JSON.parse does. */
function define(holder: Holder, name: string, value: unknown): void {
  Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true })
}
