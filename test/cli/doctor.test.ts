// `mintlake doctor` in sound and in broken situations.
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { CheckResult } from '../../src/cli/doctor/check.ts'
import { checkDiskSpace } from '../../src/cli/doctor/data-folder.ts'
import {
  checkBinary,
  checkClock,
  checkDescriptors,
  checkMemory,
  checkNode,
} from '../../src/cli/doctor/platform.ts'
import { checkPort, checkServer } from '../../src/cli/doctor/server.ts'
import { noSmallDisk, openSmallDisk } from '../support/disk/small-disk.ts'
import { runCommand } from '../support/terminal.ts'
import { ADMIN_KEY, openTestServer, type TestServer, temporaryFolder } from '../support/test-server.ts'
import { SolanaNode } from '../support/upstreams/solana-node.ts'

const SECURE = { MINTLAKE_ADMIN_KEY: ADMIN_KEY }
const BINARIES = ['uWebSockets.js', '@duckdb/node-api']

let server: TestServer
let folder: string
beforeAll(async () => {
  server = await openTestServer()
  folder = temporaryFolder()
})
afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

interface Report {
  code: number
  ok: boolean
  checks: Record<string, CheckResult>
}

/** Runs the command against the server of this file unless `args` name another port. */
async function doctor(args: string[], env: Record<string, string> = SECURE): Promise<Report> {
  const { code, out } = await runCommand(['doctor', '--json', ...args], env)
  const { ok, checks } = JSON.parse(out)
  return { code, ok, checks: Object.fromEntries(checks.map((each: { name: string }) => [each.name, each])) }
}
const here = (...args: string[]) => ['--port', `${server.port}`, '--data-dir', server.dataDir, ...args]

describe('a machine where all is well', () => {
  it('is told with exit code 0, by line and as JSON, and nothing is left in the data folder', async () => {
    await vi.waitFor(() => expect(readdirSync(server.dataDir)).toContain('journal'))
    const before = readdirSync(server.dataDir)
    const { code, ok, checks } = await doctor(here())
    expect({ code, ok }, JSON.stringify(checks)).toEqual({ code: 0, ok: true })
    for (const name of ['node', ...BINARIES, 'settings', 'port', 'data folder', 'server'])
      expect(checks[name], name).toMatchObject({ level: 'ok', remedy: null })
    expect(checks.port.message).toContain('a Mintlake server answers')
    expect(checks['data folder'].message).toContain(`in use by process ${process.pid}`)
    // But for what the server itself writes a moment after its start.
    const isServers = (name: string) =>
      before.includes(name) || /^((log|journal)\.mark|accounts\.log)$/.test(name)
    expect(readdirSync(server.dataDir).filter((name) => !isServers(name))).toEqual([])
    const { out } = await runCommand(['doctor', ...here()], SECURE)
    expect(out).toMatch(/^ok {4}node {15}Node 22\./)
    expect(out).toMatch(/0 wrong, \d+ to look at, \d+ well\n$/)
  })

  it('has a free port and a folder yet to be made before the first start', async () => {
    const { code, checks } = await doctor(['--port', '0', '--data-dir', join(folder, 'not', 'yet')])
    expect(code).toBe(0)
    expect(checks['data folder'].message).toContain('is made at the first start')
    expect(checks.port.message).toContain('is free')
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('two things that are not of one store', () => {
  it('are not shown as one: the folder that is checked is not the one of the server', {
    tags: 'drill',
  }, async () => {
    const other = await openTestServer()
    try {
      for (const named of [here(), ['--url', server.url, '--data-dir', server.dataDir]])
        expect((await doctor(named)).checks['data folder']).toMatchObject({ level: 'ok' })
      const swapped = ['--port', `${server.port}`, '--data-dir', other.dataDir]
      const named = ['--url', server.url, '--data-dir', other.dataDir]
      for (const args of [swapped, named])
        expect((await doctor(args)).checks['data folder']).toMatchObject({
          level: 'warn',
          message: expect.stringContaining(
            `${server.url} answers, but is not the server of ${other.dataDir}`,
          ),
          remedy: expect.stringMatching(/--data-dir.*--url/),
        })
      const lakeStatus = ['lake', 'status', '--data-dir', other.dataDir, '--url', server.url]
      const { code, out } = await runCommand(lakeStatus)
      expect({ code, out }).toMatchObject({
        code: 0,
        out: expect.stringContaining('has another data folder'),
      })
      const {
        server: shown,
        told,
        tables,
      } = JSON.parse((await runCommand([...lakeStatus, '--format', 'json'])).out)
      expect({ shown, told }).toEqual({
        shown: null,
        told: expect.stringContaining('--url names its own server'),
      })
      for (const { backlog } of tables) expect(backlog).toBeNull()
    } finally {
      await other.remove()
    }
  })
})

describe('what is wrong has a remedy and exit code 1', () => {
  const wrong = async (name: string, args: string[], message: RegExp, env = SECURE) => {
    const { code, checks } = await doctor(args, env)
    expect(checks[name]).toMatchObject({ level: 'fail', message: expect.stringMatching(message) })
    expect(checks[name].remedy).toMatch(/\w/)
    expect(code).toBe(1)
  }

  it('a setting without an effect, a wrong one, a misspelt one', { tags: 'drill' }, async () => {
    await wrong(
      'settings',
      ['--feed', 'none', '--simulator', 'tokens=5'],
      /has no effect without --feed simulator/,
    )
    await wrong('settings', ['--tokens-max', 'many'], /--tokens-max: "many" is not valid/)
    await wrong('settings', [], /did you mean MINTLAKE_DATA_DIR/, {
      ...SECURE,
      MINTLAKE_DATADIR: 'x',
    } as typeof SECURE)
  })

  it('another program on the port, or an address of another machine', async () => {
    const other: Server = createServer((socket) => socket.end('220 mail\r\n'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const address = other.address()
    const port = typeof address === 'object' ? `${address?.port}` : ''
    try {
      await wrong('port', ['--port', port, '--data-dir', folder], /is in use by another program/)
    } finally {
      other.close()
    }
    await wrong(
      'port',
      ['--port', '0', '--host', '192.0.2.1', '--data-dir', folder],
      /cannot be used: EADDRNOTAVAIL/,
    )
  })

  it('the server of the folder where it does not answer, as while it makes its market: nobody is told to end it', async () => {
    const silent = createServer()
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const address = silent.address()
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0
    try {
      const result = await checkPort('127.0.0.1', port, 'no server answers at http://x: timeout', 4711)
      expect(result).toMatchObject({
        level: 'fail',
        message: expect.stringContaining('by process 4711: no server answers at http://x: timeout'),
      })
      expect(result.remedy).not.toContain('end it')
    } finally {
      silent.close()
    }
  })

  it('a data folder that is damaged, of a newer version, of 0.1, unfinished, or a file', {
    tags: 'drill',
  }, async () => {
    const at = (name: string, file: string, text: string): string[] => {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, file), text)
      return ['--port', '0', '--data-dir', join(folder, name)]
    }
    await wrong('data folder', at('damaged', 'store.json', '{'), /store\.json is damaged/)
    const newer = { format: 9, logId: 'x', createdAtMs: 0, holdsSimulated: false, holdsReal: false }
    await wrong(
      'data folder',
      at('newer', 'store.json', JSON.stringify(newer)),
      /has format 9, which a newer version/,
    )
    await wrong(
      'data folder',
      at('part', 'backup.json', '{"complete":false}'),
      /is an unfinished backup or restore/,
    )
    await wrong(
      'data folder',
      at('oldest', 'mintlake.duckdb', ' '.repeat(12_288)),
      /was written by Mintlake 0\.1, which this version does not read/,
    )
    writeFileSync(join(folder, 'file'), '')
    await wrong('disk', ['--port', '0', '--data-dir', join(folder, 'file')], /is no folder/)
  })

  it('a data folder of the other kind of market, and a file of a setting that is missing', async () => {
    mkdirSync(join(folder, 'real'))
    const real = { format: 2, logId: 'x', createdAtMs: 0, holdsSimulated: false, holdsReal: true }
    writeFileSync(join(folder, 'real', 'store.json'), JSON.stringify(real))
    const at = ['--port', '0', '--data-dir', join(folder, 'real')]
    await wrong(
      'data folder',
      [...at, '--feed', 'simulator'],
      /holds real data, and this feed's is simulated/,
    )
    // Which kind of market is meant is not known then.
    const { checks } = await doctor([...at, '--feed', 'solan'])
    expect(checks.settings).toMatchObject({ level: 'fail' })
    expect(checks['data folder'].message).not.toContain('simulated')
    for (const replay of ['file=/no/such.csv', 'lake=/no/such'])
      await wrong(
        'settings',
        [...at, '--feed', 'replay', '--replay', replay],
        /^--replay (file|lake): \/no\/such.* cannot be read/,
      )
  })

  it('a setting, and the other checks are still of the port and the folder that were named', async () => {
    const { checks } = await doctor(here('--tokens-max', 'many'))
    expect(checks.settings).toMatchObject({ level: 'fail' })
    expect(checks.port.message).toContain(`port ${server.port} `)
    expect(checks['data folder'].message).toContain(server.dataDir)
  })

  it('a flag that went, with what took its place, as the server says it', async () => {
    const { code, err } = await runCommand(['doctor', '--replay-file', 'trades.csv'], SECURE)
    expect(err).toContain('--replay-file is no setting any more: --replay file=FILE took its place')
    expect(code).toBe(2)
  })

  it('a named server that does not answer, or says itself that something is wrong', async () => {
    await wrong('server', ['--url', 'http://127.0.0.1:1', '--data-dir', folder], /no server answers/)
    const health = {
      ...{ status: 'degraded', reasons: ['the disk is nearly full'], simulated: false },
      ...{ feeds: [], store: { healthy: true } },
    }
    expect(checkServer('http://x', health, true)).toMatchObject({
      level: 'fail',
      message: 'the server at http://x is degraded: the disk is nearly full',
    })
  })

  it.skipIf(noSmallDisk !== null)('a disk without room', async () => {
    const disk = await openSmallDisk(folder, '64k')
    try {
      expect(await checkDiskSpace(disk.root, 64)).toMatchObject({ level: 'fail' })
      const { checks } = await doctor(['--port', '0', '--data-dir', disk.root])
      expect(checks.disk).toMatchObject({
        level: 'warn',
        message: expect.stringContaining('in memory (tmpfs)'),
      })
      disk.fill(0)
      await wrong('disk', ['--port', '0', '--data-dir', disk.root], /ENOSPC/)
    } finally {
      await disk.remove()
    }
  })

  it('another Node, a binary that does not load, little memory, a clock from before the program', async () => {
    expect(checkNode('20.19.0')).toMatchObject({
      level: 'fail',
      message: expect.stringContaining('Node 20.19.0'),
    })
    expect(await checkBinary('no-such-package', 'await import(process.argv[1])')).toMatchObject({
      level: 'fail',
      message: expect.stringContaining('no-such-package does not load'),
    })
    expect(checkMemory(512 * 1_048_576).level).toBe('fail')
    expect(checkClock(Date.UTC(1970, 0), folder).level).toBe('fail')
  })
})

describe('what may be worth a look', () => {
  it('is told with exit code 0: no operator’s key, or one that can be guessed', async () => {
    const bare = await doctor(here(), {})
    expect(bare).toMatchObject({ code: 0, checks: { settings: { level: 'warn' } } })
    const short = await doctor(here(), { MINTLAKE_ADMIN_KEY: 'secret' })
    expect(short.checks.settings).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('fewer than 16'),
    })
    expect(JSON.stringify(short)).not.toContain('"secret"')
  })

  it('is a clock that was set back, and few file descriptors', () => {
    writeFileSync(join(folder, 'state.duckdb'), '')
    const nowMs = Date.UTC(2026, 5)
    utimesSync(join(folder, 'state.duckdb'), nowMs / 1_000, nowMs / 1_000)
    expect(checkClock(nowMs, folder).level).toBe('ok')
    expect(checkClock(nowMs - 3_600_000, folder).level).toBe('warn')
    expect(
      checkDescriptors('Max open files            1024                 4096                 files').level,
    ).toBe('warn')
    expect(
      checkDescriptors('Max open files            65536                65536                files').level,
    ).toBe('ok')
  })
})

describe('a reader', () => {
  it('has no data folder and no operator’s key, so nothing is said of them', async () => {
    const reader = ['--role', 'reader', '--bus', 'nats://127.0.0.1:9', '--port', '0']
    const { code, checks } = await doctor(reader, {})
    // Nobody listens there.
    expect({ code, ...checks }).toMatchObject({
      ...{ code: 1, settings: { level: 'ok' } },
      bus: { level: 'fail', message: expect.stringContaining('127.0.0.1:9') },
    })
    expect(checks.settings.message).not.toContain('simulated')
    expect(Object.keys(checks)).not.toContain('data folder')
  })
})

describe('an endpoint of the chain', () => {
  it('is asked to the end by the command itself, which no wait of the feed keeps alive', async () => {
    const node = await SolanaNode.start()
    node.setSolPrice(150, Date.now())
    const pulse = setInterval(() => node.nextSlot(), 20)
    try {
      const args = ['doctor', '--port', '0', '--data-dir', join(folder, 'chain')]
      const chain = ['--feed', 'solana', '--solana-rpc', node.url]
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['scripts/mintlake.mjs', ...args, ...chain],
        {
          env: { PATH: process.env.PATH, ...SECURE },
        },
      )
      expect(stdout).toMatch(/endpoint .* serves the chain at slot/)
      expect(stdout).toMatch(/0 wrong, /)
    } finally {
      clearInterval(pulse)
      await node.close()
    }
  })

  it('that serves it is told as such, and one that does not with what to do; its key is never shown', {
    tags: 'drill',
  }, async () => {
    const node = await SolanaNode.start()
    node.setSolPrice(150, Date.now())
    const pulse = setInterval(() => node.nextSlot(), 20)
    const settings = here('--feed', 'solana', '--solana-rpc', `${node.url}/a-secret-key?k=a-secret-key`)
    try {
      const { checks } = await doctor(settings)
      expect(checks.endpoint).toMatchObject({
        level: 'ok',
        message: expect.stringContaining('serves the chain at slot'),
      })
      node.refusals = { getSignaturesForAddress: { error: { code: -32_601, message: 'not in your plan' } } }
      expect((await doctor(settings)).checks.endpoint).toMatchObject({ level: 'warn' })
      node.setSolPrice(150, Date.now() - 3_600_000)
      node.refusals = {}
      expect((await doctor(settings)).checks.endpoint.message).toContain(
        'no price of SOL of the last ten minutes',
      )
      node.genesis = 'other'
      const wrong = await doctor(settings)
      expect(wrong.checks.endpoint).toMatchObject({
        level: 'fail',
        message: expect.stringContaining('another chain'),
      })
      expect(JSON.stringify(wrong)).not.toContain('a-secret-key')
    } finally {
      clearInterval(pulse)
      await node.close()
    }
  })
})
