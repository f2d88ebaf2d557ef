// The agent of README, exactly as it stands there, and the fuller one of scripts/agent.ts, on a real server.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readmeAgent } from '../../scripts/agent/readme-agent.ts'
import { freePort } from '../support/free-port.ts'
import { seedToken } from '../support/submission.ts'
import { openTestServer, spawnServer, type TestServer, temporaryFolder } from '../support/test-server.ts'

const ROOT = new URL('../../', import.meta.url).pathname
const AGENT_LINES_MAX = 60
const FAST = ['--per-minute', '600']
let server: TestServer
let folder: string

beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0' })
  folder = temporaryFolder()
  for (let count = 0; count < 6; count++) await seedToken(server.client, Date.now())
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.remove()
})

interface Program {
  process: ChildProcess
  /** All that it has written. */
  lines: string[]
  /** Resolves once a line like this was written, with all such lines; rejects if the program ends before. */
  until(pattern: RegExp, count?: number): Promise<string[]>
  /** The exit code. */
  ended: Promise<number | null>
}

function run(args: readonly string[], env: Record<string, string> = {}): Program {
  const child = spawn(process.execPath, ['--no-warnings', ...args], {
    cwd: folder,
    // An empty variable is none.
    env: { ...process.env, MINTLAKE_KEY: '', MINTLAKE_URL: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const readers = [child.stdout, child.stderr].map((input) => createInterface({ input }))
  for (const reader of readers) reader.on('line', (line) => void lines.push(line))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const until = (pattern: RegExp, count = 1): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const found = lines.filter((line) => pattern.test(line))
        if (found.length >= count) resolve(found)
      }
      for (const reader of readers) reader.on('line', check)
      void ended.then((code) => reject(new Error(`it ended with ${code}:\n${lines.join('\n')}`)))
      check()
    })
  return { process: child, lines, until, ended }
}

const runAgent = (url: string, ...args: string[]): Program =>
  run([join(ROOT, 'scripts/agent.ts'), '--url', url, ...FAST, ...args], { HOME: folder })

test('the agent of README submits, and takes at most 60 lines', async () => {
  const text = readmeAgent()
  expect(text.split('\n').length).toBeLessThanOrEqual(AGENT_LINES_MAX)
  // The package as an agent's own folder has it; its code is that of this clone.
  const installed = join(folder, 'node_modules/mintlake')
  mkdirSync(installed, { recursive: true })
  symlinkSync(join(ROOT, 'src'), join(installed, 'src'))
  writeFileSync(join(installed, 'package.json'), '{"exports":{"./client":"./src/client/index.ts"}}')
  writeFileSync(join(folder, 'agent.mjs'), text)
  const agent = run(['agent.mjs', server.url])
  const verdicts = await agent.until(/validated: \+\d+ XP/, 3)
  expect(verdicts[0]).toMatch(/^\w{32,44} validated: \+50 XP, 50 in all$/)
  agent.process.kill()
  await agent.ended
  const keyFile = join(folder, `agent-${new URL(server.url).host.replace(':', '-')}.key`)
  expect(statSync(keyFile).mode & 0o777).toBe(0o600)
  expect(agent.lines.join('\n')).not.toContain(readFileSync(keyFile, 'utf8'))
  // The next run is the same agent: what it submits comes on top.
  await seedToken(server.client, Date.now())
  const again = run(['agent.mjs', server.url])
  const [next = ''] = await again.until(/validated: \+\d+ XP/)
  expect(Number(/(\d+) in all/.exec(next)?.[1])).toBeGreaterThan(150)
  again.process.kill()
  await again.ended
})

test('a program in a clone imports mintlake/client as it stands, and is told what to do by a Node that cannot read it', async () => {
  // A program of the clone resolves the clone's own package.
  const path = join(ROOT, `scripts/.${process.pid}-client-of-a-clone.mjs`)
  const program = "import * as client from 'mintlake/client'\nconsole.log(Object.keys(client).sort().join())"
  writeFileSync(path, program)
  try {
    const works = run([path])
    expect(await works.ended, works.lines.join('\n')).toBe(0)
    expect(works.lines).toEqual([
      Object.keys(await import('../../src/client/index.ts'))
        .sort()
        .join(),
    ])
    const old = run(['--no-experimental-strip-types', path], { NODE_OPTIONS: '' })
    expect(await old.ended).toBe(1)
    expect(old.lines.join('\n')).toContain('run "npx node ')
  } finally {
    rmSync(path)
  }
})

test('the fuller agent registers once, submits, prints verdicts and XP, and keeps its key to itself', async () => {
  const first = runAgent(server.url, '--max', '3', '--name', 'fuller')
  expect(await first.ended, first.lines.join('\n')).toBe(0)
  expect(
    first.lines.filter((line) => /^validated \+\d+ XP \(total \d+\) SEED \w+: \w+ \d+$/.test(line)),
  ).toHaveLength(3)
  expect(first.lines.at(-1)).toMatch(/^3 submissions, \d+ XP earned$/)
  const path = join(folder, '.mintlake', `${new URL(server.url).host.replace(':', '_')}.key`)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(first.lines.join('\n')).not.toContain(readFileSync(path, 'utf8').trim())
  const second = runAgent(server.url, '--max', '1', '--name', 'fuller')
  expect(await second.ended, second.lines.join('\n')).toBe(0)
  expect(second.lines.join('\n')).not.toContain('registered')
})

test('without a server each agent says so in a sentence with the address and a remedy', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  writeFileSync(join(folder, 'agent.mjs'), readmeAgent())
  for (const agent of [run(['agent.mjs', url]), runAgent(url)]) {
    expect(await agent.ended).toBe(1)
    const told = agent.lines.join('\n')
    expect(told).toContain(`No answer from ${url}`)
    expect(told).toContain('npm start')
    expect(told).not.toMatch(/^\s+at /m)
  }
})

test('it takes a key from the environment, and says what is wrong with one', async () => {
  const wrong = run([join(ROOT, 'scripts/agent.ts'), '--url', server.url], { MINTLAKE_KEY: 'ps_wrong' })
  expect(await wrong.ended).toBe(1)
  expect(wrong.lines[0]).toMatch(/^invalid_key: /)
  const flag = run([join(ROOT, 'scripts/agent.ts'), '--per-minute', '0'])
  expect(await flag.ended).toBe(2)
  expect(flag.lines[0]).toBe('--per-minute is not between 1 and 600')
  const twice = run([join(ROOT, 'scripts/agent.ts'), '--max', '1', '--max', '2'])
  expect(await twice.ended).toBe(2)
  expect(twice.lines[0]).toBe('--max is given twice')
})

test('it takes the server from MINTLAKE_URL as the agent of README does, and tells its flags', {
  tags: 'drill',
}, async () => {
  const agent = run([join(ROOT, 'scripts/agent.ts'), ...FAST, '--max', '1'], {
    HOME: folder,
    MINTLAKE_URL: server.url,
  })
  expect(await agent.ended, agent.lines.join('\n')).toBe(0)
  expect(agent.lines.at(-1)).toMatch(/^1 submissions, /)
  const help = run([join(ROOT, 'scripts/agent.ts'), '--help'])
  expect(await help.ended).toBe(0)
  expect(help.lines[0]).toMatch(/^npm run agent -- \[--url URL\]/)
  const nowhere = run([join(ROOT, 'scripts/agent.ts'), '--url', 'localhost:8080'])
  expect(await nowhere.ended).toBe(2)
  expect(nowhere.lines[0]).toBe('"localhost:8080" is no address like http://127.0.0.1:8080')
})

test.each(['SIGINT', 'SIGTERM'] as const)('%s stops it cleanly', async (signal) => {
  const args = [join(ROOT, 'scripts/agent.ts'), '--url', server.url, '--per-minute', '1']
  const agent = run(args, { HOME: folder })
  await agent.until(/^validated/)
  agent.process.kill(signal)
  expect(await agent.ended).toBe(0)
  expect(agent.lines.at(-1)).toMatch(/submissions, \d+ XP earned$/)
})

test('it survives a restart of the server', { tags: 'drill' }, async () => {
  // A server that was given port 0 leaves connections behind that keep another from its port for a minute.
  const settings = { port: `${await freePort()}`, 'submit-limits': 'rate=0,cooldown-ms=0' }
  const before = await spawnServer(settings)
  const { url } = before.client
  await seedToken(before.client, Date.now())
  const agent = runAgent(url)
  await agent.until(/^validated/)
  await before.kill()
  await agent.until(/^network_error: .*trying again$/)
  const after = await spawnServer(settings, before.dataDir)
  await seedToken(after.client, Date.now())
  await agent.until(/^validated/, 2)
  agent.process.kill('SIGTERM')
  expect(await agent.ended).toBe(0)
  await after.terminate()
})
