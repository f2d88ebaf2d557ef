// In: nothing. Out: how the tests are run. Two files at a time: the machine the suite is sized for has two cores.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: { include: ['test/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000, maxWorkers: 2 },
})
