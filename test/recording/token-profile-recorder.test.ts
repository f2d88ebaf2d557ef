// In: tokens that change, and a store that refuses some of their rows, or all of them for a while. Out: proof that a row
// which cannot be stored costs its own token alone, and that a store in trouble costs nobody.
import { expect, test } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { createTokenProfileRecorder } from '../../src/recording/token-profile-recorder.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import type { Row } from '../../src/schema/tables.ts'

const START_MS = 1_772_000_000_000
const TRIES_MAX = 200

/** Tokens on their way to a store that refuses rows of `bad` names, and everything while it is down. */
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
  const recorder = createTokenProfileRecorder(commit, (mint) => refused.push(mint))
  const market = new Market({ tokensMax: 2_000, onProfile: recorder.note })
  const say = (name: string, mint = mintOfSymbol(name)) =>
    market.apply({ type: 'token', mint, ts: START_MS, name, symbol: 'S' }, START_MS)
  /** Writes until nothing waits, or so many times. @returns how many commits failed. */
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

test('rows that the store refuses are set aside one by one and told of, and all their neighbours are recorded', async () => {
  const names = numbered(600)
  const bad = new Set([names[0], names[77], names[300], names[599]])
  const { stored, refused, recorder, say, writeAll } = recording(bad)
  for (const name of names) say(name)
  await writeAll()
  expect(stored.toSorted()).toEqual(names.filter((name) => !bad.has(name)).toSorted())
  expect(refused.toSorted()).toEqual([...bad].map(mintOfSymbol).toSorted())
  expect(recorder.stats()).toEqual({ waiting: 0, dropped: 0, refused: 4 })
})

test('a token that was set aside is recorded with its next change', async () => {
  const { stored, say, writeAll } = recording(new Set(['bad']))
  for (const name of ['bad', 'good', 'better']) say(name)
  await writeAll()
  say('mended', mintOfSymbol('bad'))
  await writeAll()
  expect(stored.toSorted()).toEqual(['better', 'good', 'mended'])
})

test('while the store is down nothing is set aside, each try is one commit, and all is recorded once it is up again', async () => {
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
