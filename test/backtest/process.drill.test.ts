// @module-tag drill
// `mintlake backtest` as a process of its own: beside the server whose lake it plays, and ended before its market is.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { noWatchedDisk, watchDisk } from '../support/disk/disk-shim.ts'
import { ADMIN_KEY, openTestServer, type TestServer, temporaryFolder } from '../support/test-server.ts'
import { folder, recordLake, removeFolder } from './support.ts'

const ROOT = new URL('../../', import.meta.url).pathname
const COMMAND = join(ROOT, 'scripts/mintlake.mjs')

let lake: string
beforeAll(async () => {
  lake = await recordLake(3)
})
afterAll(removeFolder)

interface Run {
  child: ChildProcess
  /** What it wrote so far. */
  out(): string
  err(): string
  /** Resolves with its exit code. */
  exited: Promise<number | null>
}

function run(args: readonly string[], env: Record<string, string> = {}, command = COMMAND): Run {
  const child = spawn(process.execPath, ['--no-warnings', command, ...args], {
    env: { ...process.env, ...env },
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const text = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (chunk) => {
      text[name] += chunk
    })
  const exited = once(child, 'close').then(([code]) => code as number | null)
  return { child, out: () => text.stdout, err: () => text.stderr, exited }
}

function program(name: string, text: string): string[] {
  const path = join(folder, name)
  writeFileSync(path, text)
  return ['--', process.execPath, path]
}

/** Whether a process is there. One that has ended may be listed until somebody asks for its exit code. */
function isRunning(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false
  return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}

const LOOKER = `import { writeFileSync } from 'node:fs'
writeFileSync(process.argv[2], 'a file of the program')
for (;;) {
  const answer = await fetch(process.env.MINTLAKE_URL + '/api/v1/time?until=' + (globalThis.until ?? 0))
  globalThis.until = (await answer.json()).data.marketTime + 5000
}
`

/** Has a child of its own, and does not end when it is asked to. */
const stubborn = (pids: string): string => `import { spawn } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
process.on('SIGTERM', () => {})
await fetch(process.env.MINTLAKE_URL + '/health')
const child = spawn('sleep', ['600'])
writeFileSync('${pids}.new', process.pid + ' ' + child.pid)
renameSync('${pids}.new', '${pids}')
setInterval(() => {}, 1000)
`

describe.skipIf(noWatchedDisk !== null)(
  `a lake in use${noWatchedDisk === null ? '' : ` (${noWatchedDisk})`}`,
  () => {
    test('is played up to what its server had brought to it, changed in nothing, and still taken on by its server', async () => {
      const dataDir = temporaryFolder()
      const disk = watchDisk(dataDir)
      const server = await openTestServer({}, {}, dataDir)
      const mint = mintOfSymbol('in use')
      const nowMs = Date.now()
      const tradesOf = (count: number) =>
        Array.from({ length: count }, (_, index) => ({
          ...{
            type: 'trade',
            mint,
            ts: nowMs + index,
            side: 'buy',
            tokenAmount: 10,
            priceUsd: 1 + index / 100,
          },
        }))
      await server.client.push(
        { type: 'token', mint, ts: nowMs, name: 'In use', symbol: 'USED' },
        ...tradesOf(50),
      )
      await server.recorded()
      await server.store.flushLake()
      const out = join(folder, 'in use')
      const args = ['backtest', '--lake', dataDir, '--out', out, '--market-step-ms', '100']
      const backtest = run(
        [...args, '--no-baselines', ...program('looker.mjs', LOOKER), join(dataDir, 'control')],
        disk.env,
      )
      let [pushed, hasEnded] = [50, false]
      const exited = backtest.exited.finally(() => {
        hasEnded = true
      })
      // Its server goes on meanwhile.
      while (!hasEnded) {
        await server.client.push(...tradesOf(10))
        pushed += 10
        await server.store.flushLake()
      }
      expect(await exited, backtest.err()).toBe(0)
      const report = JSON.parse(readFileSync(join(out, 'report.json'), 'utf8'))
      expect(report.run.events).toBeGreaterThan(50)
      expect(report.run.events).toBeLessThanOrEqual(pushed + 10)
      // What the program did there by itself is seen: so would be whatever else the backtest did.
      expect([...new Set(disk.calls().map(({ path }) => path))]).toEqual(['control'])
      await server.recorded()
      await server.store.flushLake()
      const { body } = await server.client.post(
        '/api/v1/query',
        { sql: 'SELECT count(*)::INT AS n FROM trades' },
        ADMIN_KEY,
      )
      expect(body.data.rows).toEqual([[pushed]])
      await server.remove()
    }, 120_000)
  },
)

describe('a lake whose server was started again with other settings in the middle', () => {
  let restarted: TestServer
  beforeAll(async () => {
    const first = await openTestServer()
    const [mint, nowMs] = [mintOfSymbol('restarted'), Date.now()]
    const trade = { type: 'trade', mint, side: 'buy', tokenAmount: 10, priceUsd: 1 }
    await first.client.push(
      { type: 'token', mint, ts: nowMs, name: 'Restarted', symbol: 'AGAIN' },
      { ...trade, ts: nowMs },
    )
    await first.recorded()
    await first.store.flushLake()
    restarted = await first.restart({ 'new-hours': '48' })
    await restarted.client.push({ ...trade, ts: nowMs + 1_000 })
    await restarted.recorded()
    await restarted.store.flushLake()
  })
  afterAll(() => restarted.remove())
  const WHY = /Ends early: the run that began at \S+ had other settings: replay it from there/

  test('is played up to there, as each form of the report says, which alone is on standard output', async () => {
    const out = join(folder, 'restarted')
    const args = ['backtest', '--lake', restarted.dataDir, '--out', out, '--no-baselines']
    const backtest = run([...args, ...program('early.mjs', LOOKER), join(folder, 'early')])
    expect(await backtest.exited, backtest.err()).toBe(0)
    const read = (name: string) => readFileSync(join(out, name), 'utf8')
    expect(JSON.parse(read('report.json')).market.notes).toEqual([expect.stringMatching(WHY)])
    for (const name of ['report.txt', 'report.html']) expect(read(name)).toMatch(WHY)
    expect(backtest.out()).toMatch(/^Backtest of /)
  }, 60_000)

  test('is labelled up to there, as is said, and standard output has nothing but the file', async () => {
    const out = join(folder, 'restarted labels')
    const labelling = run(['backtest', '--lake', restarted.dataDir, '--out', out, '--labels-only'])
    expect(await labelling.exited, labelling.err()).toBe(0)
    expect(labelling.err()).toMatch(WHY)
    expect(labelling.out()).toMatch(/^\S.*labels\.parquet: \d+ rows?\n$/)
  }, 60_000)
})

describe('npm run backtest', () => {
  const script = join(ROOT, 'scripts/backtest.ts')

  test('plays another lake as it is, and leaves each program its own flags', async () => {
    const out = join(folder, 'given')
    const flagged = program(
      'flags.mjs',
      `console.log(process.argv.slice(2)); await fetch(process.env.MINTLAKE_URL)`,
    )
    const args = ['--lake', lake, '--no-baselines', '--out', out, ...flagged, '--minutes', '3']
    const backtest = run(args, {}, script)
    expect(await backtest.exited, backtest.err()).toBe(0)
    expect(readFileSync(join(out, 'programs', '1.log'), 'utf8')).toContain(`[ '--minutes', '3' ]`)
    expect(backtest.err()).not.toContain('recorded')
    const both = run(['--lake', lake, '--minutes', '9'], {}, script)
    expect(await both.exited, both.err()).toBe(2)
  }, 180_000)

  test('takes --minutes=N too, and starts no agent with --labels-only', async () => {
    const few = run(['--minutes=7'], {}, script)
    expect(await few.exited, few.err()).toBe(2)
    expect(few.err()).toBe('--minutes is a number above 7\n')
    const out = join(folder, 'labels of npm')
    const labelling = run(['--minutes=8', '--labels-only', '--tokens-max', '5', '--out', out], {}, script)
    expect(await labelling.exited, labelling.err()).toBe(0)
    expect(labelling.out()).toMatch(/labels\.parquet: \d+ rows/)
  }, 180_000)
})

describe('interrupted', () => {
  // By SIGTERM: the two tests behind it.
  test('it ends its programs with their children, and reports what was played', async () => {
    const pids = join(folder, 'pids')
    const out = join(folder, 'out')
    const args = ['backtest', '--lake', lake, '--out', out, '--speed', '1']
    const backtest = run([...args, ...program('interrupted.mjs', stubborn(pids))])
    await expect.poll(() => existsSync(pids), { timeout: 60_000 }).toBe(true)
    await expect.poll(() => backtest.err(), { timeout: 60_000 }).toContain('the market begins')
    const running = readFileSync(pids, 'utf8').split(' ').map(Number)
    expect(running.map(isRunning)).toEqual([true, true])
    backtest.child.kill('SIGINT')
    expect(await backtest.exited, backtest.err()).toBe(130)
    expect(running.map(isRunning)).toEqual([false, false])
    expect(backtest.err()).toContain('mintlake: interrupted')
    expect(backtest.out()).toContain('Interrupted: this is what was played until then')
    expect(readFileSync(join(out, 'report.html'), 'utf8')).toContain('Interrupted')
    expect(readdirSync(join(out, 'data'))).not.toContain('server.lock')
  }, 120_000)

  test('before its programs saw a market it leaves nothing, and a part of a labelled data set neither', async () => {
    const waiting = join(folder, 'waiting')
    const silent = program('silent.mjs', `setInterval(() => {}, 1000)`)
    const backtest = run(['backtest', '--lake', lake, '--out', waiting, ...silent])
    await expect.poll(() => existsSync(join(waiting, 'programs', '1.log')), { timeout: 60_000 }).toBe(true)
    backtest.child.kill('SIGINT')
    expect(await backtest.exited).toBe(130)
    expect(readdirSync(waiting)).toEqual([])
    const labels = join(folder, 'labels')
    const labelling = run(['backtest', '--lake', lake, '--out', labels, '--labels-only', '--every-ms', '1'])
    await expect.poll(() => existsSync(join(labels, 'moments.ndjson')), { timeout: 60_000 }).toBe(true)
    labelling.child.kill('SIGTERM')
    expect(await labelling.exited).toBe(130)
    expect(readdirSync(labels)).toEqual([])
  }, 120_000)

  test('`npm run backtest` removes the lake that it has recorded', async () => {
    const TMPDIR = join(folder, 'tmp')
    mkdirSync(TMPDIR)
    const pids = join(folder, 'pids of npm')
    const args = ['--minutes', '8', '--speed', '1', '--out', join(folder, 'default')]
    const script = join(ROOT, 'scripts/backtest.ts')
    const backtest = run([...args, ...program('stubborn.mjs', stubborn(pids))], { TMPDIR }, script)
    await expect.poll(() => existsSync(pids), { timeout: 90_000 }).toBe(true)
    backtest.child.kill('SIGTERM')
    expect(await backtest.exited, backtest.err()).toBe(130)
    expect(readFileSync(pids, 'utf8').split(' ').map(Number).map(isRunning)).toEqual([false, false])
    expect(readdirSync(TMPDIR)).toEqual([])
    const early = run(['--minutes', '5000'], { TMPDIR }, script)
    await expect.poll(() => readdirSync(TMPDIR), { timeout: 30_000 }).not.toEqual([])
    early.child.kill('SIGINT')
    expect(await early.exited, early.err()).toBe(130)
    expect(readdirSync(TMPDIR)).toEqual([])
  }, 180_000)
})
