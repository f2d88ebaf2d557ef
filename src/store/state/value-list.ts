// Lists that a KeyedTable stores its values in: as they are, or column by column to save memory.

/** Values by their index. */
export interface ValueList<Value> {
  push(value: Value): void
  at(index: number): Value
  put(index: number, value: Value): void
  /** Drops the value; its index stays taken. */
  release(index: number): void
  /** Keeps only the values at these indexes, in this order, and renumbers them from 0. */
  keep(indexes: readonly number[]): void
}

/** Values of any type. */
export class PlainValues<Value> implements ValueList<Value> {
  #values: (Value | undefined)[] = []

  push(value: Value): void {
    this.#values.push(value)
  }

  at(index: number): Value {
    return this.#values[index] as Value
  }

  put(index: number, value: Value): void {
    this.#values[index] = value
  }

  release(index: number): void {
    this.#values[index] = undefined
  }

  keep(indexes: readonly number[]): void {
    this.#values = indexes.map((index) => this.#values[index])
  }
}

const NUMBERS_MIN = 64

/** Numbers in 8 bytes each. A plain array may store them as heap objects. */
export class NumberList implements ValueList<number> {
  #numbers = new Float64Array(NUMBERS_MIN)
  #length = 0

  push(value: number): void {
    if (this.#length === this.#numbers.length) {
      const more = new Float64Array(this.#length * 2)
      more.set(this.#numbers)
      this.#numbers = more
    }
    this.#numbers[this.#length++] = value
  }

  at(index: number): number {
    return this.#numbers[index]
  }

  put(index: number, value: number): void {
    this.#numbers[index] = value
  }

  release(): void {}

  keep(indexes: readonly number[]): void {
    const numbers = new Float64Array(Math.max(NUMBERS_MIN, indexes.length))
    for (let index = 0; index < indexes.length; index++) numbers[index] = this.#numbers[indexes[index]]
    this.#numbers = numbers
    this.#length = indexes.length
  }
}

type FieldsOf<Value, Kind> = {
  [Field in keyof Value]: Value[Field] extends Kind ? Field : never
}[keyof Value]

/**
 * Objects that have the same few text and number fields, as one list for each field. A million objects would take three times
 * the memory, and the garbage collector would visit each of them.
 */
export class Columns<Value extends object> implements ValueList<Value> {
  readonly #names: readonly (keyof Value)[]
  readonly #lists: readonly ValueList<Value[keyof Value]>[]

  /** The two lists name all fields of a value. */
  constructor(texts: readonly FieldsOf<Value, string>[], numbers: readonly FieldsOf<Value, number>[]) {
    this.#names = [...texts, ...numbers]
    this.#lists = [
      ...texts.map(() => new PlainValues<Value[keyof Value]>()),
      ...numbers.map(() => new NumberList() as unknown as ValueList<Value[keyof Value]>),
    ]
  }

  push(value: Value): void {
    for (let field = 0; field < this.#names.length; field++)
      this.#lists[field].push(value[this.#names[field]])
  }

  at(index: number): Value {
    const value: Partial<Value> = {}
    for (let field = 0; field < this.#names.length; field++)
      value[this.#names[field]] = this.#lists[field].at(index)
    return value as Value
  }

  put(index: number, value: Value): void {
    for (let field = 0; field < this.#names.length; field++)
      this.#lists[field].put(index, value[this.#names[field]])
  }

  release(index: number): void {
    for (const list of this.#lists) list.release(index)
  }

  keep(indexes: readonly number[]): void {
    for (const list of this.#lists) list.keep(indexes)
  }
}
