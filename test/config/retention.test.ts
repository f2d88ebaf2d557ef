// `--retain`: how long rows stay in the lake, in one setting.
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from '../../src/config/config.ts'

const retainOf = (text: string) => readConfig(['--retain', text], {}).store.retain
const STANDARD = { days: 30, bytesMax: 20e9, diskPct: 20 }

function errorOf(args: string[], env: Record<string, string> = {}): string {
  try {
    readConfig(args, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

describe('retention', () => {
  test('is that of the default where nothing is said', () => {
    expect(readConfig([], {}).store.retain).toEqual({ days: {}, events: STANDARD, unaskedPct: 10 })
  })

  test.each([
    ['bars=30', { days: { bars: 30 }, events: STANDARD, unaskedPct: 10 }],
    [
      'training=90, bars=30d,outcomes=0',
      { days: { training: 90, bars: 30 }, events: STANDARD, unaskedPct: 10 },
    ],
    ['rejections=1,unasked=100', { days: { rejections: 1 }, events: STANDARD, unaskedPct: 100 }],
    // What is said of trades is all that holds for them.
    ['trades=7d|50gb', { days: {}, events: { days: 7, bytesMax: 50e9, diskPct: 0 }, unaskedPct: 10 }],
    ['trades=5%', { days: {}, events: { days: 0, bytesMax: 0, diskPct: 5 }, unaskedPct: 10 }],
    ['trades=0', { days: {}, events: { days: 0, bytesMax: 0, diskPct: 0 }, unaskedPct: 10 }],
  ])('is what %s says', (text, expected) => {
    expect(retainOf(text)).toEqual(expected)
  })

  test.each([
    ['xp_ledger=3', '"xp_ledger=3" is not of the form NAME=VALUE, with a name of training, rejections, bars'],
    ['bars', '"bars" is not of the form NAME=VALUE'],
    ['bars=3=4', '"bars" must be a whole number with d'],
    ['bars=1', '"bars" must be 0 or at least 2'],
    ['bars=2gb', '"bars" must be a whole number with d, such as 30d'],
    ['bars=40000', '"bars" must be at most 36500d'],
    ['bars=3,bars=4', 'names bars twice'],
    ['trades=30d|', '"trades" must be a whole number with d or gb or %'],
    ['trades=30d|20d', '"trades" names a limit twice'],
    ['trades=101%', '"trades" must be at most 100%'],
    ['trades=1.5gb', '"trades" must be a whole number'],
    ['unasked=3d', '"unasked" must be a whole number with %, such as 30%'],
  ])('refuses %s with the reason', (text, reason) => {
    expect(errorOf(['--retain', text])).toContain(reason)
  })
})
