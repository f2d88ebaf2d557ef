// What of the server's settings `mintlake repair` takes from the environment: the state depends on it.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openTestStore, readSql, removeFolder, submission, temporaryFolder } from '../store/support.ts'
import { type CommandResult, runCommand } from '../support/terminal.ts'

let folder: string

beforeEach(async () => {
  folder = temporaryFolder()
  const store = await openTestStore(folder)
  await store.commit(submission('an_1'))
  await store.close()
  rmSync(join(folder, 'state.duckdb'))
})
afterEach(() => removeFolder(folder))

const repair = (env: Record<string, string>): Promise<CommandResult> =>
  runCommand(['repair', '--data-dir', folder], env)

it('is the delay of labels and the cooldown, whatever else is set: other settings may need the flags of the server', async () => {
  const env = {
    MINTLAKE_LABELS_DELAY_MS: '86400000',
    MINTLAKE_SUBMIT_LIMITS: 'cooldown-ms=80000000',
    MINTLAKE_SOLANA_RPC: 'https://a',
  }
  const repaired = await repair(env)
  expect(repaired, repaired.err).toMatchObject({ code: 0 })
  const state = `ATTACH '${join(folder, 'state.duckdb')}' AS state (READ_ONLY)`
  expect(
    await readSql(
      'SELECT cooldown_kept_ms::DOUBLE AS cooldown, labels_delay_ms::DOUBLE AS delay FROM state.state_position',
      state,
    ),
  ).toEqual([{ cooldown: 80_000_000, delay: 86_400_000 }])
})

it('is refused where it is wrong, and nothing is done', async () => {
  expect(await repair({ MINTLAKE_LABELS_DELAY_MS: '24h' })).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining('MINTLAKE_LABELS_DELAY_MS: "24h" is not valid'),
  })
})
