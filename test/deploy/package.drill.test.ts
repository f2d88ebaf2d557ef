// @module-tag drill
// The package as somebody gets it: packed, installed in an empty folder, run by `npx mintlake`. Installing needs the package registry,
// so this is skipped unless it is asked for.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { recordSimulation } from '../../src/backtest/record-simulation.ts'
import { createLog } from '../../src/lib/log.ts'
import { submission, submit } from '../support/submission.ts'
import { Client, temporaryFolder } from '../support/test-server.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const ADMIN_KEY = 'admin-key-of-the-package-test'
const INSTALL_MS_MAX = 300_000
const isWanted = process.env.MINTLAKE_TEST_PACKAGE === '1'

const folder = isWanted ? temporaryFolder() : ''
const project = join(folder, 'project')
/** What is packed: a copy of the sources, since packing compiles into the folder, from which other tests run meanwhile. */
const clone = join(folder, 'clone')
const SOURCES = [
  ...['package.json', 'tsconfig.json', 'README.md', 'LICENSE'],
  ...['data/README.md', 'data/samples', 'scripts', 'src'],
]
const dataDir = join(folder, 'data')

/** The environment of a user's shell: without what npm and vitest add to it, such as the Node of this project. */
const env = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|VITEST|NODE_|MINTLAKE_|INIT_CWD)/i.test(name)),
  ),
  PATH: process.env.PATH?.split(delimiter)
    .filter((path) => !path.includes('node_modules'))
    .join(delimiter),
  MINTLAKE_ADMIN_KEY: ADMIN_KEY,
}

/** Runs a command until it exits, at most `timeoutMs`. Rejects where it fails. */
async function run(command: string, args: string[], cwd = project, timeoutMs = 120_000): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, {
    cwd,
    env,
    timeout: timeoutMs,
    maxBuffer: 16 * 1024 * 1024,
  })
  return stdout
}

let server: ChildProcess | undefined
/** Starts the server as README says, and waits until it is ready. */
async function serve(): Promise<Client> {
  const flags = ['--port', '0', '--data-dir', dataDir, '--lake-flush-ms', '200', '--drain-notice-ms', '0']
  const child = spawn('npx', ['mintlake', 'serve', ...flags], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  server = child
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const match = /^listening on (\S+)$/.exec(line)
      if (match !== null) resolve(match[1])
    })
    child.once('exit', (code) => reject(new Error(`the server ended with ${code} before it listened`)))
  })
  const client = new Client(url)
  while ((await client.get('/readyz')).status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 100))
  return client
}

/** Resolves when no server has the data folder any more: npx ends before the server's last flush. */
async function untilStopped(): Promise<void> {
  while (readdirSync(dataDir).includes('server.lock'))
    await new Promise((resolve) => setTimeout(resolve, 100))
}

let packed: { filename: string; files: { path: string }[] }

describe.skipIf(!isWanted)('the package (needs the package registry: MINTLAKE_TEST_PACKAGE=1)', () => {
  beforeAll(async () => {
    mkdirSync(project)
    for (const path of SOURCES) cpSync(join(ROOT, path), join(clone, path), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
    const told = await run('npm', ['pack', '--json', '--pack-destination', folder], clone)
    packed = JSON.parse(told.slice(told.search(/^\[/m)))[0]
    writeFileSync(join(project, 'package.json'), '{"type":"module"}')
    await run(
      'npm',
      ['install', '--no-audit', '--no-fund', join(folder, packed.filename)],
      project,
      INSTALL_MS_MAX,
    )
  }, INSTALL_MS_MAX + 120_000)

  afterAll(() => {
    server?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  it('holds the compiled program with declarations, and no sources, tests or benchmark', () => {
    const paths = packed.files.map(({ path }) => path)
    for (const name of ['main', 'store/process/main', 'store/compaction/merge-process', 'schema/index'])
      expect(paths).toEqual(expect.arrayContaining([`dist/${name}.js`, `dist/${name}.d.ts`]))
    expect(paths.filter((path) => /^(src|test|bench|\.ci)\//.test(path))).toEqual([])
    // The console's sources lose their types when they are served.
    const sources = paths.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
    expect(sources.filter((path) => !path.startsWith('dist/web/'))).toEqual([])
    expect(existsSync(join(clone, 'dist')), 'what was built is removed after packing').toBe(false)
  })

  it('serves, stores a submission, exports it, and stops when npx is told to', async () => {
    const client = await serve()
    const page = await client.get('/api/v1/market?limit=10')
    expect(page.body.data).toHaveLength(10)
    for (const path of ['/', '/console/web/main.js', '/console/client/index.js', '/console/schema/errors.js'])
      expect((await client.get(path)).status, path).toBe(200)
    const accepted = await submit(client, await client.register(), submission(page.body.data[0].mint))
    expect(accepted.status, accepted.text).toBe(201)
    const exported = await client.get('/api/v1/training/export', { Authorization: `Bearer ${ADMIN_KEY}` })
    expect(exported.status, exported.text).toBe(200)
    expect(exported.text.startsWith('PAR1')).toBe(true)
    const exited = once(server!, 'exit')
    server!.kill('SIGTERM')
    await exited
    await untilStopped()
    const told = await run('npx', [
      'mintlake',
      'sql',
      '--data-dir',
      dataDir,
      'SELECT count(*) AS n FROM training',
    ])
    expect(told).toMatch(/│\s+1 │/)
  }, 120_000)

  it('runs a program on a recorded market', async () => {
    const help = await run('npx', ['mintlake', 'backtest', '--help'])
    expect(help).toContain('--labels-only')
    const lake = join(folder, 'lake')
    const startMs = Date.parse('2026-03-02T12:00:00Z')
    const market = { seed: 7, tokens: 60, tradesPerSecond: 4, startMs, lengthMs: 60_000 }
    await recordSimulation({ ...market, dataDir: lake }, createLog('warn'))
    const agent = `
      import { createClient } from 'mintlake/client'
      const mintlake = createClient({ baseUrl: process.env.MINTLAKE_URL, key: process.env.MINTLAKE_KEY })
      const { data } = await mintlake.market({ limit: 3 })
      for (const { mint } of data) await mintlake.submit({ ...${JSON.stringify(submission(''))}, mint })
      await mintlake.sleep(20_000)
    `
    writeFileSync(join(project, 'agent.mjs'), agent)
    rmSync(join(project, 'out'), { recursive: true, force: true })
    const args = ['mintlake', 'backtest', '--lake', lake, '--out', 'out', '--', 'node', 'agent.mjs']
    expect(await run('npx', args)).toMatch(/agent\.mjs +\d+ +3 +3 +0 /)
    expect(readdirSync(join(project, 'out'))).toEqual(
      expect.arrayContaining(['report.html', 'report.json', 'report.txt']),
    )
  }, 180_000)

  it('exports schemas and client, with types', async () => {
    const hasClient = existsSync(join(ROOT, 'src/client/index.ts'))
    const program = `
      import { type Submission, submissionSchema } from 'mintlake/schemas'
      ${hasClient ? "import { createClient } from 'mintlake/client'" : ''}
      const bad: Submission['sentiment'] = 'bullish'
      console.log(submissionSchema.safeParse({ sentiment: bad }).success)
      ${hasClient ? "console.log(typeof createClient({ baseUrl: 'http://127.0.0.1:1' }).market)" : ''}
    `
    writeFileSync(join(project, 'user.ts'), program)
    const compiler = join(ROOT, 'node_modules/typescript-7/bin/tsc')
    const flags = [
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--lib',
      'es2024,dom',
      '--types',
      '',
    ]
    await run(process.execPath, [compiler, ...flags, 'user.ts'])
    const printed = await run(join(project, 'node_modules/node/bin/node'), ['user.js'])
    expect(printed.trim().split('\n')).toEqual(['false', ...(hasClient ? ['function'] : [])])
  })
})
