// @module-tag drill
// `mintlake lake snapshot` keeps the lake of a moment under a name while a server goes on writing, merging and deleting.
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedToken, submission, submit } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'

let server: TestServer
let key: string
beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0', 'lake-tidy': 'grace-ms=0' })
  key = await server.client.register()
})
afterAll(() => server.remove())

async function submitSome(count: number): Promise<void> {
  for (let made = 0; made < count; made++) {
    const answer = await submit(server.client, key, submission(await seedToken(server.client, Date.now())))
    expect(answer.status, answer.text).toBe(201)
    await server.store.flushLake()
  }
}
const snapshot = (name: string) => runCommand(['lake', 'snapshot', name, '--data-dir', server.dataDir])
const folderOf = (name: string) => join(server.dataDir, 'snapshots', name)

test('a snapshot does not change, read by its catalog or its folders and checked by its checksums', {
  tags: 'drill',
}, async () => {
  await submitSome(9)
  const made = await snapshot('paper-1')
  expect(made).toMatchObject({
    code: 0,
    out: expect.stringMatching(/paper-1: \d+ files, \d+ rows, \d+ bytes\n$/),
  })
  await submitSome(2)
  expect((await server.store.compactLake()).merged).toBeGreaterThan(0)
  await server.store.compactLake()

  const lake = join(folderOf('paper-1'), 'lake')
  const sums = readFileSync(join(lake, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')
  for (const line of sums) {
    const [sum, path] = line.split('  ')
    expect(
      createHash('sha256')
        .update(readFileSync(join(lake, path)))
        .digest('hex'),
      path,
    ).toBe(sum)
  }
  const instance = await DuckDBInstance.create(':memory:', {})
  const connection = await instance.connect()
  await connection.run(`ATTACH '${join(lake, 'catalog.duckdb')}' AS pinned (READ_ONLY)`)
  for (const rows of ['pinned.training', `read_parquet('${lake}/training/*/*.parquet')`]) {
    const counted = await connection.runAndReadAll(`SELECT count(*)::INTEGER FROM ${rows}`)
    expect(counted.getRows(), rows).toEqual([[9]])
  }
  connection.closeSync()
  instance.closeSync()
  const counted = (dataDir: string) =>
    runCommand(['sql', 'SELECT count(*) AS n FROM training', '--format', 'csv', '--data-dir', dataDir])
  expect((await counted(folderOf('paper-1'))).out).toBe('n\n9\n')
  expect((await counted(server.dataDir)).out).toBe('n\n11\n')
})

test('a name that exists or is not valid is refused, and nothing is left behind', async () => {
  const before = statSync(folderOf('paper-1')).mtimeMs
  expect(await snapshot('paper-1')).toMatchObject({
    code: 1,
    err: expect.stringContaining('exists already'),
  })
  expect(await snapshot('../out')).toMatchObject({
    code: 1,
    err: expect.stringContaining('is not a valid name'),
  })
  expect(statSync(folderOf('paper-1')).mtimeMs).toBe(before)
})

test('one that could not be finished leaves nothing, and no other is touched', async () => {
  expect((await snapshot('paper-3.tmp')).code).toBe(0)
  // As a full disk does, it fails at the catalog.
  const [path] = globSync(`${server.dataDir}/lake/.files/training/*/*.parquet`)
  const bytes = readFileSync(path)
  rmSync(path)
  writeFileSync(path, Buffer.alloc(bytes.length))
  expect((await snapshot('paper-3')).code).toBe(1)
  rmSync(path)
  writeFileSync(path, bytes)
  const names = ['paper-1', 'paper-3.tmp']
  expect(readdirSync(folderOf('.')).sort()).toEqual(names)
  expect((await snapshot('paper-3')).code).toBe(0)
  expect(readdirSync(folderOf('.')).sort()).toEqual(['paper-1', 'paper-3', 'paper-3.tmp'])
})

test('what a snapshot that was killed has left is made anew', async () => {
  const lake = join(folderOf('paper-3'), 'lake')
  rmSync(join(lake, 'catalog.duckdb'))
  mkdirSync(folderOf('.paper-9.tmp'))
  expect((await snapshot('paper-3')).code).toBe(0)
  expect(readdirSync(lake)).toContain('catalog.duckdb')
  expect(readdirSync(folderOf('.')).sort()).toEqual(['paper-1', 'paper-3', 'paper-3.tmp'])
})

test('what a process of another container makes meanwhile stays for a day, and so does its lock', async () => {
  const lock = join(folderOf('.'), 'server.lock')
  const other = folderOf('.paper-9.7@abcdefgh.1.1.tmp')
  mkdirSync(other)
  symlinkSync('7@abcdefgh.1.1', lock)
  expect((await snapshot('paper-5')).code).toBe(0)
  expect([existsSync(other), readlinkSync(lock)]).toEqual([true, '7@abcdefgh.1.1'])
  const catalog = join(folderOf('paper-5'), 'lake/catalog.duckdb')
  rmSync(catalog)
  expect(await snapshot('paper-5')).toMatchObject({
    code: 1,
    err: expect.stringContaining('is being made by another process, or was left half made'),
  })
  const twoDaysAgo = Date.now() / 1000 - 2 * 86_400
  for (const path of [other, folderOf('paper-5')]) utimesSync(path, twoDaysAgo, twoDaysAgo)
  expect((await snapshot('paper-5')).code).toBe(0)
  expect([existsSync(other), existsSync(catalog)]).toEqual([false, true])
  expect(await snapshot('server.lock')).toMatchObject({
    code: 1,
    err: expect.stringContaining('is not a valid name'),
  })
  expect(readlinkSync(lock)).toBe('7@abcdefgh.1.1')
  rmSync(lock)
})

test('of two at once one is refused with a sentence', async () => {
  const made = await Promise.all([snapshot('paper-4'), snapshot('paper-4')])
  const [refused, ...others] = made.filter(({ code }) => code !== 0)
  expect(others).toEqual([])
  expect(refused.err).toContain('another snapshot is being made')
  expect(readdirSync(join(folderOf('paper-4'), 'lake'))).toContain('catalog.duckdb')
})

test('a server starts on a folder with snapshots, and the name of a deleted one can be used again', async () => {
  expect((await snapshot('paper-2')).code).toBe(0)
  rmSync(folderOf('paper-1'), { recursive: true })
  server = await server.restart()
  expect((await runCommand(['lake', 'verify', '--data-dir', server.dataDir])).out).toContain(
    'nothing is wrong',
  )
  expect((await snapshot('paper-1')).code).toBe(0)
})
