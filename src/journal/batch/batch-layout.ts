// How a batch lies in its frame; README.md has the picture. The head has fixed-size fields; the columns follow, widest first, so
// that each is aligned to its numbers; then the texts, and the events that are no trades, as JSON.

/** Fields of the head, 8 bytes each. `textUnits` equals `textBytes` where the texts are ASCII; else they are UTF-16. */
export const HEAD_FIELDS = [
  'firstEventNo',
  'syncedEventNo',
  'trades',
  'others',
  'mints',
  'feeds',
  'textUnits',
  'textBytes',
  'jsonBytes',
] as const
export const BATCH_HEAD_BYTES = HEAD_FIELDS.length * 8

/** Columns of doubles, in order. */
export const NUMBER_COLUMNS = [
  'atMs',
  'receivedAtMs',
  'tsMs',
  'tokenAmount',
  'solAmount',
  'priceUsd',
  'vSol',
  'vTokens',
  'solPriceUsd',
] as const

/** Further columns of doubles of a batch that holds trades with a quote. */
export const QUOTE_COLUMNS = [
  'quoteAmount',
  'vQuote',
  'quoteReserve',
  'curveTokens',
  'slot',
  'eventIndex',
] as const

/** Length of a text that is null. */
export const NO_TEXT = 0xffff
