// The copy that a backup takes from, where nobody waits for it any more.
import { rmSync } from 'node:fs'
import { expect, it } from 'vitest'
import { Staging } from '../../src/store/backup/staging.ts'
import { temporaryFolder } from '../support/test-server.ts'

it('that nobody waits for is not made, and is no fault of this program', async () => {
  const folder = temporaryFolder()
  try {
    const staging = new Staging(() => Promise.reject(new Error('a copy is made')))
    await expect(staging.make(folder, AbortSignal.abort())).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('nobody waits'),
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
