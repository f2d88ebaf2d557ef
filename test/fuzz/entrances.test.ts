// Seeded hostile input for every entrance. MINTLAKE_FUZZ_CASES=2000000 makes it a long run; MINTLAKE_FUZZ_SEED chooses other cases.
import { expect, test } from 'vitest'
import { Mutator } from '../support/mutations.ts'
import { entrances } from './entrances.ts'

const CASES = Number(process.env.MINTLAKE_FUZZ_CASES ?? 8_000)
const SEED = Number(process.env.MINTLAKE_FUZZ_SEED ?? 1)
/** Far longer than a case takes, even on a busy machine. */
const MS_PER_CASE_MAX = 5

const names = Object.keys(entrances())
const casesEach = Math.ceil(CASES / names.length)

test.each(names)(
  'hostile data is taken or refused, never thrown back: %s',
  async (name) => {
    const take = entrances()[name]
    const faults: string[] = []
    for (let at = 0; at < casesEach && faults.length < 3; at++) {
      try {
        await take(new Mutator(SEED * 1_000_003 + at))
      } catch (error) {
        faults.push(`case ${at} of seed ${SEED}: ${(error as Error).stack}`)
      }
    }
    expect(faults).toEqual([])
  },
  60_000 + casesEach * MS_PER_CASE_MAX,
)
