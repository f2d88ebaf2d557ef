// In: values, each to its place in a list. Out: the same. Never knows a key.

/** Where a table keeps its values. */
export interface ValueList<Value> {
  push(value: Value): void
  at(place: number): Value
  put(place: number, value: Value): void
  /** Nobody will ask for this one again; its place remains. */
  release(place: number): void
  /** Moves the values of these places together, in this order; the others go. */
  keep(places: readonly number[]): void
}

/** Values of any kind, as they are. */
export class PlainValues<Value> implements ValueList<Value> {
  #values: (Value | undefined)[] = []

  push(value: Value): void {
    this.#values.push(value)
  }

  at(place: number): Value {
    return this.#values[place] as Value
  }

  put(place: number, value: Value): void {
    this.#values[place] = value
  }

  release(place: number): void {
    this.#values[place] = undefined
  }

  keep(places: readonly number[]): void {
    this.#values = places.map((place) => this.#values[place])
  }
}

const NUMBERS_MIN = 64

/** Numbers in 8 bytes each, whatever they are: an array may box them. */
class NumberList implements ValueList<number> {
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

  at(place: number): number {
    return this.#numbers[place]
  }

  put(place: number, value: number): void {
    this.#numbers[place] = value
  }

  release(): void {}

  keep(places: readonly number[]): void {
    const numbers = new Float64Array(Math.max(NUMBERS_MIN, places.length))
    for (let index = 0; index < places.length; index++) numbers[index] = this.#numbers[places[index]]
    this.#numbers = numbers
    this.#length = places.length
  }
}

type FieldsOf<Value, Kind> = {
  [Field in keyof Value]: Value[Field] extends Kind ? Field : never
}[keyof Value]

/** Objects of the same few texts and numbers, a list for each field: an object and its numbers for each of a million entries
 *  would be three times the memory, and all of them the garbage collector's to visit. */
export class Columns<Value extends object> implements ValueList<Value> {
  readonly #names: readonly (keyof Value)[]
  readonly #lists: readonly ValueList<Value[keyof Value]>[]

  /** The names are all that a value has. */
  constructor(texts: readonly FieldsOf<Value, string>[], numbers: readonly FieldsOf<Value, number>[]) {
    this.#names = [...texts, ...numbers]
    this.#lists = [
      ...texts.map(() => new PlainValues<Value[keyof Value]>()),
      ...numbers.map(() => new NumberList() as unknown as ValueList<Value[keyof Value]>),
    ]
  }

  push(value: Value): void {
    for (let index = 0; index < this.#names.length; index++)
      this.#lists[index].push(value[this.#names[index]])
  }

  at(place: number): Value {
    const value: Partial<Value> = {}
    for (let index = 0; index < this.#names.length; index++)
      value[this.#names[index]] = this.#lists[index].at(place)
    return value as Value
  }

  put(place: number, value: Value): void {
    for (let index = 0; index < this.#names.length; index++)
      this.#lists[index].put(place, value[this.#names[index]])
  }

  release(place: number): void {
    for (const list of this.#lists) list.release(place)
  }

  keep(places: readonly number[]): void {
    for (const list of this.#lists) list.keep(places)
  }
}
