// `npm run cluster`: what it starts, what it prints, and that nothing is left when it ends.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { SETTINGS } from '../../src/config/settings.ts'
import { temporaryFolder } from '../support/test-server.ts'
import { hasNats, skipped } from './support.ts'

const SCRIPT = fileURLToPath(new URL('../../scripts/cluster.ts', import.meta.url))
/** A line of a node's log that is a warning or an error. */
const FAULT = /"level":[456]0|^mintlake: /
const ADDRESS = /^(nats-server|writer|reader \d+) +(\w+:\/\/\S+)$/

let child: ChildProcess | null = null
/** What the nodes have written. */
let written: string[] = []
const dataDir = temporaryFolder()
afterEach(async () => {
  if (child !== null && child.exitCode === null && child.signalCode === null) {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  child = null
  rmSync(dataDir, { recursive: true, force: true })
})

/** Starts the script, and reads the addresses that it prints. */
function started(...flags: string[]): Promise<Record<string, string>> {
  const args = [
    '--no-warnings',
    SCRIPT,
    '--port',
    '0',
    '--data-dir',
    dataDir,
    '--log-level',
    'warn',
    ...flags,
  ]
  child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  written = []
  createInterface({ input: child.stderr! }).on('line', (line) => void written.push(line))
  const addresses: Record<string, string> = {}
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout! })
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      written.push(line)
      const [, name, url] = ADDRESS.exec(line) ?? []
      if (name !== undefined) addresses[name] = url
      if (line.startsWith('Ctrl-C')) resolve(addresses)
    })
    exited.then(([code]) => reject(new Error(`the cluster ended with ${code} before it had started`)))
  })
}

const statusOf = (url: string, path: string): Promise<number> =>
  fetch(url + path).then(
    ({ status }) => status,
    () => 0,
  )

/** Whether a process takes connections there. */
const isListening = (url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => resolve(false))
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })

describe.skipIf(!hasNats)(`npm run cluster${skipped}`, () => {
  test.each(['SIGINT', 'SIGTERM'] as const)(
    'starts NATS, a writer and two readers, which answer; %s ends all',
    { tags: 'drill' },
    async (signal) => {
      const addresses = await started('--readers', '2', '--simulator', 'tokens=50', '--tokens-max', '1000')
      expect(Object.keys(addresses)).toEqual(['nats-server', 'writer', 'reader 1', 'reader 2'])
      const urls = Object.values(addresses).filter((url) => url.startsWith('http'))
      for (const url of urls) await expect.poll(() => statusOf(url, '/readyz'), { timeout: 20_000 }).toBe(200)
      const rows = await Promise.all(
        urls.map(async (url) => (await fetch(`${url}/api/v1/market?limit=5&format=ndjson`)).text()),
      )
      for (const text of rows) expect(text.split('\n')).toHaveLength(6)
      // The lake process gives way to all others: on a busy machine it may only now have opened the lake.
      const { writer = '' } = addresses
      const health = async () => (await fetch(`${writer}/health`)).text()
      await expect.poll(health, { timeout: 40_000 }).toMatch(/"files":[1-9]/)
      child!.kill(signal)
      const [code] = await once(child!, 'exit')
      expect(code).toBe(0)
      for (const url of urls) expect(await statusOf(url, '/health')).toBe(0)
      expect(await isListening(addresses['nats-server'])).toBe(false)
      // Nothing was wrong, and nothing says so.
      expect(written.filter((line) => FAULT.test(line))).toEqual([])
    },
  )

  test('leaves nothing behind when it is killed', { tags: 'drill' }, async () => {
    const addresses = await started('--readers', '1', '--simulator', 'tokens=50', '--tokens-max', '1000')
    for (const url of Object.values(addresses)) expect(await isListening(url)).toBe(true)
    child!.kill('SIGKILL')
    for (const url of Object.values(addresses))
      await expect.poll(() => isListening(url), { timeout: 20_000 }).toBe(false)
  })
})

const said = (flags: string[], env: Record<string, string> = {}) => {
  const { status, stderr } = spawnSync(process.execPath, ['--no-warnings', SCRIPT, ...flags], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  return { status, stderr }
}

test.each([
  [['--readers', 'two'], '--readers must be between 0 and 64'],
  [['--readers'], '--readers has no value'],
  [['readers'], '"readers" is not a flag'],
  [['--role', 'all'], '--role is set by this script'],
  [['--lake-flush', '1'], 'is not a flag of this program'],
])('%j is refused with a sentence', (flags, sentence) => {
  const { status, stderr } = said(flags)
  expect(stderr).toContain(sentence)
  expect(status).toBe(2)
})

test('says how nats-server is installed where there is none', () => {
  const { status, stderr } = said([], { NATS_SERVER: '/nowhere/nats-server' })
  expect(stderr).toContain('apt-get install nats-server')
  expect(status).toBe(2)
})

test('has a port and a folder of its own, so that npm start may run beside it', () => {
  const { stdout } = spawnSync(process.execPath, ['--no-warnings', SCRIPT, '--help'], { encoding: 'utf8' })
  const [, port, folder] = /without --port the writer has (\d+) .* in (\S+)\.$/is.exec(stdout.trim()) ?? []
  expect(port).not.toBe(SETTINGS.port.defaultText)
  expect(folder).not.toBe(SETTINGS.dataDir.defaultText)
})
