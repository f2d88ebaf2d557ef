// In: a server that was killed, and what a file system may leave at the end of its logs. Out: what the next start makes of it.
import { appendFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openHouse, spawnHouse, temporaryFolder } from '../support/house.ts'
import { seedToken, submission, submit } from '../support/submission.ts'

/** What a block of a file is whose length was written and whose content was not. */
const TORN_BYTES = 4_096

/** A folder whose server was killed right after it had acknowledged a submission. */
async function killedFolder(): Promise<{ folder: string; analysisId: string; logs: string[] }> {
  const folder = temporaryFolder()
  const server = await spawnHouse({}, folder)
  const key = await server.client.register()
  const answer = await submit(server.client, key, submission(await seedToken(server.client, Date.now())))
  expect(answer.status, answer.text).toBe(201)
  await server.kill()
  const names = readdirSync(folder).filter((name) => /\.(wal|log)$/.test(name))
  const logs = names.map((name) => join(folder, name)).filter((path) => statSync(path).size > 0)
  expect(logs).not.toEqual([])
  return { folder, analysisId: answer.body.analysisId, logs }
}

// mended with the store's rebuild
it.fails('zeros at the end of the log, as a torn write leaves them, do not stop the start, and what was acknowledged is there', async () => {
  const { folder, analysisId, logs } = await killedFolder()
  try {
    for (const path of logs) appendFileSync(path, Buffer.alloc(TORN_BYTES))
    const house = await openHouse({}, {}, folder)
    const found = await house.client.get(`/api/v1/analysis/${analysisId}`)
    await house.stop()
    expect(found.status).toBe(200)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

// mended with the store's rebuild
it.fails('a log that is gone, and what it had acknowledged with it, is told of in /health', async () => {
  const { folder, logs } = await killedFolder()
  try {
    for (const path of logs) rmSync(path)
    const house = await openHouse({}, {}, folder)
    const { reasons } = (await house.client.get('/health')).body
    await house.stop()
    expect(reasons).not.toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
