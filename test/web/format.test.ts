// How the console writes numbers, names, and why there is no answer.
import { expect, test } from 'vitest'
import {
  changeClass,
  formatAmount,
  formatAxisPrices,
  formatChange,
  formatChangeShort,
  formatPercent,
  formatPrice,
  formatUsd,
  formatXp,
  symbolText,
} from '../../src/web/format.ts'

test.each([
  [null, '–'],
  [0, '$0'],
  [0.000_000_012_3, '$0.0₇1230'],
  [0.000_065_4, '$0.0₄6540'],
  [0.000_17, '$0.0001700'],
  [0.7, '$0.7000'],
  [0.999_96, '$1.00'],
  [1, '$1.00'],
  [999.999, '$1,000'],
  [12_345, '$12,345'],
  [-0.5, '−$0.5000'],
  [-2, '−$2.00'],
])('the price %s is %s: one that moves keeps its width', (price, text) => {
  expect(formatPrice(price)).toBe(text)
})

test.each([
  [
    [0.000_11, 0.000_1, 0.000_09],
    ['$0.00011', '$0.00010', '$0.00009'],
  ],
  [
    [0.000_012_5, 0.000_01, 0.000_007_5],
    ['$0.0₄125', '$0.0₄100', '$0.0₄075'],
  ],
  [
    [1.2, 1.15, 1.1],
    ['$1.20', '$1.15', '$1.10'],
  ],
  [
    [3_000, 2_000, 1_000],
    ['$3,000', '$2,000', '$1,000'],
  ],
  [
    [0.5, 0, -0.5],
    ['$0.5', '', ''],
  ],
  [
    [4, 2, 0, -2],
    ['$4.00', '$2.00', '', ''],
  ],
  [[0.25], ['$0.2500']],
  [[], []],
])('an axis of %j has the same place last in each price, and none at or below zero', (prices, texts) => {
  // As the chart makes them: by adding steps.
  const step = prices.length > 1 ? (prices[0] ?? 0) - (prices[1] ?? 0) : 0
  const drifted = prices.map((price, at) => (at === 0 ? price : (prices[0] ?? 0) - at * step))
  expect(formatAxisPrices(drifted)).toEqual(texts)
})

test.each([
  [12.34, '▲ 12.3%', '▲ 12.3%', 'up', 'up'],
  [-0.04, '▼ 0.04%', '0.0%', 'down', ''],
  [0.05, '▲ 0.05%', '▲ 0.1%', 'up', 'up'],
  [-0.001, '0.00%', '0.0%', '', ''],
  [0, '0.00%', '0.0%', '', ''],
  [null, '–', '–', '', ''],
])(
  'a change of %s %% has a direction and a colour only where its digits show one',
  (percent, fine, short, fineClass, shortClass) => {
    expect([formatChange(percent), formatChangeShort(percent)]).toEqual([fine, short])
    expect([changeClass(percent), changeClass(percent, 'short')]).toEqual([fineClass, shortClass])
  },
)

test('little is not nothing, and nearly all is not all', () => {
  expect([0, 0.002, 0.05, 1_234_567, -0.003].map((amount) => formatAmount(amount))).toEqual([
    '0',
    '0.0020',
    '0.05',
    '1.23M',
    '−0.0030',
  ])
  expect(formatUsd(0.003)).toBe('$0.0030')
  expect([99.94, 99.97, 100, 100.2].map((percent) => formatPercent(percent))).toEqual([
    '99.9%',
    '99.9%',
    '100.0%',
    '100.2%',
  ])
  expect([0, 0.002, 0.05].map((percent) => formatPercent(percent))).toEqual(['0.0%', '<0.1%', '0.1%'])
  expect([0, 0.4, 99.7, 100].map((percent) => formatPercent(percent, 0))).toEqual([
    '0%',
    '<1%',
    '99%',
    '100%',
  ])
})

test('a token whose symbol shows nothing is called by its mint', () => {
  expect([' \u200b\u3164', 'OK', null].map((symbol) => symbolText(symbol, 'abcdefghijklmnop'))).toEqual([
    'abcd…mnop',
    'OK',
    'abcd…mnop',
  ])
})

test.each([
  [null, '–'],
  [0, '0'],
  [12.5, '12.5'],
  [50, '50'],
  [1_262.5, '1,262.5'],
])('%s XP are %s: halves stay exact', (xp, text) => {
  expect(formatXp(xp)).toBe(text)
})

/** Imported where it is run alone: its types are those of a browser. */
const API = '../../src/web/api.ts'
const { errorText, request } = await import(API)

/** The sentence for an answer of this body. */
const said = (body: string | ReadableStream, status = 200): Promise<string> =>
  request('/health', { fetch: async () => new Response(body, { status }) }).then(() => '', errorText)

const broken = (error: unknown) => new ReadableStream({ pull: (body) => body.error(error) })

test.each([
  ['{"error":"the server’s own sentence"}', 503, 'the server’s own sentence'],
  ['<html></html>', 502, 'The server answered 502.'],
  // It has begun, and does not come to its end.
  [broken(new DOMException('timed out', 'TimeoutError')), 200, 'The server did not answer in time.'],
  [broken(new TypeError('network error')), 200, 'The server cannot be reached.'],
])('%s with status %d: %s', async (body, status, text) => {
  expect(await said(body, status)).toBe(text)
})
