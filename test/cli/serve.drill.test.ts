// @module-tag drill
// `mintlake serve` starts itself again with the flags that a server needs: who ends the first process ends the second one too.
import { readFileSync, rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { spawnServer, temporaryFolder } from '../support/test-server.ts'

const MINTLAKE = new URL('../../scripts/mintlake.mjs', import.meta.url).pathname

test('a server whose first process is killed ends, and gives its folder back', {
  tags: 'drill',
  timeout: 60_000,
}, async () => {
  const folder = temporaryFolder()
  const server = await spawnServer({}, folder, {}, [], [MINTLAKE, 'serve'])
  const { pid } = server.process
  expect(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), 'there is a second one').toMatch(/\d/)
  await server.kill()
  await expect
    .poll(
      () =>
        server.client.get('/health').then(
          () => 'answers',
          () => 'is gone',
        ),
      { timeout: 10_000 },
    )
    .toBe('is gone')
  const next = await spawnServer({}, folder)
  expect(await next.terminate()).toBe(0)
  rmSync(folder, { recursive: true, force: true })
})
