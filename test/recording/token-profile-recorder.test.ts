// The store refuses some rows, or all rows for a while. A row that cannot be stored is given up alone, and a store in trouble
// loses no row.
import { expect, test } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { TokenProfileRecorder } from '../../src/recording/token-profile-recorder.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import type { Row } from '../../src/schema/tables.ts'

const START_MS = 1_772_000_000_000
const TRIES_MAX = 200

/** A recorder whose store refuses rows with `bad` names, and every row while it is down. */
function recording(bad: ReadonlySet<string>) {
  const stored: string[] = []
  const refused: string[] = []
  const store = { isDown: false }
  const commit = async (rows: readonly Row[]) => {
    if (store.isDown) throw new Error('no room on the disk')
    const names = rows.map(({ name }) => name as string)
    if (names.some((name) => bad.has(name))) throw new Error('a value is out of range')
    stored.push(...names)
  }
  const recorder = new TokenProfileRecorder(commit, (mint) => refused.push(mint))
  const market = new Market({ tokensMax: 2_000, onProfileChanged: (mint) => recorder.note(mint) })
  const say = (name: string, mint = mintOfSymbol(name)) =>
    market.apply({ type: 'token', mint, ts: START_MS, name, symbol: 'S' }, START_MS)
  /** Writes until no token waits, at most `triesMax` times. @returns how many commits failed. */
  const writeAll = async (triesMax = TRIES_MAX) => {
    let failures = 0
    for (let tries = 0; tries < triesMax; tries++) {
      try {
        if (!(await recorder.write(market))) break
      } catch {
        failures++
      }
    }
    return failures
  }
  return { stored, refused, store, recorder, say, writeAll }
}
const numbered = (count: number) => Array.from({ length: count }, (_, at) => `token ${at}`)

test('rows that the store refuses are given up and reported one by one, and all others are recorded', async () => {
  const names = numbered(600)
  const bad = new Set([names[0], names[77], names[300], names[599]])
  const { stored, refused, recorder, say, writeAll } = recording(bad)
  for (const name of names) say(name)
  await writeAll()
  expect(stored.toSorted()).toEqual(names.filter((name) => !bad.has(name)).toSorted())
  expect(refused.toSorted()).toEqual([...bad].map(mintOfSymbol).toSorted())
  expect(recorder.stats()).toEqual({ waiting: 0, dropped: 0, refused: 4 })
})

test('a token whose row was given up is recorded with its next change', async () => {
  const { stored, say, writeAll } = recording(new Set(['bad']))
  for (const name of ['bad', 'good', 'better']) say(name)
  await writeAll()
  say('mended', mintOfSymbol('bad'))
  await writeAll()
  expect(stored.toSorted()).toEqual(['better', 'good', 'mended'])
})

test('while the store is down no row is given up, each try is one commit, and all rows are recorded when it is up again', async () => {
  const { stored, refused, store, recorder, say, writeAll } = recording(new Set())
  const names = numbered(400)
  for (const name of names) say(name)
  store.isDown = true
  expect(await writeAll(50)).toBe(50)
  expect(recorder.stats()).toEqual({ waiting: 400, dropped: 0, refused: 0 })
  store.isDown = false
  expect(await writeAll()).toBe(0)
  expect(stored.toSorted()).toEqual(names.toSorted())
  expect(refused).toEqual([])
})
