// What `lake verify` says of a folder whose server was killed between the list of files and the catalog: nothing is wrong with it.
import { cpSync } from 'node:fs'
import { expect, it } from 'vitest'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { NOON_MS, openTestStore, removeFolder, submission, temporaryFolder } from '../support.ts'

it('files that are live and not in the catalog yet are a remark there, and gone after the next start', {
  tags: 'drill',
}, async () => {
  const folder = temporaryFolder()
  const store = await openTestStore(folder, { crash: { at: 'flush:listed', withServer: false } })
  await store.commit(submission('an_1'))
  await expect(store.flushLake()).rejects.toThrow('the lake process ended')
  const killed = temporaryFolder()
  cpSync(folder, killed, { recursive: true, filter: (path) => !path.endsWith('.lock') })
  await store.close()
  const { findings, notes } = await verifyLake({ dataDir: killed, nowMs: NOON_MS })
  expect(findings).toEqual([])
  const after = 'the server was killed, and its next start completes this'
  expect(notes.join('\n')).toMatch(new RegExp(`training/.* is live and not in the catalog; ${after}`))
  expect(notes.join('\n')).toMatch(new RegExp(`training/.* is missing from its table’s folder.*; ${after}`))
  await (await openTestStore(killed)).close()
  expect(await verifyLake({ dataDir: killed, nowMs: NOON_MS })).toMatchObject({ findings: [], notes: [] })
  for (const each of [folder, killed]) removeFolder(each)
})
