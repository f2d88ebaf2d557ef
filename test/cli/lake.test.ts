// `mintlake lake status` and `lake verify`, with and without a running server.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedToken, submission, submit } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import { type ServerProcess, spawnServer, temporaryFolder } from '../support/test-server.ts'

const MINTLAKE = new URL('../../scripts/mintlake.mjs', import.meta.url).pathname
const SUBMISSIONS = 2

let folder: string
let server: ServerProcess

beforeAll(async () => {
  folder = temporaryFolder()
  server = await spawnServer({}, folder, {}, [], [MINTLAKE, 'serve'])
  const key = await server.client.register()
  for (let i = 0; i < SUBMISSIONS; i++) {
    const answer = await submit(server.client, key, submission(await seedToken(server.client, Date.now())))
    expect(answer.status, answer.text).toBe(201)
  }
}, 30_000)
afterAll(async () => {
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
})

const status = () => runCommand(['lake', 'status', '--data-dir', folder, '--url', server.client.url])
const verify = (...more: string[]) => runCommand(['lake', 'verify', '--data-dir', folder, ...more])

interface StatusSeen {
  server: { status: string; store: { healthy: boolean } } | null
  tables: { table: string; rows: number; files: number; bytes: number; ageMs: number; backlog: number }[]
}
async function statusOf(table: string) {
  const { out } = await runCommand([
    ...['lake', 'status', '--data-dir', folder, '--url', server.client.url],
    ...['--format', 'json'],
  ])
  const seen = JSON.parse(out) as StatusSeen
  return { server: seen.server, ...seen.tables.find((each) => each.table === table)! }
}

test('while a server runs, status reports the backlog, and verify what it does not check', async () => {
  expect(await statusOf('training')).toMatchObject({
    rows: 0,
    files: 0,
    backlog: SUBMISSIONS,
    server: { status: 'ready', store: { healthy: true } },
  })
  const { code, out } = await status()
  expect(code).toBe(0)
  expect(out).toMatch(/training +│ +0 │ +0 │ +0 B │/)
  expect(out).toMatch(/the server at http\S+ is ready, its store works, [\d.]+ [kM]B of its own\n$/)
  expect(await verify()).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /^the lake in .*: \d+ tables, 0 files, 0 rows\nfiles, names, catalog and a sample of bars were checked: the server runs \(process \d+\) .*\nnothing is wrong\n$/,
    ),
  })
})

test('after the server has stopped, verify finds nothing, and then a file that was deleted', {
  tags: 'drill',
}, async () => {
  expect(await server.terminate()).toBe(0)
  const training = await statusOf('training')
  expect(training).toMatchObject({ rows: SUBMISSIONS, files: 1, backlog: null, server: null })
  expect(training.ageMs).toBeGreaterThanOrEqual(0)
  expect(training.ageMs).toBeLessThan(60_000)
  expect((await status()).out).toContain('what waits for the lake is not known')
  const whole = await verify()
  expect(whole.out).toMatch(/rows\nnothing is wrong\n$/)
  expect(whole.code).toBe(0)

  const files = join(folder, 'lake', '.files', 'training')
  const [name] = readdirSync(files, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.includes('part-'),
  )
  rmSync(join(files, name))
  const broken = await verify()
  expect(broken.code).toBe(1)
  expect(broken.out).toContain(`training/${name}: is listed and not there\n`)
  expect(broken.out).toMatch(/1 finding; .*mintlake lake repair sets damaged files aside\n$/)
  const json = await verify('--format', 'json')
  expect(json.code).toBe(1)
  expect(JSON.parse(json.out)).toMatchObject({
    scope: 'whole',
    findings: [{ table: 'training', file: `training/${name}`, message: 'is listed and not there' }],
  })
})

test('the version is told with the name of the program, and exit code 0', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  expect(await runCommand(['--version'])).toEqual({ code: 0, out: `mintlake ${version}\n`, err: '' })
  expect((await runCommand(['--help'])).out).toContain('mintlake --version')
})

test('of a reader the status says that it has no store, not how that is', async () => {
  const store = { healthy: true }
  const health = {
    status: 'ready',
    reasons: [],
    simulated: false,
    feeds: [],
    store,
    cluster: { role: 'reader' },
  }
  const reader = createServer((_request, response) => response.end(JSON.stringify(health)))
  await new Promise<void>((resolve) => reader.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(reader.address() as AddressInfo).port}`
  const { code, out } = await runCommand(['lake', 'status', '--data-dir', folder, '--url', url])
  reader.close()
  expect({ code, out }).toMatchObject({
    code: 0,
    out: expect.stringContaining('is a reader, which has no store'),
  })
  expect(out).not.toContain('its store works')
})

test('a folder without a lake is reported', async () => {
  for (const command of ['status', 'verify']) {
    const { code, err } = await runCommand(['lake', command, '--data-dir', join(folder, 'nothing')])
    expect(err).toContain('there is no lake in')
    expect(code).toBe(1)
  }
  expect((await runCommand(['lake', 'verfy'])).err).toContain('did you mean "lake verify"?')
  expect((await runCommand(['lake'])).err).toContain('needs one of: lake status, lake verify')
})

test('a time limit that no timer can wait for is refused', async () => {
  const { code, err } = await runCommand(['sql', '--sample', '--timeout', '2147484', 'SELECT 1'])
  expect(code).toBe(2)
  expect(err).toContain('--timeout: "2147484" is not a whole number from 0 to 2147483')
})
