// @module-tag drill
// The simulation as a program: it says the same each time, finds what is planted, and finds nothing in the source as it is.
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { expect, it, onTestFinished } from 'vitest'
import { runSimulation as run } from '../support/simulation.ts'
import { PLANTED } from './planted.ts'

const MINUTE_MS = 60_000
/** Seeds within which a planted bug has to be found. */
const SEEDS_MAX = 300

it('the same seed gives the same trace in fresh processes, on a busy machine and behind another seed too', {
  timeout: 5 * MINUTE_MS,
}, async () => {
  // Both seeds have readers.
  const args = ['85', '--runs', '2', '--steps', '120', '--json']
  const alone = await run(...args)
  const [second] = JSON.parse((await run('86', '--steps', '120', '--json')).text).hashes
  const busy = Array.from({ length: 2 * availableParallelism() }, () =>
    spawn(process.execPath, ['-e', 'for (;;);']),
  )
  onTestFinished(() => {
    for (const child of busy) child.kill('SIGKILL')
  })
  const beside = await run(...args)
  expect(busy.every(({ exitCode, signalCode }) => exitCode === null && signalCode === null)).toBe(true)
  const [first, again] = [alone, beside].map(({ text }) => JSON.parse(text))
  expect(first.hashes).toEqual([expect.any(String), second])
  expect(again).toEqual(first)
})

it('a lake of DuckDB and Parquet answers as the modelled one and has its rows', {
  timeout: 10 * MINUTE_MS,
}, async () => {
  const args = ['30003', '--steps', '120', '--json']
  const runs = [await run(...args, '--duckdb'), await run(...args)]
  const [real, modelled] = runs.map(({ text }) => JSON.parse(text))
  expect(real.failure).toBeNull()
  expect(real.counts['checked: the real lake has the rows of the modelled one']).toBeGreaterThan(50)
  // The model alone leads to the same.
  expect(modelled.hashes).toEqual(real.hashes)
})

it('backups of a lake whose process ends within requests have what was acknowledged, also once they are repaired', {
  timeout: 10 * MINUTE_MS,
}, async () => {
  const { text } = await run('34009', '--steps', '120', '--beyond', '--json')
  const { counts, failure } = JSON.parse(text)
  expect(failure).toBeNull()
  expect(counts['backups restored']).toBeGreaterThan(0)
  expect(counts['backups restored and repaired']).toBeGreaterThan(0)
  expect(counts['fault: lake ends within a request']).toBeGreaterThan(0)
  // Those of the live lake, of which bytes change at the end.
  expect(counts['files of the lake that are lost']).toBeGreaterThan(0)
})

it('as many seeds as fit into a minute fail nowhere', { timeout: 5 * MINUTE_MS }, async () => {
  const { code, text } = await run('20001', '--minutes', '1')
  expect(text).toMatch(/seeds from 20001 in/)
  expect(code, text).toBe(0)
  console.log(/\d+ seeds from.*/.exec(text)?.[0])
})

it('no seed that has shown a bug shows one', { timeout: 5 * MINUTE_MS }, async () => {
  const { code, text } = await run('--again')
  expect(code, text).toBe(0)
})

it.each(Object.entries(PLANTED))(
  'planted and found: %s',
  { timeout: 15 * MINUTE_MS },
  async (name, { seed, steps, violates }) => {
    const { failure } = JSON.parse(
      (await run(`${seed}`, '--steps', `${steps}`, '--runs', `${SEEDS_MAX}`, '--plant', name, '--json')).text,
    )
    expect(failure?.invariant).toBe(violates)
    if (failure.seed !== seed) console.log(`${name} is found by seed ${failure.seed}: note it in planted.ts`)
  },
)

it('a run that fails says where, what came before, and how to see it again in fewer steps', {
  timeout: 5 * MINUTE_MS,
}, async () => {
  const name = 'state-not-replayed'
  const { code, text } = await run(`${PLANTED[name].seed}`, '--plant', name)
  expect(code).toBe(1)
  const commands = [...text.matchAll(/again: npm run simulate -- (\d+) --steps (\d+)/g)]
  expect(commands.map(([, seed]) => Number(seed))).toEqual([PLANTED[name].seed, PLANTED[name].seed])
  const [whole, smaller] = commands.map(([, , steps]) => Number(steps))
  expect(smaller).toBeLessThan(whole)
  expect(text.match(/the last events/g)).toHaveLength(2)
})
