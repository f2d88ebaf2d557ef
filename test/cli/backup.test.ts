// Backups, of running and stopped servers, and what a server has that starts on a restored one.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test, vi } from 'vitest'
import { makeBackup } from '../../src/store/backup/backup.ts'
import { copyBytes } from '../../src/store/backup/copy-store.ts'
import { quietLog, readSql } from '../store/support.ts'
import { SteppedClock } from '../support/clock.ts'
import { noSmallDisk, openSmallDisk } from '../support/disk/small-disk.ts'
import { seedToken, submission, submit, VALUES } from '../support/submission.ts'
import { type CommandResult, runCommand } from '../support/terminal.ts'
import {
  ADMIN_KEY,
  type Client,
  openTestServer,
  spawnServer,
  type TestServer,
  temporaryFolder,
} from '../support/test-server.ts'

const AGENTS = 3
/** Acknowledged submissions before the backup begins, and after it. */
const BEFORE = 30
const AFTER = 15
const HOUR_MS = 3_600_000
const SETTINGS = {
  'submit-limits': 'rate=0,cooldown-ms=3600000',
  'lake-flush-ms': '200',
  'lake-tidy': 'every-ms=300',
}

const folders: string[] = []
function newFolder(): string {
  const folder = temporaryFolder()
  folders.push(folder)
  return folder
}
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const mintlake = (...args: string[]): Promise<CommandResult> =>
  runCommand(args, { MINTLAKE_ADMIN_KEY: ADMIN_KEY })
const verified = (dataDir: string) => mintlake('lake', 'verify', '--data-dir', dataDir)
const restore = (from: string, to: string) => mintlake('restore', '--from', from, '--data-dir', to)

interface Acknowledged {
  analysisId: string
  mint: string
  agent: number
  xp: number
}

/** Agents that submit one after another, each on tokens of its own and of others. */
class Load {
  readonly keys: string[] = []
  readonly acknowledged: Acknowledged[] = []
  readonly #client: Client
  #isOver = false
  #running: Promise<unknown> = Promise.resolve()

  constructor(client: Client) {
    this.#client = client
  }

  async begin(): Promise<void> {
    for (let agent = 0; agent < AGENTS; agent++) this.keys.push(await this.#client.register(`agent ${agent}`))
    this.#running = Promise.allSettled(this.keys.map((key, agent) => this.#submit(key, agent)))
  }

  async until(count: number): Promise<void> {
    while (this.acknowledged.length < count) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  end(): Promise<unknown> {
    this.#isOver = true
    return this.#running
  }

  async #submit(key: string, agent: number): Promise<void> {
    while (!this.#isOver) {
      const mint = await seedToken(this.#client, Date.now())
      const { status, text, body } = await submit(this.#client, key, submission(mint))
      if (status !== 201) throw new Error(text)
      this.acknowledged.push({ analysisId: body.analysisId, mint, agent, xp: body.xpEarned })
    }
  }
}

const seqOf = async (client: Client): Promise<number> => (await client.get('/health')).body.market.seq

test('a backup under load, restored after the server and its folder are lost, has every submission acknowledged before it began', {
  tags: 'drill',
}, async () => {
  const lost = await spawnServer(SETTINGS, newFolder())
  const load = new Load(lost.client)
  await load.begin()
  await load.until(BEFORE)
  const before = [...load.acknowledged]
  const out = join(newFolder(), 'backup')
  const made = await mintlake('backup', '--out', out, '--data-dir', lost.dataDir, '--url', lost.client.url)
  expect(made, made.err).toMatchObject({ code: 0, out: expect.stringMatching(/every file verified\n$/) })
  await load.until(load.acknowledged.length + AFTER)
  const seqLost = await seqOf(lost.client)
  await lost.kill()
  await load.end()
  rmSync(lost.dataDir, { recursive: true })

  expect((await verified(out)).out).toContain('nothing is wrong')
  const dataDir = join(newFolder(), 'data')
  const restored = await restore(out, dataDir)
  expect(restored, restored.err).toMatchObject({ code: 0 })
  expect((await verified(dataDir)).out).toContain('nothing is wrong')
  // Its clock is behind that of the lost server.
  const clock = new SteppedClock(Date.now() - HOUR_MS)
  const server = await openTestServer(SETTINGS, { clock }, dataDir)
  try {
    await server.store.flushLake()
    const rows = await readSql(
      'SELECT analysis_id FROM lake.training',
      `ATTACH '${dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`,
    )
    const restoredIds = new Set(rows.map(({ analysis_id }) => analysis_id))
    const kept = load.acknowledged.filter(({ analysisId }) => restoredIds.has(analysisId))
    expect(kept).toEqual(expect.arrayContaining(before))
    expect(kept.length).toBeLessThan(load.acknowledged.length)
    const { body } = await server.client.get('/api/v1/agents/leaderboard')
    for (const [agent, key] of load.keys.entries()) {
      expect((await server.client.get('/api/v1/agent/profile', { 'X-API-Key': key })).status).toBe(200)
      const own = kept.filter((each) => each.agent === agent)
      const xp = own.reduce((sum, each) => sum + each.xp, 0)
      const rank = body.data.find(({ name }: { name: string }) => name === `agent ${agent}`)
      expect(rank).toMatchObject({ xp, analyses: own.length })
    }
    const [{ mint, agent }] = before.slice(-1)
    await server.client.push({ type: 'patch', mint, ts: clock.now(), fields: VALUES })
    const again = await submit(server.client, load.keys[agent], submission(mint))
    expect([again.status, again.body.code]).toEqual([429, 'mint_cooldown'])
    expect(await seqOf(server.client)).toBeGreaterThan(seqLost)
  } finally {
    await server.remove()
  }
})

test('a copy has the commits that are in the log alone', { tags: 'drill' }, async () => {
  const killed = await spawnServer({}, newFolder())
  const key = await killed.client.register()
  const answer = await submit(killed.client, key, submission(await seedToken(killed.client, Date.now())))
  await killed.kill()
  const dataDir = join(newFolder(), 'data')
  const options = { nowMs: Date.now(), check: () => {}, log: quietLog }
  const copy = async () => {
    const to = join(newFolder(), 'backup')
    expect((await makeBackup({ path: killed.dataDir, lsn: 1 }, to, options)).findings).toEqual([])
    return to
  }
  // The lake process of a killed server ends a moment after it.
  const out = await vi.waitFor(copy, { timeout: 20_000 })
  expect((await restore(out, dataDir)).code).toBe(0)
  const server = await openTestServer({}, {}, dataDir)
  expect((await server.client.get(`/api/v1/analysis/${answer.body.analysisId}`)).status).toBe(200)
  await server.remove()
})

describe('a backup of a stopped server', () => {
  let server: TestServer
  let analysisId: string
  let out: string
  beforeAll(async () => {
    server = await openTestServer()
    const key = await server.client.register()
    const answer = await submit(server.client, key, submission(await seedToken(server.client, Date.now())))
    analysisId = answer.body.analysisId
    await server.stop()
    out = join(newFolder(), 'backup')
    expect((await mintlake('backup', '--out', out, '--data-dir', server.dataDir)).code).toBe(0)
  })
  afterAll(() => server.remove())
  const backUp = (to: string, ...more: string[]) =>
    mintlake('backup', '--out', to, '--data-dir', server.dataDir, ...more)

  it('is a folder that a server starts on, and leaves no scratch behind', async () => {
    // One of root would keep the server's user from the next backup.
    expect(readdirSync(server.dataDir)).not.toContain('backup.tmp')
    expect((await verified(out)).out).toContain('nothing is wrong')
    const dataDir = join(newFolder(), 'data')
    expect((await restore(out, dataDir)).code).toBe(0)
    const restored = await openTestServer({}, {}, dataDir)
    expect((await restored.client.get(`/api/v1/analysis/${analysisId}`)).status).toBe(200)
    await restored.remove()
  })

  it('is made and restored through symbolic links, and a link is no way around the rules of places', async () => {
    const folder = newFolder()
    const there = join(folder, 'there')
    mkdirSync(there)
    const link = join(folder, 'link')
    symlinkSync(there, link)
    const made = await backUp(join(link, 'backup'))
    expect(made, made.err).toMatchObject({ code: 0 })
    mkdirSync(join(there, 'data'))
    symlinkSync(join(there, 'data'), join(folder, 'data'))
    const restored = await restore(join(link, 'backup'), join(folder, 'data'))
    expect(restored, restored.err).toMatchObject({ code: 0 })
    expect((await verified(join(folder, 'data'))).out).toContain('nothing is wrong')
    symlinkSync(server.dataDir, join(folder, 'own'))
    expect(await backUp(join(folder, 'own', 'backup'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('is in the data folder'),
    })
    expect(await restore(out, join(out, 'data'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('is in the backup'),
    })
    expect(readdirSync(out)).not.toContain('data')
  })

  it('goes to a new or an empty folder outside of the data folder only', { tags: 'drill' }, async () => {
    const full = newFolder()
    writeFileSync(join(full, 'mine'), '')
    expect(await backUp(full)).toMatchObject({ code: 1, err: expect.stringContaining('is not empty') })
    expect(readdirSync(full)).toEqual(['mine'])
    expect(await backUp(join(server.dataDir, 'x'))).toMatchObject({ code: 2 })
    expect(await backUp(newFolder())).toMatchObject({ code: 0 })
    expect(await mintlake('backup', '--out', newFolder(), '--data-dir', newFolder())).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no store'),
    })
    expect(await restore(out, full)).toMatchObject({ code: 1, err: expect.stringContaining('is not empty') })
  })

  it('that is damaged is not restored, and nothing is left of the attempt', { tags: 'drill' }, async () => {
    const damaged = newFolder()
    expect((await backUp(damaged)).code).toBe(0)
    appendFileSync(join(damaged, 'store.json'), ' ')
    const dataDir = join(newFolder(), 'data')
    expect(await restore(damaged, dataDir)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/store\.json is missing or not as it was when the backup was made/),
    })
    expect(() => readdirSync(dataDir)).toThrow('ENOENT')
    expect(await restore(server.dataDir, dataDir)).toMatchObject({
      code: 1,
      err: expect.stringContaining('is no backup'),
    })
  })

  it('that was killed is recognised: it is neither restored nor opened nor continued', {
    tags: 'drill',
  }, async () => {
    const killed = join(newFolder(), 'backup')
    const module = new URL('../../src/store/backup/backup.ts', import.meta.url).href
    const script = `
      import { makeBackup } from '${module}'
      let files = 0
      const check = () => { if (++files === 4) process.kill(process.pid, 'SIGKILL') }
      await makeBackup({ path: '${out}', lsn: 1 }, '${killed}', { nowMs: 0, check, log: console })`
    const ended = spawnSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script])
    expect(ended.signal, ended.stderr.toString()).toBe('SIGKILL')
    expect(JSON.parse(readFileSync(join(killed, 'backup.json'), 'utf8'))).toEqual({ complete: false })
    const refused = expect.stringContaining('is an unfinished backup or restore')
    expect(await restore(killed, newFolder())).toMatchObject({ code: 1, err: refused })
    expect(await backUp(killed)).toMatchObject({ code: 1, err: refused })
    await expect(openTestServer({}, {}, killed)).rejects.toThrow('is an unfinished backup or restore')
  })

  it.skipIf(noSmallDisk !== null)(
    'on a disk without room says so, and leaves nothing',
    { tags: 'drill' },
    async () => {
      const needed = await copyBytes(out)
      const program = new URL('../../scripts/mintlake.mjs', import.meta.url).pathname
      // The second has room for the files, and not for the catalog that is written last.
      for (const [size, sentence] of [
        ['64k', /has 1 MB left of the \d+ MB that are needed/],
        [`${Math.ceil(needed / 1_024) + 64}k`, /is full: nothing of it was kept/],
      ] as const) {
        const folder = newFolder()
        const disk = await openSmallDisk(folder, size)
        try {
          const to = ['--out', join(folder, 'one'), '--data-dir', server.dataDir]
          await expect(disk.run(process.execPath, [program, 'backup', ...to])).rejects.toMatchObject({
            code: 1,
            stderr: expect.stringMatching(sentence),
          })
          expect(readdirSync(disk.root)).toEqual([])
        } finally {
          await disk.remove()
        }
      }
    },
  )
})

test('a backup of a lake that has lost a file has the rest, and says what is missing with exit code 1', {
  tags: 'drill',
}, async () => {
  const server = await openTestServer()
  try {
    const key = await server.client.register()
    await submit(server.client, key, submission(await seedToken(server.client, Date.now())))
    await server.store.flushLake()
    const [lost] = (await server.store.lakeFiles()).filter(({ table }) => table === 'training')
    await server.stop()
    // The file, and its link that readers of the folder see.
    for (const path of [lost.path, lost.path.replace('/.files', '')]) rmSync(path)
    const out = join(newFolder(), 'backup')
    const made = await mintlake('backup', '--out', out, '--data-dir', server.dataDir)
    expect(made.code, made.err).toBe(1)
    expect(made.out).toMatch(
      /every file verified\nmissing in the original too: training\/dt=.*parquet: is listed and not there/,
    )
    expect(await restore(out, join(newFolder(), 'data'))).toMatchObject({
      code: 1,
      out: expect.stringContaining('missing in the original too: training/'),
    })
  } finally {
    await server.remove()
  }
})

test('a backup of a lake with a damaged file says which it is and what to do, and then has the rest', async () => {
  const server = await spawnServer({ 'lake-flush-ms': '100' }, newFolder())
  try {
    const args = ['--data-dir', server.dataDir, '--url', server.client.url]
    const key = await server.client.register()
    await submit(server.client, key, submission(await seedToken(server.client, Date.now())))
    const folder = join(server.dataDir, 'lake/training')
    const name = await vi.waitFor(() => {
      const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      const [found] = names.filter((each) => each.endsWith('.parquet'))
      expect(found).toBeDefined()
      return found
    }, 20_000)
    const bytes = readFileSync(join(folder, name))
    bytes[bytes.length >> 1] ^= 0x41
    writeFileSync(join(folder, name), bytes)
    const out = join(newFolder(), 'backup')
    const refused = await mintlake('backup', '--out', out, ...args)
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(/training\/dt=.* is damaged in the lake itself: .*mintlake lake repair/),
    })
    expect(refused.err).not.toContain(out)
    expect((await mintlake('lake', 'repair', ...args)).code).toBe(0)
    expect(await mintlake('backup', '--out', out, ...args)).toMatchObject({ code: 0, err: '' })
  } finally {
    await server.kill()
  }
})

test('a copy that nobody waits for any more is not left in the data folder', async () => {
  const server = await openTestServer()
  const { store, dataDir, url } = server
  const staging = vi.spyOn(store, 'stageBackup')
  const snapshot = store.snapshot.bind(store)
  const left = new AbortController()
  vi.spyOn(store, 'snapshot').mockImplementation(async (folder) => {
    const made = await snapshot(folder)
    expect(existsSync(folder)).toBe(true)
    left.abort()
    const [[gone]] = staging.mock.calls
    if (gone?.aborted === false) await once(gone, 'abort')
    return made
  })
  const headers = { Authorization: `Bearer ${ADMIN_KEY}`, 'Content-Type': 'application/json' }
  const asked = fetch(`${url}/api/v1/admin/backup`, {
    method: 'POST',
    headers,
    body: '{}',
    signal: left.signal,
  })
  await expect(asked).rejects.toThrow('aborted')
  await staging.mock.results[0].value
  expect(existsSync(join(dataDir, 'backup.tmp'))).toBe(false)
  await server.remove()
})

test('a running server is asked with the operator’s key, and only for its own folder', {
  tags: 'drill',
}, async () => {
  const [server, other] = await Promise.all([spawnServer({}, newFolder()), openTestServer()])
  const { url } = server.client
  try {
    const args = ['backup', '--out', join(newFolder(), 'one'), '--data-dir', server.dataDir]
    expect(await runCommand([...args, '--url', url], {})).toMatchObject({
      code: 2,
      err: expect.stringContaining('MINTLAKE_ADMIN_KEY is not set'),
    })
    expect(await mintlake(...args, '--url', other.url)).toMatchObject({
      code: 1,
      err: expect.stringContaining('This server has the data folder'),
    })
    expect(await mintlake(...args, '--url', url, '--format', 'json')).toMatchObject({ code: 0 })
  } finally {
    await server.kill()
    await other.remove()
  }
})
