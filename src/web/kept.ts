// What the browser keeps for this page: for good, or as long as the tab. Where it keeps no data of sites, it is kept until the page
// is closed.

class Kept {
  readonly #area: () => Storage
  /** What could not be handed to the browser. */
  readonly #own = new Map<string, string>()

  /** @param area to reach it fails where site data is blocked */
  constructor(area: () => Storage) {
    this.#area = area
  }

  get(name: string): string | null {
    try {
      return this.#own.get(name) ?? this.#area().getItem(name)
    } catch {
      return null
    }
  }

  /** @param value null: it is forgotten */
  set(name: string, value: string | null): void {
    this.#own.delete(name)
    try {
      if (value === null) this.#area().removeItem(name)
      else this.#area().setItem(name, value)
    } catch {
      if (value !== null) this.#own.set(name, value)
    }
  }
}

export const keptForGood = new Kept(() => localStorage)
export const keptInTab = new Kept(() => sessionStorage)
