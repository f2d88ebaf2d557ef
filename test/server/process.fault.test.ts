// The program as a process: how it starts, how it ends, and what it says when it cannot start.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { newMint, seedToken, submission, submit } from '../support/submission.ts'
import { openTestServer, spawnServer, temporaryFolder } from '../support/test-server.ts'

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname
const folders: string[] = []
function folder(): string {
  const made = temporaryFolder()
  folders.push(made)
  return made
}
afterEach(() => {
  for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true })
})

/** Runs the program until it exits. */
async function run(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stderr.on('data', (chunk) => {
    err += chunk
  })
  const [code] = await once(child, 'close')
  return { code, out, err }
}
/** Runs a program in a terminal of its own, which closes when this is killed. */
const IN_TERMINAL = ['sh', '-c', 'exec script --quiet --flush --command "exec $*" /dev/null', 'sh']
const WITH_FEW_FILES = ['sh', '-c', 'ulimit -n 100; exec "$@"', 'sh']
const quietFlags = (dataDir: string) => ['--feed', 'none', '--log-level', 'warn', '--data-dir', dataDir]

/** A module that makes each write and sync of a file hang after SIGUSR2, in a pool thread: it opens a pipe that has no writer. */
const hangingDisk = (pipe: string): string =>
  `data:text/javascript,${encodeURIComponent(`
    import { open } from 'node:fs/promises'
    const file = await open(process.execPath)
    const prototype = Object.getPrototypeOf(file)
    await file.close()
    const hang = () => open(${JSON.stringify(pipe)})
    process.on('SIGUSR2', () => Object.assign(prototype, { write: hang, datasync: hang, sync: hang }))
  `)}`

describe('a server', () => {
  it.runIf(existsSync('/dev/full'))('starts, answers and ends where its log cannot be written', async () => {
    const port = await freePort()
    const full = openSync('/dev/full', 'w')
    const args = ['--feed', 'none', '--port', `${port}`, '--data-dir', folder()]
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    const said = text(child.stderr!)
    const ended = once(child, 'exit')
    const url = `http://127.0.0.1:${port}/readyz`
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200), {
      timeout: 30_000,
      interval: 50,
    })
    child.kill('SIGTERM')
    expect(await ended, await said).toEqual([0, null])
  })

  it('answers pending requests, ends streams with bye and exits with 0 on SIGTERM', async () => {
    const dataDir = folder()
    const server = await spawnServer({}, dataDir)
    const key = await server.client.register()
    const mint = await seedToken(server.client, Date.now())
    const stream = await fetch(`${server.client.url}/api/v1/market?format=ndjson&follow=1`)
    const sent = await submit(server.client, key, submission(mint))
    expect(sent.status, sent.text).toBe(201)
    const ended = server.terminate()
    const lines = (await stream.text()).trimEnd().split('\n')
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ event: 'bye', reason: 'draining' })
    expect(await ended).toBe(0)

    const again = await openTestServer({}, {}, dataDir)
    const kept = await again.client.get(`/api/v1/analysis/${sent.body.analysisId}`)
    expect(kept.status, kept.text).toBe(200)
    await again.stop()
  })

  it.runIf(process.platform === 'linux')(
    'ends in order with the terminal that it was started in, though nobody reads any more what it says',
    async () => {
      const server = await spawnServer({}, folder(), {}, IN_TERMINAL)
      const key = await server.client.register()
      const sent = await submit(server.client, key, submission(await seedToken(server.client, Date.now())))
      expect(sent.status, sent.text).toBe(201)
      const files = () => readdirSync(server.dataDir)
      expect(files()).toEqual(expect.arrayContaining(['server.lock', 'state.duckdb.wal']))
      // The terminal is gone, and the kernel sends SIGHUP to all that run in it: the server and its lake process.
      await server.kill()
      await expect.poll(files, { timeout: 20_000 }).not.toContain('server.lock')
      expect(files(), 'the lake was closed in order').not.toContain('state.duckdb.wal')
    },
  )

  it.runIf(process.platform === 'linux')(
    'says that it may open no more files, in the log and by /health',
    { tags: 'drill' },
    async () => {
      const server = await spawnServer({}, folder(), {}, WITH_FEW_FILES)
      expect(server.lines.join('\n')).toContain(
        'the server may have 100 files open, and each client takes one',
      )
      // One connection that is there before, and stays.
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const reasons = async (): Promise<string> => {
        const [answer] = await once(request(`${server.client.url}/health`, { agent }).end(), 'response')
        return JSON.parse(await text(answer)).reasons.join()
      }
      await reasons()
      const { port } = new URL(server.client.url)
      const others = Array.from({ length: 150 }, () => connect(Number(port), '127.0.0.1'))
      await Promise.all(others.map((socket) => once(socket, 'connect')))
      const sentence = 'the server has the 100 files that it may open: no client can connect'
      await expect.poll(reasons, { timeout: 10_000 }).toContain(sentence)
      expect(server.lines.join('\n')).toContain(sentence)
      for (const socket of others) socket.destroy()
      agent.destroy()
      expect(await server.terminate()).toBe(0)
    },
  )

  it('says by /readyz that it drains, and answers for a while, before it refuses requests when it shuts down', {
    tags: 'drill',
  }, async () => {
    const server = await spawnServer({ 'drain-notice-ms': '2000' }, folder())
    expect((await server.client.get('/readyz')).status).toBe(200)
    const ended = server.terminate()
    let answer = await server.client.get('/readyz')
    while (answer.status === 200) answer = await server.client.get('/readyz')
    expect(answer).toMatchObject({ status: 503, body: { ok: false, code: 'draining' } })
    expect(answer.headers.get('retry-after')).toBe('1')
    const page = await server.client.get('/api/v1/market')
    expect(page.status).toBe(200)
    expect(page.headers.get('connection')).toBe('close')
    expect((await server.client.get('/health')).status).toBe(200)
    expect(await ended).toBe(0)
    await expect(server.client.get('/readyz')).rejects.toThrow()
  })

  it('on an IPv6 address, with or without brackets, prints an address that can be requested', {
    tags: 'drill',
  }, async () => {
    for (const host of ['::1', '[::1]']) {
      const server = await spawnServer({ host }, folder())
      expect(server.client.url).toMatch(/^http:\/\/\[::1\]:\d+$/)
      expect((await server.client.get('/readyz')).status).toBe(200)
      expect(await server.terminate()).toBe(0)
    }
  })

  it.runIf(process.platform === 'linux')(
    'loads DuckDB only in its lake process',
    { tags: 'drill' },
    async () => {
      const server = await spawnServer({}, folder())
      const { pid } = server.process
      await submit(
        server.client,
        await server.client.register(),
        submission(await seedToken(server.client, Date.now())),
      )
      const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
      expect(readFileSync(`/proc/${child}/maps`, 'utf8')).toContain('libduckdb')
      expect(readFileSync(`/proc/${pid}/maps`, 'utf8')).not.toContain('libduckdb')
      expect(await server.terminate()).toBe(0)
    },
  )

  it('exits with 0 on SIGINT too', { tags: 'drill' }, async () => {
    const server = await spawnServer({}, folder())
    const exited = once(server.process, 'exit')
    server.process.kill('SIGINT')
    expect((await exited)[0]).toBe(0)
  })

  it('exits in time on a disk that hangs, and keeps what it acknowledged', { tags: 'drill' }, async () => {
    const dataDir = folder()
    const pipe = join(folder(), 'pipe')
    execFileSync('mkfifo', [pipe])
    const server = await spawnServer({}, dataDir, {}, [], ['--import', hangingDisk(pipe), MAIN])
    const key = await server.client.register()
    const [first, second] = [
      await seedToken(server.client, Date.now()),
      await seedToken(server.client, Date.now()),
    ]
    const sent = await submit(server.client, key, submission(first))
    expect(sent.status, sent.text).toBe(201)
    server.process.kill('SIGUSR2')
    const refused = submit(server.client, key, submission(second))
    expect((await server.client.get('/api/v1/market')).status).toBe(200)
    const beganMs = performance.now()
    await server.terminate()
    expect(performance.now() - beganMs).toBeLessThan(25_000)
    expect(await refused).toMatchObject({
      status: 503,
      body: { code: 'store_unavailable', mayBeStored: true },
    })

    const again = await openTestServer({}, {}, dataDir)
    expect((await again.client.get(`/api/v1/analysis/${sent.body.analysisId}`)).status).toBe(200)
    await again.stop()
  })

  it('that cannot start prints one sentence with the reason and exits with 1', {
    tags: 'drill',
  }, async () => {
    const dataDir = folder()
    const first = await openTestServer({}, {}, dataDir)
    const samePort = await run(['--port', `${first.port}`, ...quietFlags(folder())])
    const sameFolder = await run(['--port', '0', ...quietFlags(dataDir)])
    expect((await first.client.get('/readyz')).status).toBe(200)
    await first.stop()
    for (const { code, out, err } of [samePort, sameFolder]) {
      expect(code).toBe(1)
      expect(out).not.toContain('listening')
      expect(err.trimEnd().split('\n'), err).toHaveLength(1)
      expect(err).toMatch(/^mintlake: /)
      expect(err).not.toMatch(/\.ts:\d/)
    }
    expect(samePort.err).toContain(`port ${first.port}`)
  })

  it('that cannot have its port says so before it makes a market', { tags: 'drill' }, async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { code, out, err } = await run(['--port', `${port}`, '--data-dir', folder()])
    other.close()
    expect(code).toBe(1)
    expect(err).toBe(`mintlake: port ${port} on 127.0.0.1 cannot be used: another program listens there\n`)
    const lines = out.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['settings'])
  })
})

describe('settings', () => {
  it('that are misspelt are refused with the most similar name and exit code 2', async () => {
    const flag = await run(['--prot', '1'])
    expect(flag).toMatchObject({ code: 2 })
    expect(flag.err).toContain('did you mean --port?')
    const variable = await run([], { MINTLAKE_DATADIR: '/x' })
    expect(variable).toMatchObject({ code: 2 })
    expect(variable.err).toContain('did you mean MINTLAKE_DATA_DIR?')
  })

  it.each([
    ['--port', '70000'],
    ['--port', 'abc'],
    ['--feed', 'simulatr'],
    ['--feed', 'replay'],
    ['--read-limit-anonymous', '-1'],
    ['--trusted-proxies', 'localhost'],
    ['--trusted-proxies', '10.0.0.0/33'],
  ])('%s %s is refused with exit code 2', async (name, value) => {
    const { code, err } = await run([name, value, '--data-dir', folder()])
    expect(code).toBe(2)
    expect(err).toContain(name)
  })

  it('are listed by --help', async () => {
    const { code, out } = await run(['--help'])
    expect(code).toBe(0)
    for (const name of ['--port', '--data-dir', '--feed', 'MINTLAKE_FEED_KEY', 'MINTLAKE_ADMIN_KEY'])
      expect(out).toContain(name)
  })

  it('are logged at the start without secrets', { tags: 'drill' }, async () => {
    const secret = `hidden-${newMint()}`
    const dataDir = folder()
    const child = spawn(process.execPath, [MAIN, '--port', '0', '--feed', 'none', '--data-dir', dataDir], {
      env: { ...process.env, MINTLAKE_FEED_KEY: secret, MINTLAKE_ADMIN_KEY: secret },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    const listening = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => {
          said += chunk
          if (/^listening on http:\/\/127\.0\.0\.1:\d+$/m.test(said)) resolve()
        })
    })
    const exited = once(child, 'exit')
    await listening
    child.kill('SIGTERM')
    expect((await exited)[0]).toBe(0)
    expect(said).toContain('settings')
    expect(said).not.toContain(secret)
  })
})
