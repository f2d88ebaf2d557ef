// Collects events and encodes them as the frame of a batch. Trades go to columns and their texts to one long string that is
// written at once, since this is done on the event loop for every trade: about 0.8 µs, encoding and checksum included. msgpackr with
// records took 1.6 to 2.4 µs, JSON 3.3, writing each text to a buffer on its own 1.0 (README.md says how they were measured).
import { assert } from '../../lib/assert.ts'
import { recordFrom } from '../../lib/record.ts'
import { hasQuoteFields, type MarketEvent, type TradeEvent } from '../../schema/event.ts'
import { BATCH_CHARACTERS_MAX, BATCH_EVENTS_MAX, BATCH_FEEDS_MAX, TEXT_CHARACTERS_MAX } from '../limits.ts'
import { FRAME_HEAD_BYTES, sealFrame } from '../segments/format.ts'
import { BATCH_HEAD_BYTES, HEAD_FIELDS, NO_TEXT, NUMBER_COLUMNS, QUOTE_COLUMNS } from './batch-layout.ts'
import { MintIndexes } from './mint-indexes.ts'

const newColumn = (): Float64Array => new Float64Array(BATCH_EVENTS_MAX)

export class BatchEncoder {
  /** Events collected. */
  count = 0
  #trades = 0
  readonly #numbers = recordFrom(NUMBER_COLUMNS, newColumn)
  /** In the order of QUOTE_COLUMNS, and the index of the quote's mint; null: no trade so far has them. */
  #quotes: { numbers: readonly Float64Array[]; mintIndex: Uint32Array } | null = null
  readonly #mintIndex = new Uint32Array(BATCH_EVENTS_MAX)
  readonly #walletUnits = new Uint16Array(BATCH_EVENTS_MAX)
  readonly #txUnits = new Uint16Array(BATCH_EVENTS_MAX)
  readonly #isBuy = new Uint8Array(BATCH_EVENTS_MAX)
  readonly #feedIndex = new Uint8Array(BATCH_EVENTS_MAX)
  /** Of tokens and of quotes. */
  readonly #mints = new MintIndexes(2 * BATCH_EVENTS_MAX)
  readonly #feeds = new Map<string, number>()
  /** Mints, in the order of their indexes; wallets and transactions, in the order of trades. */
  #mintText = ''
  #tradeText = ''
  /** Other events as JSON, separated by commas. */
  #json = ''

  /** No further event may be added. */
  get isFull(): boolean {
    return (
      this.count >= BATCH_EVENTS_MAX ||
      this.#tradeText.length + this.#json.length >= BATCH_CHARACTERS_MAX ||
      this.#feeds.size >= BATCH_FEEDS_MAX
    )
  }

  /** As `EventJournal.append`. */
  add(event: MarketEvent, atMs: number, receivedAtMs: number, feed: string, solPriceUsd: number): void {
    assert(!this.isFull, 'a full batch takes no event')
    if (event.type === 'trade') this.#addTrade(event, atMs, receivedAtMs, feed, solPriceUsd)
    else {
      const text = JSON.stringify([this.count, atMs, receivedAtMs, feed, event])
      this.#json += this.#json === '' ? text : `,${text}`
    }
    this.count++
  }

  #addTrade(trade: TradeEvent, atMs: number, receivedAtMs: number, feed: string, solPriceUsd: number): void {
    const at = this.#trades++
    const numbers = this.#numbers
    numbers.atMs[at] = atMs
    numbers.receivedAtMs[at] = receivedAtMs
    numbers.tsMs[at] = trade.ts
    numbers.tokenAmount[at] = trade.tokenAmount
    numbers.solAmount[at] = trade.solAmount ?? Number.NaN
    numbers.priceUsd[at] = trade.priceUsd ?? Number.NaN
    numbers.vSol[at] = trade.vSol ?? Number.NaN
    numbers.vTokens[at] = trade.vTokens ?? Number.NaN
    numbers.solPriceUsd[at] = solPriceUsd
    this.#isBuy[at] = trade.side === 'buy' ? 1 : 0
    this.#mintIndex[at] = this.#indexMint(trade.mint)
    this.#feedIndex[at] = indexText(this.#feeds, feed)
    this.#walletUnits[at] = this.#addText(trade.wallet)
    this.#txUnits[at] = this.#addText(trade.tx)
    if (this.#quotes !== null || hasQuoteFields(trade)) this.#addQuote(trade, at)
  }

  #addQuote(trade: TradeEvent, at: number): void {
    // Trades before the first with a quote have none.
    this.#quotes ??= {
      numbers: QUOTE_COLUMNS.map(() => newColumn().fill(Number.NaN)),
      mintIndex: new Uint32Array(BATCH_EVENTS_MAX),
    }
    const { numbers, mintIndex } = this.#quotes
    QUOTE_COLUMNS.forEach((name, column) => {
      numbers[column][at] = trade[name] ?? Number.NaN
    })
    mintIndex[at] = trade.quoteMint == null ? 0 : this.#indexMint(trade.quoteMint) + 1
  }

  #indexMint(mint: string): number {
    const { count } = this.#mints
    const index = this.#mints.add(mint)
    if (index === count) this.#mintText += mint
    return index
  }

  /** @returns its length. */
  #addText(text: string | null | undefined): number {
    if (text == null) return NO_TEXT
    const kept = text.length <= TEXT_CHARACTERS_MAX ? text : text.slice(0, TEXT_CHARACTERS_MAX)
    this.#tradeText += kept
    return kept.length
  }

  /** Encodes the events as a frame, and is empty afterwards. @param syncedEventNo the last event that is durable by now */
  encode(firstEventNo: number, syncedEventNo: number): Buffer {
    const feeds = [...this.#feeds.keys()]
    const text = this.#mintText + feeds.join('') + this.#tradeText
    const jsonBytes = Buffer.byteLength(this.#json)
    const columns = this.#columns(this.#mints.lengths(), lengthsOf(feeds))
    const columnBytes = columns.reduce((sum, column) => sum + column.byteLength, 0)
    const textAt = FRAME_HEAD_BYTES + BATCH_HEAD_BYTES + columnBytes
    // Nearly always ASCII. Otherwise two bytes for each unit, which keep every string as it is.
    const isAscii = Buffer.byteLength(text) === text.length
    const textBytes = isAscii ? text.length : 2 * text.length
    const kind = this.#quotes === null ? 'batch' : 'quotedBatch'
    const frame = Buffer.allocUnsafeSlow(textAt + textBytes + jsonBytes)
    const counts = [this.#trades, this.count - this.#trades, this.#mints.count, feeds.length, text.length]
    const head = [firstEventNo, syncedEventNo, ...counts, textBytes, jsonBytes]
    HEAD_FIELDS.forEach((_, index) => void frame.writeDoubleLE(head[index], FRAME_HEAD_BYTES + index * 8))
    let at = FRAME_HEAD_BYTES + BATCH_HEAD_BYTES
    for (const { buffer, byteOffset, byteLength } of columns) {
      frame.set(new Uint8Array(buffer, byteOffset, byteLength), at)
      at += byteLength
    }
    frame.write(text, textAt, isAscii ? 'latin1' : 'utf16le')
    frame.write(this.#json, textAt + textBytes)
    this.#clear()
    return sealFrame(frame, kind)
  }

  /** In the order of the layout. */
  #columns(mintUnits: Uint16Array, feedUnits: Uint16Array) {
    const trades = this.#trades
    return [
      ...NUMBER_COLUMNS.map((name) => this.#numbers[name].subarray(0, trades)),
      ...(this.#quotes?.numbers.map((column) => column.subarray(0, trades)) ?? []),
      this.#mintIndex.subarray(0, trades),
      ...(this.#quotes === null ? [] : [this.#quotes.mintIndex.subarray(0, trades)]),
      this.#walletUnits.subarray(0, trades),
      this.#txUnits.subarray(0, trades),
      mintUnits,
      feedUnits,
      this.#isBuy.subarray(0, trades),
      this.#feedIndex.subarray(0, trades),
    ]
  }

  #clear(): void {
    this.count = 0
    this.#trades = 0
    this.#quotes = null
    this.#mints.clear()
    this.#feeds.clear()
    this.#mintText = this.#tradeText = this.#json = ''
  }
}

function indexText(indexes: Map<string, number>, text: string): number {
  const known = indexes.get(text)
  if (known !== undefined) return known
  indexes.set(text, indexes.size)
  return indexes.size - 1
}

const lengthsOf = (texts: readonly string[]): Uint16Array => Uint16Array.from(texts, ({ length }) => length)
