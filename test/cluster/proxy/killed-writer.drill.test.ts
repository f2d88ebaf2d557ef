// @module-tag drill
// A writer that is killed after it has stored a submission and before the answer left it, and comes back: the node that passed the
// submission on asks again with the same key, so that it is stored once and answered as if nothing had happened.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { expectProblem, seedToken, submission, submit } from '../../support/submission.ts'
import {
  type LaunchedServer,
  launchServer,
  type ServerProcess,
  spawnServer,
  temporaryFolder,
} from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'
import { type Forwarder, startForwarder } from './support.ts'

const CHILD = new URL('writer.child.ts', import.meta.url).pathname

let nats: Nats
let node: Forwarder
const folders: string[] = []
const processes: Pick<LaunchedServer, 'kill'>[] = []

beforeEach(async () => {
  if (!hasNats) return
  nats = await startNats()
  node = await startForwarder(nats.url)
}, 30_000)

afterEach(async () => {
  for (const each of processes.splice(0)) await each.kill()
  await node?.close()
  await nats?.remove()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

async function startWriter(dataDir: string, env: Record<string, string> = {}): Promise<ServerProcess> {
  const settings = { role: 'writer', bus: nats.url }
  const writer = await spawnServer(settings, dataDir, env, [], [CHILD])
  processes.push(writer)
  await untilReached()
  return writer
}

/** Until the bus tells of it, too. */
const untilReached = () =>
  vi.waitFor(async () => expect((await node.client.get('/api/v1/xp')).status).toBe(200), 10_000)

const folder = (): string => {
  folders.push(temporaryFolder())
  return folders.at(-1)!
}

const standingOf = async (client: ServerProcess['client'], key: string) =>
  (await client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).body.standing

describe.skipIf(!hasNats)(`a writer that is killed between commit and answer${skipped}`, () => {
  it('answers after it has come back, and has stored the submission once', async () => {
    const dataDir = folder()
    const first = await startWriter(dataDir)
    const key = await first.client.register()
    const mint = await seedToken(first.client, Date.now())
    await first.terminate()
    const second = await startWriter(dataDir, { KILLED_AFTER_ANSWER: join(folder(), 'killed') })
    // One that waits beside it, so that it is there in time on a slow machine too.
    const third = launchServer({ role: 'standby', bus: nats.url, 'log-level': 'info' }, dataDir)
    processes.push(third)
    await expect.poll(() => third.lines.join('\n'), { timeout: 20_000 }).toContain('standing by')
    const ended = new Promise((resolve) => second.process.once('exit', resolve))
    const answered = submit(node.client, key, submission(mint))
    await ended
    const answer = await answered
    expect(answer.status, answer.text).toBe(201)
    expect(answer.headers.get('idempotency-replayed')).toBeNull()
    expect(await standingOf(await third.listening, key)).toMatchObject({ analyses: 1, validated: 1 })
    await third.terminate()
  }, 60_000)

  it('that does not come back: the answer says that it may be stored; other requests are refused at once', async () => {
    const dataDir = folder()
    const first = await startWriter(dataDir)
    const key = await first.client.register()
    const mint = await seedToken(first.client, Date.now())
    await first.terminate()
    await startWriter(dataDir, { KILLED_AFTER_ANSWER: join(folder(), 'killed') })
    const answer = await submit(node.client, key, submission(mint))
    expectProblem(answer, 'store_unavailable')
    expect(answer.body.mayBeStored).toBe(true)
    // With it the agent can find out.
    expect(answer.headers.get('idempotency-key')).toMatch(/^[0-9a-f]{32}$/)
    const startedAtMs = performance.now()
    expectProblem(await submit(node.client, key, submission(mint)), 'store_unavailable')
    expect(performance.now() - startedAtMs).toBeLessThan(1_000)
  }, 60_000)
})

describe.skipIf(!hasNats)(`a writer that is killed under load${skipped}`, () => {
  const AGENTS = 20
  const EACH = 15

  it('has each submission that was answered once, and doubles none', async () => {
    const dataDir = folder()
    const settings = { role: 'writer', bus: nats.url, 'submit-limits': 'rate=0,cooldown-ms=0' }
    const start = async () => {
      const writer = await spawnServer(settings, dataDir)
      processes.push(writer)
      return writer
    }
    const first = await start()
    const keys = await Promise.all(Array.from({ length: AGENTS }, () => first.client.register()))
    const mints = await Promise.all(Array.from({ length: EACH }, () => seedToken(first.client, Date.now())))
    await untilReached()
    let answered = 0
    const run = async (key: string): Promise<{ stored: number; inDoubt: number }> => {
      const counts = { stored: 0, inDoubt: 0 }
      for (const mint of mints) {
        for (let attempts = 0; attempts < 40; attempts++) {
          const answer = await submit(node.client, key, submission(mint))
          if (++answered === 100) first.process.kill('SIGKILL')
          if (answer.status === 201) counts.stored++
          // As clients do: what was certainly not carried out is sent again.
          else if (answer.body.mayBeStored) counts.inDoubt++
          else {
            expect(answer.status, answer.text).toBe(503)
            await new Promise((resolve) => setTimeout(resolve, 250))
            continue
          }
          break
        }
      }
      return counts
    }
    const ended = new Promise((resolve) => first.process.once('exit', resolve))
    const running = Promise.all(keys.map(run))
    await ended
    const second = await start()
    const counts = await running
    for (const [index, key] of keys.entries()) {
      const { stored, inDoubt } = counts[index]!
      const { analyses } = await standingOf(second.client, key)
      expect(analyses).toBeGreaterThanOrEqual(stored)
      expect(analyses).toBeLessThanOrEqual(stored + inDoubt)
      expect(stored + inDoubt).toBe(EACH)
    }
    // It was back within the time for which requests are tried again.
    expect(counts.every(({ inDoubt }) => inDoubt === 0)).toBe(true)
    await second.terminate()
  }, 120_000)
})
