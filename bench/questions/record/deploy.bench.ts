// A deploy of a server that is alone: SIGTERM, then the start of the next one on the same folder and port, as `systemctl restart` does
// it. How long clients get no page, and where that time goes.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  inFolder,
  jsonOf,
  lessIsBetter,
  type Measured,
  median,
  type Question,
  type RunOptions,
  serverArgs,
} from '../../harness.ts'

const START = fileURLToPath(new URL('../../../scripts/start.mjs', import.meta.url))
const PUSHERS = fileURLToPath(new URL('../../clients/pushers.ts', import.meta.url))
const TOKENS = 3_000
const TRADES_PER_SECOND = 3_000
/** How often a client that gets no page tries again. */
const TRY_MS = 2
/** How long each server serves before the next deploy. */
const SERVES_MS = 2_000
const TIMEOUT_MS = 60_000

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

function serve(port: number, dataDir: string): ChildProcess {
  const settings = ['--port', `${port}`, '--data-dir', dataDir, '--feed', 'none']
  const args = [...serverArgs(), START, ...settings, '--read-limit-anonymous', '1000000']
  const env = { ...process.env, MINTLAKE_FEED_KEY: 'bench' }
  return spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'], env })
}

/** Over a new connection each time, as a client does whose connection was closed. */
const hasPage = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/api/v1/market?limit=20`, { headers: { connection: 'close' } }).then(
    async (answer) => (await answer.text()) !== '' && answer.ok,
    () => false,
  )

/** @returns when a page was there, or was not any more */
async function untilPage(port: number, isThere: boolean): Promise<number> {
  const lateMs = performance.now() + TIMEOUT_MS
  while ((await hasPage(port)) !== isThere) {
    if (performance.now() > lateMs) throw new Error(`no ${isThere ? 'page' : 'end'} in ${TIMEOUT_MS} ms`)
    await sleep(TRY_MS)
  }
  return performance.now()
}

async function deploys(options: RunOptions): Promise<Measured> {
  return inFolder(async (dataDir) => {
    const port = await freePort()
    let server = serve(port, dataDir)
    const away: number[] = []
    const ends: number[] = []
    const starts: number[] = []
    try {
      await untilPage(port, true)
      const load = [port, 200, TRADES_PER_SECOND, options.small ? 1 : 20, TOKENS].map(String)
      await jsonOf(process.execPath, ['--no-warnings', PUSHERS, ...load])
      for (let deploy = 0; deploy < (options.small ? 1 : 20); deploy++) {
        await sleep(options.small ? 0 : SERVES_MS)
        const exited = once(server, 'exit')
        server.kill('SIGTERM')
        const goneAtMs = await untilPage(port, false)
        await exited
        const exitedAtMs = performance.now()
        server = serve(port, dataDir)
        const backAtMs = await untilPage(port, true)
        away.push(backAtMs - goneAtMs)
        ends.push(exitedAtMs - goneAtMs)
        starts.push(backAtMs - exitedAtMs)
      }
    } finally {
      const exited = once(server, 'exit')
      if (server.kill('SIGTERM')) await exited
    }
    const metrics = { awayMs: median(away), awayMsMax: Math.max(...away) }
    return {
      metrics: { ...metrics, endMs: median(ends), startMs: median(starts) },
      checksum: `${away.length} deploys`,
    }
  })
}

export const question: Question = {
  name: 'deploy',
  title: 'a deploy of a server that is alone: 20 times SIGTERM and a start, a market of 3 000 tokens',
  rounds: 1,
  candidates: { ours: deploys },
  comparisons: [
    lessIsBetter('deploy: without a page, p50', 'awayMs', 'ms', { gate: 1_500 }),
    lessIsBetter('deploy: without a page, longest', 'awayMsMax', 'ms'),
    lessIsBetter('deploy: of these, the end of the old server', 'endMs', 'ms'),
    lessIsBetter('deploy: of these, the start of the new one', 'startMs', 'ms'),
  ],
}
