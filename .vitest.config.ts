// In: nothing. Out: how the tests are run. Two files at a time: the machine the suite is sized for has two cores.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** Servers that tests start need not compile what the one before has compiled. */
const NODE_COMPILE_CACHE = fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url))

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    env: { NODE_COMPILE_CACHE },
  },
})
