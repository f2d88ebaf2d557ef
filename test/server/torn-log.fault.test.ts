// Starts after a kill, with a log in each state in which a file system may leave it.
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { seedToken, submission, submit } from '../support/submission.ts'
import { openTestServer, spawnServer, temporaryFolder } from '../support/test-server.ts'

/** Size of the zeros in a file whose length was written and whose content was not. */
const TORN_BYTES = 4_096

interface Killed {
  folder: string
  /** Ids of the acknowledged submissions, in order. */
  analysisIds: string[]
  /** The only file of the log. */
  segment: string
}

/** A folder whose server was killed right after it acknowledged three submissions. */
async function killedFolder(): Promise<Killed> {
  const folder = temporaryFolder()
  const spawned = await spawnServer({}, folder)
  const key = await spawned.client.register()
  const analysisIds: string[] = []
  for (let i = 0; i < 3; i++) {
    const answer = await submit(spawned.client, key, submission(await seedToken(spawned.client, Date.now())))
    expect(answer.status, answer.text).toBe(201)
    analysisIds.push(answer.body.analysisId)
  }
  await spawned.kill()
  const segments = readdirSync(join(folder, 'log')).filter((name) => name.endsWith('.log'))
  expect(segments).toHaveLength(1)
  return { folder, analysisIds, segment: join(folder, 'log', segments[0]) }
}

async function startAgain({ folder, analysisIds }: Killed) {
  const server = await openTestServer({}, {}, folder)
  const answers = await Promise.all(analysisIds.map((id) => server.client.get(`/api/v1/analysis/${id}`)))
  const { reasons, store } = (await server.client.get('/health')).body
  await server.stop()
  return { found: answers.map(({ status }) => status), reasons, store }
}

it('a log that ends in zeros after a torn write does not stop the start, and what was acknowledged is there', {
  tags: 'drill',
}, async () => {
  const killed = await killedFolder()
  try {
    appendFileSync(killed.segment, Buffer.alloc(TORN_BYTES))
    expect(await startAgain(killed)).toMatchObject({ found: [200, 200, 200], reasons: [] })
  } finally {
    rmSync(killed.folder, { recursive: true, force: true })
  }
})

it('damage within the log and the commits lost there are reported in /health, and the rest is used', {
  tags: 'drill',
}, async () => {
  const killed = await killedFolder()
  try {
    const bytes = readFileSync(killed.segment)
    const [first, second] = killed.analysisIds.map((id) => bytes.indexOf(id))
    expect(first).toBeLessThan(second)
    bytes[first] ^= 0x01
    writeFileSync(killed.segment, bytes)
    expect(await startAgain(killed)).toMatchObject({
      found: [404, 200, 200],
      reasons: [expect.stringContaining('the log is damaged: ')],
      store: { log: { damage: 1 } },
    })
    expect(readdirSync(join(killed.folder, 'log')).some((name) => name.endsWith('.damaged'))).toBe(true)
  } finally {
    rmSync(killed.folder, { recursive: true, force: true })
  }
})

it('damage in what the lake has already, of which a kill right after the flush left the file, is no loss', {
  tags: 'drill',
}, async () => {
  const killed = await killedFolder()
  try {
    const bytes = readFileSync(killed.segment)
    // It ends with a flush, which removes the file.
    expect(await startAgain(killed)).toMatchObject({ reasons: [] })
    bytes[Math.floor(bytes.indexOf(0) * 0.6)]! ^= 0x20
    writeFileSync(killed.segment, bytes)
    expect(await startAgain(killed)).toMatchObject({ found: [200, 200, 200], reasons: [] })
  } finally {
    rmSync(killed.folder, { recursive: true, force: true })
  }
})
