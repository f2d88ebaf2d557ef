import { hash } from 'node:crypto'
import type { Market } from '../../market/market.ts'
import type { ListFilter, RowFields } from '../../market/types.ts'
import { mintOfRow } from '../encode/ndjson-rows.ts'
import { FOLLOW_ROWS_MAX } from '../limits.ts'
import type { Channel } from './channel.ts'
import { Chunk, type Message, type StreamPosition } from './chunk.ts'
import type { MarketRequest } from './market-channel.ts'

/** A part of a sorted list. */
export interface WindowRequest extends MarketRequest {
  filter: ListFilter | null
  fields: RowFields | null
}

/** The window as its followers know it. */
interface WindowState {
  /** Counted from 1. */
  number: number
  seq: number
  total: number
  mints: readonly string[]
  lines: readonly Buffer[]
}

const NAME_CHARACTERS = 16

/** The same for the same window. */
const windowName = (request: WindowRequest): string => {
  const { tab, sort, order, offset, limit, filter, fields } = request
  const text = JSON.stringify([tab, sort, order, offset, limit, filter, fields?.key ?? null])
  return `window:${hash('sha1', text, 'base64url').slice(0, NAME_CHARACTERS)}`
}

/**
 * The rows in a window of a sorted list, or of a set of tokens: all of them first, then once in a while the rows that are others than
 * before, and the order where it has changed. Who has missed something is sent the whole window.
 */
export class WindowChannel implements Channel {
  readonly name: string
  readonly key: string
  readonly mint = null
  readonly isPaced = true
  readSeq = 0
  readonly #market: Market
  readonly #request: WindowRequest
  #state: WindowState | null = null
  /** What leads from the state before to this one, and from nothing to it. */
  #step: Chunk | null = null
  #whole: Chunk | null = null
  #isDue = true

  constructor(market: Market, request: WindowRequest) {
    this.name = windowName(request)
    this.key = this.name
    this.#market = market
    this.#request = request
  }

  /** Never: the whole window takes the place of what was missed. */
  isLost(): boolean {
    return false
  }

  changes(position: StreamPosition): Chunk | null {
    const state = this.#refresh()
    if (position.state === `${state.number}`) return null
    if (position.state === `${state.number - 1}` && this.#step !== null) return this.#step
    this.#whole ??= this.#chunk(state, state.lines, true)
    return this.#whole
  }

  /** Rows that a new follower is sent. */
  countRows(): number {
    return this.#refresh().lines.length
  }

  /** It has no other beginning than the whole window, which `changes` gives. */
  reopen(): never {
    throw new Error('a window is never lost')
  }

  /** The pace at which this is called is that of the window. */
  hasMoved(): boolean {
    this.#isDue = true
    return true
  }

  /** The window as of now, where its time has come; else the state that is known. */
  #refresh(): WindowState {
    if (this.#state !== null && !this.#isDue) return this.#state
    this.#isDue = false
    const before = this.#state
    const { seq } = this.#market
    this.readSeq = seq
    const { total, mints, lines } = this.#read()
    const linesBefore = new Map(before?.mints.map((mint, index) => [mint, before.lines[index]]))
    const changed = lines.filter((line, index) => {
      const known = linesBefore.get(mints[index] ?? '')
      return known === undefined || (known !== line && !known.equals(line))
    })
    const isOrdered = before !== null && isEqual(before.mints, mints)
    if (isOrdered && changed.length === 0 && before.total === total) return before
    const state = { number: (before?.number ?? 0) + 1, seq, total, mints, lines }
    this.#state = state
    this.#step = before === null ? null : this.#chunk(state, changed, !isOrdered)
    this.#whole = null
    return state
  }

  #read(): Pick<WindowState, 'total' | 'mints' | 'lines'> {
    const { tab, sort, order, offset, limit, filter, fields } = this.#request
    const page =
      filter === null
        ? this.#market.page({ tab, sort, order, offset, limit, fields })
        : this.#market.freeze(tab, sort, filter).page(order, offset, limit, fields)
    return { total: page.total, mints: page.lines.map(mintOfRow), lines: page.lines }
  }

  /** Rows in messages of a bounded size, of which the last one tells where the window is, and its order if it is wanted. */
  #chunk(state: WindowState, lines: readonly Buffer[], withOrder: boolean): Chunk {
    const { seq, total, mints } = state
    const { offset } = this.#request
    const next = { seq, barMs: 0, state: `${state.number}` }
    const unknown = { seq, barMs: 0, state: '' }
    const messages: Message[] = []
    for (let at = 0; at + FOLLOW_ROWS_MAX < lines.length; at += FOLLOW_ROWS_MAX) {
      const rows = Buffer.concat(lines.slice(at, at + FOLLOW_ROWS_MAX))
      messages.push({ head: { event: 'window', channel: this.name }, rows, next: unknown })
    }
    const rest = Buffer.concat(lines.slice(messages.length * FOLLOW_ROWS_MAX))
    const about = { seq, ts: this.#market.timeMs, offset, total, ...(withOrder && { order: mints }) }
    messages.push({
      head: { event: 'window', channel: this.name, ...about },
      rows: rest,
      next,
      hasHeadLine: true,
    })
    return new Chunk(messages, next)
  }
}

const isEqual = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((mint, index) => mint === b[index])
