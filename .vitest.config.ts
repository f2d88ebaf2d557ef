// How the tests are run. `npm test` leaves out the drills, which are long; `npm run test:drills` runs them alone.
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { MERGE_NICENESS } from './src/store/limits.ts'
import { bundlePrograms } from './test/support/programs/bundle.ts'

/** Servers that tests start need not compile what the one before has compiled; see scripts/compile-cache.mjs. */
const NODE_COMPILE_CACHE = fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url))
// An hour of the chain, which is asked for by hand, keeps all of two markets' trades.
const MEMORY = process.env.MINTLAKE_TEST_CHAIN_MINUTES === undefined ? '' : ' --max-old-space-size=12000'
const addressOf = (path: string): string => new URL(path, import.meta.url).href
const PROGRAMS = `${addressOf('test/support/programs/start.mjs')}?folder=${encodeURIComponent(await bundlePrograms())}`
const NODE_OPTIONS = `--import=${addressOf('scripts/strip-cache.mjs')} --import=${PROGRAMS}${MEMORY}`

/** More room for young objects, and fewer collections of the old ones: a twelfth of a worker's time. Its children have their own flags. */
const WORKER_FLAGS = ['--max-semi-space-size=64', '--heap-growing-percent=200']

const DRILL = {
  name: 'drill',
  description:
    'A long test: repeated kills, clusters under load, the browser, the benchmark, many random cases',
}
const TESTS = 'test/**/*.test.ts'
const hasDrill = (file: string): boolean =>
  /@module-tag drill|tags: 'drill'|fewAndMany/.test(readFileSync(file, 'utf8'))

/** The files that take longest begin first, in the order of their time: none of them is left to run alone at the end. A fresh clone
 *  has no record of earlier runs, and their size does not tell. */
const LONGEST = [
  'simulate/simulate.drill',
  'bench.drill',
  'server/state-bounds.drill',
  'web/console.drill',
  'store/process/kill.fault',
  'server/failing-sync.drill',
  'cli/repair',
  'cluster/proxy/addresses.drill',
  'deploy/package.drill',
  'backtest/process.drill',
  'backtest/programs.drill',
  'server/disk.fault',
  'ingest/contract/feed.contract',
  'ingest/solana/solana',
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

export default defineConfig(({ mode }) => {
  const isDrills = mode === 'drills'
  // Tests wait for disks, timers and other processes, drills most: so more run than there are cores. Processes of real servers that give
  // way to other work must not starve by it: drills give way nearly as much, and no more than any of them, which could not take it back.
  if (isDrills) setPriority(MERGE_NICENESS)
  return {
    test: {
      // Files without a drill need not be loaded for the drills.
      include: isDrills ? globSync(TESTS, { cwd: import.meta.dirname }).filter(hasDrill) : [TESTS],
      tags: [DRILL],
      // Many kill processes at random moments, or wait for timers of a machine that does other work too. In CI a failed one is run
      // once more, and .ci/run names it.
      retry: process.env.CI === undefined ? 0 : 1,
      testTimeout: isDrills ? 120_000 : 60_000,
      hookTimeout: 60_000,
      // A busy machine is no failure: only what never comes is.
      expect: { poll: { timeout: 20_000 } },
      maxWorkers: availableParallelism() + (isDrills ? 3 : 1),
      sequence: { sequencer: LongestFirst },
      // Node loads the TypeScript, and a process keeps what it has loaded for the next file: modules, warm code, lake processes.
      experimental: { viteModuleRunner: false },
      isolate: false,
      execArgv: WORKER_FLAGS,
      globalSetup: 'test/support/temporary-root.ts',
      setupFiles: ['test/support/conformance/setup.ts'],
      // The size of a request's head is as scripts/start.mjs sets it.
      env: { NODE_COMPILE_CACHE, NODE_OPTIONS, UWS_HTTP_MAX_HEADERS_SIZE: '16384' },
    },
  }
})
