// What comes while a feed fetches what it missed: kept in the order in which it came, up to a size.
import { HELD_BYTES_MAX } from '../limits.ts'
import type { RawEvent } from '../transaction-events.ts'

/** A transaction that did not fail, with its events, whoever told of it. */
export interface ToldTransaction {
  slot: number
  signature: string
  events: readonly RawEvent[]
  /** More of its events have to be fetched. */
  isTruncated: boolean
}

/** What an entry and each of its events take besides the bytes of the events, about. */
const ENTRY_BYTES = 300
const bytesOf = ({ events }: ToldTransaction): number =>
  events.reduce((sum, { bytes }) => sum + ENTRY_BYTES + bytes.length, ENTRY_BYTES)

/**
 * A queue of at most `bytesMax`. At the maximum the oldest give way: what they told is of slots before `firstSlot`, and has to be
 * fetched.
 */
export class HeldNotifications {
  /** Notifications that gave way. */
  dropped = 0
  /** All that was told of this slot and later ones is here; null: it is not known yet from which slot on. */
  firstSlot: number | null = null
  /** When that slot began, Unix ms. */
  firstMs = 0
  bytes = 0
  readonly #bytesMax: number
  #entries: ToldTransaction[] = []
  #first = 0

  constructor(bytesMax = HELD_BYTES_MAX) {
    this.#bytesMax = bytesMax
  }

  get size(): number {
    return this.#entries.length - this.#first
  }

  /** @param nowMs when it came, Unix ms */
  add(told: ToldTransaction, nowMs: number): void {
    this.#entries.push(told)
    this.bytes += bytesOf(told)
    while (this.bytes > this.#bytesMax && this.size > 1) {
      const { slot = 0 } = this.take() ?? {}
      this.dropped++
      if (this.firstSlot === null || slot < this.firstSlot) continue
      this.firstSlot = slot + 1
      // When that slot began is not known: it was before now.
      this.firstMs = nowMs
    }
  }

  /** Takes the oldest. */
  take(): ToldTransaction | undefined {
    const told = this.#entries[this.#first]
    if (told === undefined) return undefined
    this.bytes -= bytesOf(told)
    this.#first++
    if (this.#first * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first)
      this.#first = 0
    }
    return told
  }

  /** The earliest with events of this slot or a later one. */
  firstFrom(slot: number): ToldTransaction | undefined {
    let first: ToldTransaction | undefined
    for (let index = this.#first; index < this.#entries.length; index++) {
      const told = this.#entries[index]
      if (
        told.slot >= slot &&
        told.events.length > 0 &&
        told.slot < (first?.slot ?? Number.POSITIVE_INFINITY)
      )
        first = told
    }
    return first
  }

  /** Puts what is held in the order of its slots: nothing else says the order where events before it are missing. */
  sort(): void {
    this.#entries = this.#entries.slice(this.#first).sort((a, b) => a.slot - b.slot)
    this.#first = 0
  }
}
