// @module-tag drill
// Checkpoints that a writer brings to the bus, for readers that begin.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ObjectStore, Objm } from '@nats-io/obj'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkpointNames } from '../../../src/checkpoint/checkpoint-file.ts'
import type { Bus } from '../../../src/cluster/bus.ts'
import { PROTOCOL } from '../../../src/cluster/messages.ts'
import { checkpointsOf, MINTS } from '../../checkpoint/support.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'
import { connect, eventually } from './stream-log.ts'

describe.skipIf(!hasNats)(`checkpoints of a writer on the bus${skipped}`, () => {
  let nats: Nats
  let bus: Bus
  let store: ObjectStore
  let server: TestServer

  beforeAll(async () => {
    nats = await startNats()
    server = await openTestServer({ role: 'writer', bus: nats.url })
    bus = await connect(nats.url)
    await uploaded(1)
    store = await new Objm(bus.client).open('mintlake-checkpoints')
  })

  afterAll(async () => {
    await bus.close()
    await server.remove()
    await nats.remove()
  })

  const uploaded = (eventNo: number): Promise<number> =>
    eventually(async () => {
      const { checkpoints } = (await server.client.get('/health')).body.cluster
      return checkpoints.uploadedEventNo >= eventNo ? checkpoints.uploadedEventNo : null
    })

  /** Makes a checkpoint of one more event. @returns its event */
  async function makeOne(): Promise<number> {
    const before = (await server.client.get('/health')).body.recording.checkpoints.newest.eventNo
    await server.client.push({ type: 'token', mint: MINTS[0], ts: Date.now(), name: 'One', symbol: 'ONE' })
    await server.checkpoint()
    return uploaded(before + 1)
  }

  it('are there at once, with what they are of', async () => {
    const [info] = await store.list()
    expect(info.name).toMatch(/^\d{16}$/)
    expect(info.metadata).toMatchObject({ folderId: server.store.folderId, protocol: PROTOCOL })
    expect(info.metadata?.eventNo).toBe(`${Number(info.name)}`)
  })

  it('are the same bytes, and the newest two stay', async () => {
    await makeOne()
    const older = await makeOne()
    const newest = await makeOne()
    const names = (await store.list()).map(({ name }) => Number(name))
    expect(names.toSorted((a, b) => a - b)).toEqual([older, newest])
    const file = readFileSync(join(checkpointsOf(server.dataDir), checkpointNames.nameOf(newest)))
    const bytes = await store.getBlob(`${newest}`.padStart(16, '0'))
    expect(Buffer.compare(Buffer.from(bytes ?? []), file)).toBe(0)
  })

  it('leave nothing of an upload that was killed, and of another folder', async () => {
    await bus.client.publish('$O.mintlake-checkpoints.C.leftover', new Uint8Array(1_000))
    await store.putBlob({ name: '9'.repeat(16), metadata: { folderId: 'another' } }, new Uint8Array(10))
    const newest = await makeOne()
    const names = (await store.list()).map(({ name }) => Number(name))
    expect(Math.max(...names)).toBe(newest)
    const { streamInfo } = await store.status({ subjects_filter: '>' })
    expect(streamInfo.state.subjects).not.toHaveProperty(['$O.mintlake-checkpoints.C.leftover'])
  })
})
