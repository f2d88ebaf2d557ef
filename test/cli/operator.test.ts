// The operator's commands on a real server.
import { readdirSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { COMMANDS } from '../../src/cli/main.ts'
import { openTestStore, removeFolder, temporaryFolder } from '../store/support.ts'
import { type CommandResult, runCommand } from '../support/terminal.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../support/test-server.ts'

let server: TestServer

beforeAll(async () => {
  server = await openTestServer({ registration: 'closed' })
})
afterAll(() => server.remove())

const mintlake = (...args: string[]): Promise<CommandResult> =>
  runCommand([...args, '--url', server.url], { MINTLAKE_ADMIN_KEY: ADMIN_KEY })

async function makeAgent(name: string): Promise<{ agent: string; key: string }> {
  const { code, out, err } = await mintlake('keys', 'make', name, '--description', 'a test')
  expect(code).toBe(0)
  const agent = /agent (ag_\w+);/.exec(err)?.[1] ?? ''
  return { agent, key: out.trim() }
}

/** Status of a request that needs a key. */
const profileStatus = async (key: string): Promise<number> =>
  (await server.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).status

const rowsOf = async (...args: string[]): Promise<Record<string, unknown>[]> =>
  JSON.parse((await mintlake(...args, '--format', 'json')).out)

test('a key is created while registration is closed, listed by its first characters, and revoked', async () => {
  const { agent, key } = await makeAgent('scout')
  expect(key).toMatch(/^ps_[a-z0-9]{48}$/)
  expect(await profileStatus(key)).toBe(200)
  const mine = (await rowsOf('keys', 'list')).filter((row) => row.agent === agent)
  expect(mine).toMatchObject([{ name: 'scout', ends: null }])
  expect(key.startsWith(String(mine[0].key).replace(/\W+$/, ''))).toBe(true)
  expect((await mintlake('keys', 'list')).out).not.toContain(key)
  expect(await mintlake('keys', 'revoke', agent, '--key', String(mine[0].key))).toMatchObject({
    code: 0,
    out: '1 key revoked\n',
  })
  expect(await profileStatus(key)).toBe(401)
  expect(await mintlake('keys', 'revoke', agent)).toMatchObject({
    code: 1,
    err: `mintlake: ${agent} has no key in force\n`,
  })
})

test('a ban is shown in the list until it is lifted', async () => {
  const { agent } = await makeAgent('loud')
  const banned = async () => (await rowsOf('agents', 'list')).find((row) => row.agent === agent)?.banned
  expect(await banned()).toBeNull()
  await mintlake('agents', 'ban', agent, '--until', '2100-01-31', '--reason', 'noise')
  expect(await banned()).toBe('until 2100-01-31T00:00:00.000Z')
  expect((await mintlake('agents', 'ban', agent)).out).toBe(`${agent} is banned for good\n`)
  expect(await banned()).toBe('for good')
  expect((await mintlake('agents', 'list')).out).toMatch(new RegExp(`${agent}.*loud.*for good`))
  expect((await mintlake('agents', 'unban', agent)).code).toBe(0)
  expect(await banned()).toBeNull()
})

test('a researcher is created on request', async () => {
  const { code } = await mintlake('keys', 'make', 'reader', '--type', 'researcher')
  expect(code).toBe(0)
  const agents = await rowsOf('agents', 'list')
  expect(agents.find((row) => row.name === 'reader')).toMatchObject({ type: 'researcher', keys: 1 })
})

test('awarded XP are shown on the leaderboard', async () => {
  const { agent } = await makeAgent('helper')
  const award = await mintlake(
    'xp',
    'award',
    agent,
    '--kind',
    'trade',
    '--times',
    '3',
    '--note',
    'three swaps',
  )
  expect(award).toMatchObject({ code: 0, out: `${agent} earned 30 XP and has 30\n` })
  const board = await server.client.get('/api/v1/agents/leaderboard')
  expect(board.body.leaderboard).toContainEqual(expect.objectContaining({ agentId: agent, xp: 30 }))
})

describe('an error is one sentence', () => {
  test.each([
    [['keys', 'revoke', 'ag_nobody'], 1, 'mintlake: There is no agent ag_nobody.\n'],
    [['xp', 'award', 'ag_nobody', '--kind', 'chat'], 1, 'mintlake: There is no agent ag_nobody.\n'],
    [['xp', 'award', 'ag_1', '--kind', 'trades'], 2, 'did you mean trade?'],
    [['xp', 'award', 'ag_1', '--kind', 'trade', '--times', 'many'], 2, 'is not a whole number'],
    [['xp', 'award', 'ag_1'], 2, '--kind KIND is missing'],
    [['agents', 'ban'], 2, 'AGENT is missing'],
    [['agents', 'ban', 'ag_1', '--untill', '2100-01-01'], 2, 'did you mean --until?'],
    [['agents', 'ban', 'ag_1', '--until', 'tomorrow'], 2, 'is no date'],
    [['agents', 'ban', 'ag_1', '--until', '2100-02-30'], 2, 'is no date'],
    [['agent', 'lst'], 2, 'did you mean "agents list"?'],
    [['agents', 'list', 'all'], 2, 'takes no "all"\nsee mintlake agents list --help\n'],
    [
      ['agents', 'list', '--data-dir', 'x'],
      2,
      'mintlake: --data-dir is no flag of mintlake agents list: it has --format, --url, --help\nsee mintlake agents list --help\n',
    ],
    // A variable of a script that is not set must not make a command wider.
    [['keys', 'revoke', 'ag_1', '--key', ''], 2, '--key is empty: leave it out, or give it a value\n'],
    [['agents', 'ban', 'ag_1', '--until='], 2, '--until is empty'],
    [['backup', '--out', 'x', '--data-dir', ''], 2, '--data-dir is empty'],
    [['agents', 'list', '--url', '-x'], 2, '--url: a value that begins with a dash is written --url=-x\n'],
    // Of two keys only the last would be revoked.
    [['keys', 'revoke', 'ag_1', '--key', 'ps_a', '--key=ps_b'], 2, '--key is given twice\n'],
    [['keys', 'list', '--format', 'json', '--format', 'table'], 2, '--format is given twice\n'],
    [['doctor', '--port', '1', '--port', '2'], 2, '--port is given twice\n'],
    [['doctor', '--json', '--json'], 2, '--json is given twice\n'],
    [['doctor', '--json=yes'], 2, '--json takes no value\n'],
    [['something', 'else'], 2, 'mintlake: there is no command "something else"\nsee mintlake --help\n'],
  ])('%j', async (args, code, sentence) => {
    const result = await mintlake(...args)
    expect(result.out).toBe('')
    expect(result.err).toContain(sentence)
    expect(result.code).toBe(code)
  })

  test('for a missing or wrong admin key, and for a server that does not answer', async () => {
    const without = await runCommand(['agents', 'list', '--url', server.url])
    expect(without).toMatchObject({ code: 2, err: expect.stringContaining('MINTLAKE_ADMIN_KEY is not set') })
    const wrong = await runCommand(['agents', 'list', '--url', server.url], { MINTLAKE_ADMIN_KEY: 'guess' })
    expect(wrong).toMatchObject({ code: 1, err: 'mintlake: The admin key is wrong.\n' })
    const list = (key: string) =>
      runCommand(['agents', 'list', '--url', server.url], { MINTLAKE_ADMIN_KEY: key })
    expect((await list(`${ADMIN_KEY}\n`)).code).toBe(0)
    expect(await list('schlüssel')).toMatchObject({
      code: 2,
      err: expect.stringContaining('MINTLAKE_ADMIN_KEY must be printable ASCII characters'),
    })
    const nobody = await runCommand(['agents', 'list', '--url', 'http://127.0.0.1:9'], {
      MINTLAKE_ADMIN_KEY: ADMIN_KEY,
    })
    expect(nobody).toMatchObject({ code: 1, err: expect.stringContaining('no server answers at') })
    const strange = await runCommand(['agents', 'list', '--url', 'ftp://host'], { MINTLAKE_ADMIN_KEY: 'k' })
    expect(strange.code).toBe(2)
  })

  test('for a folder that a process has which is no server: it is named', async () => {
    const folder = temporaryFolder()
    const store = await openTestStore(folder)
    await store.close()
    symlinkSync(`${process.ppid}@`, join(folder, 'server.lock'))
    const env = { MINTLAKE_ADMIN_KEY: ADMIN_KEY }
    const { code, err } = await runCommand(
      ['lake', 'repair', '--data-dir', folder, '--url', 'http://127.0.0.1:9'],
      env,
    )
    const holder = `the data folder ${folder} is in use by another process (process ${process.ppid})`
    expect(err).toContain(`mintlake: ${holder}; no server answers at http://127.0.0.1:9`)
    expect(code).toBe(1)
    // Another server that listens there refuses it.
    const other = await mintlake('lake', 'repair', '--data-dir', folder)
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining(holder) })
    removeFolder(folder)
  })

  test('for an interruption while a server is asked that does not answer', async () => {
    const folder = temporaryFolder()
    await (await openTestStore(folder)).close()
    symlinkSync(`${process.ppid}@`, join(folder, 'server.lock'))
    const interrupt = new AbortController()
    const silent = createServer(() => interrupt.abort())
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const words = ['backup', '--out', `${folder}-backup`, '--data-dir', folder, '--url', url]
    const env = { MINTLAKE_ADMIN_KEY: ADMIN_KEY }
    expect(await runCommand(words, env, '', undefined, interrupt.signal)).toEqual({
      code: 130,
      out: '',
      err: 'mintlake: interrupted\n',
    })
    silent.close()
    expect(readdirSync(folder)).not.toContain('backup.tmp')
    removeFolder(folder)
  })

  test('and the key is not sent to another address when a server redirects', async () => {
    let seen = 0
    const other = createServer((_request, response) => {
      seen++
      response.writeHead(302, { Location: `${server.url}/api/v1/admin/agents` }).end()
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    const result = await runCommand(['agents', 'list', '--url', `http://127.0.0.1:${port}`], {
      MINTLAKE_ADMIN_KEY: ADMIN_KEY,
    })
    other.close()
    expect(seen).toBe(1)
    expect(result).toMatchObject({ code: 1, out: '' })
  })
})

test('without --url the address of the server is MINTLAKE_URL, as for agents, or is read from its settings', async () => {
  const named = { MINTLAKE_ADMIN_KEY: ADMIN_KEY, MINTLAKE_URL: server.url, MINTLAKE_PORT: '1' }
  expect((await runCommand(['agents', 'list'], named)).code).toBe(0)
  const wrong = await runCommand(['agents', 'list'], { ...named, MINTLAKE_URL: 'localhost:8080' })
  expect(wrong.err).toContain('MINTLAKE_URL: "localhost:8080" is no address like')
  const env = { MINTLAKE_ADMIN_KEY: ADMIN_KEY, MINTLAKE_PORT: String(server.port), MINTLAKE_HOST: '0.0.0.0' }
  expect((await runCommand(['agents', 'list'], env)).code).toBe(0)
})

test('a misspelt variable is no silent default of a command', async () => {
  const { code, err } = await runCommand(['lake', 'verify'], { MINTLAKE_DATADIR: '/srv/mintlake' })
  expect({ code, err }).toMatchObject({
    code: 2,
    err: expect.stringContaining('did you mean MINTLAKE_DATA_DIR?'),
  })
  expect((await runCommand(['lake', 'verify', '--help'], { MINTLAKE_DATADIR: 'x' })).code).toBe(0)
})

test('each command lists its flags, and the list of commands names all of them', async () => {
  const all = (await runCommand(['--help'])).out
  for (const { name, options } of COMMANDS) {
    expect(all).toContain(`  ${name}`)
    const { code, out } = await runCommand(['help', ...name.split(' ')])
    expect(code).toBe(0)
    for (const flag of Object.keys(options)) expect(out).toContain(`--${flag}`)
  }
})
