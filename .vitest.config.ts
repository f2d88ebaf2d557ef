// How the tests are run. Two files at a time: the machine the suite is sized for has two cores.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Servers that tests start need not compile what the one before has compiled; see scripts/compile-cache.mjs. */
const NODE_COMPILE_CACHE = fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url))
const NODE_OPTIONS = `--import=${new URL('scripts/strip-cache.mjs', import.meta.url).href}`

/** The files that take longest begin first: none of them is left to run alone at the end. A fresh clone has no record of
 *  earlier runs, and their size does not tell. */
const LONGEST = [
  'store/process/kill.fault',
  'bench',
  'web/console',
  'server/process.fault',
  'server/failing-sync.fault',
  'store/lake/catalog',
  'store/lake/lake',
]
const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
  return rank === -1 ? LONGEST.length : rank
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b))
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    env: { NODE_COMPILE_CACHE, NODE_OPTIONS },
  },
})
