// Which child processes the code forks, and others in their place.
import childProcess from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, type MockInstance, vi } from 'vitest'

/** Watches `fork` until the end of the file, in modules that an earlier file has loaded too. It forks unless the test replaces it. */
export function watchFork(): MockInstance<typeof childProcess.fork> {
  const fork = vi.spyOn(childProcess, 'fork')
  syncBuiltinESMExports()
  afterAll(() => {
    fork.mockRestore()
    syncBuiltinESMExports()
  })
  return fork
}
