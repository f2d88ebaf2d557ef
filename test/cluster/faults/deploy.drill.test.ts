// @module-tag drill
// A writer is replaced while agents submit through a reader: what they notice of it is an answer that takes longer.
import { afterEach, describe, expect, test } from 'vitest'
import { WRITER_HOLD_MS } from '../../../src/cluster/proxy/limits.ts'
import { seedToken, submission, submit } from '../../support/submission.ts'
import { type Client, type ServerProcess, type Settings, untilReady } from '../../support/test-server.ts'
import { freeze, hasNats, skipped, TestCluster } from '../support.ts'
import { connect, readStream } from '../writer/stream-log.ts'
import { untilHealth } from './run.ts'

const SETTINGS: Settings = { role: 'writer', 'submit-limits': 'rate=0,cooldown-ms=0' }
const AGENTS = 3

let cluster: TestCluster | null = null
afterEach(async () => {
  await cluster?.remove()
  cluster = null
})

/** Agents that submit through a reader, one after another submission, until they are ended. */
async function submitting(through: Client, mint: string) {
  let isOver = false
  const statuses: number[] = []
  const keys = await Promise.all(
    Array.from({ length: AGENTS }, (_, index) => through.register(`agent ${index}`)),
  )
  const work = Promise.all(
    keys.map(async (key) => {
      while (!isOver) statuses.push((await submit(through, key, submission(mint))).status)
    }),
  )
  work.catch(() => undefined)
  return {
    statuses,
    more: (count: number) => {
      const enough = statuses.length + count
      return expect.poll(() => statuses.length, { timeout: 30_000 }).toBeGreaterThan(enough)
    },
    end: () => {
      isOver = true
      return work
    },
  }
}

async function start(
  settings: Settings = {},
): Promise<{ writer: ServerProcess; reader: ServerProcess; mint: string }> {
  cluster = await TestCluster.start()
  const writer = await cluster.writer({ ...SETTINGS, ...settings })
  const mint = await seedToken(writer.client, Date.now())
  const reader = await cluster.reader({ reader: 'lag-max-ms=5000' })
  return { writer, reader, mint }
}

describe.skipIf(!hasNats)(`a deploy of the writer${skipped}`, () => {
  test('beside a standby refuses no submission', { timeout: 90_000 }, async () => {
    const { writer, reader, mint } = await start({ role: 'standby' })
    const { dataDir } = writer
    const standby = cluster!.launch({ ...SETTINGS, role: 'standby', 'log-level': 'info' }, { dataDir })
    await expect.poll(() => standby.lines.join('\n'), { timeout: 20_000 }).toContain('standing by')
    const agents = await submitting(reader.client, mint)
    await agents.more(20)
    expect(await writer.terminate()).toBe(0)
    const next = await untilReady(standby)
    await agents.more(20)
    await agents.end()
    expect(new Set(agents.statuses)).toEqual(new Set([201]))
    await untilHealth(next.client, /"status":"ready"/)
  })

  test('by a stop and a start refuses none either, and the stream says where the old one ended', {
    timeout: 90_000,
  }, async () => {
    const { writer, reader, mint } = await start()
    const { dataDir } = writer
    const agents = await submitting(reader.client, mint)
    await agents.more(20)
    const stoppedMs = performance.now()
    expect(await writer.terminate()).toBe(0)
    const bus = await connect(cluster!.nats.url)
    const messages = await readStream(bus).finally(() => bus.close())
    expect(messages.map(({ ended }) => ended)).toEqual(
      messages.map((_, index) => index === messages.length - 1),
    )
    await cluster!.writer(SETTINGS, { dataDir })
    const awayMs = performance.now() - stoppedMs
    await agents.more(20)
    await agents.end()
    // A reader waits for its writer no longer than this, which a start on a busy machine may take.
    const answers = awayMs < WRITER_HOLD_MS ? [201] : [201, 503]
    expect(agents.statuses.filter((status) => !answers.includes(status))).toEqual([])
  })

  test('is over when the new one says that it is ready', { timeout: 60_000 }, async () => {
    const { writer, reader, mint } = await start()
    const { dataDir } = writer
    const key = await reader.client.register()
    let current = writer
    for (let restart = 0; restart < 2; restart++) {
      await current.kill()
      current = await cluster!.writer(SETTINGS, { dataDir })
      const answer = await submit(reader.client, key, submission(mint))
      expect(answer.status).toBe(201)
    }
  })

  test('a request that must not be repeated is in doubt as soon as the writer is silent', {
    timeout: 60_000,
  }, async () => {
    const { writer, reader } = await start()
    await reader.client.register()
    const thaw = freeze(writer)
    const sentMs = performance.now()
    const answer = await reader.client.post('/api/v1/keys/register', { name: 'late' })
    expect(answer.status).toBe(503)
    expect(answer.body).toMatchObject({ code: 'store_unavailable', mayBeStored: true })
    // It would be given up after ten seconds anyway.
    expect(performance.now() - sentMs).toBeLessThan(8_000)
    thaw()
  })
})
