// @module-tag drill
// NATS has no room any more while the cluster is under load: other streams have taken it.
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, test } from 'vitest'
import { submission } from '../../support/submission.ts'
import { hasNats, skipped } from '../support.ts'
import { type Running, statusOf, underLoad, untilHealth } from './run.ts'
import { ANALYSED } from './trades.ts'

const MEGABYTE = 1e6
const PIECE = new Uint8Array(MEGABYTE / 2)

/** A figure of a node. */
async function figureOf(node: { url: string }, name: string): Promise<number> {
  const text = await (await fetch(`${node.url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

/** An agent that asks the writer itself. */
async function submitDirectly({ writer, agents }: Running, key: string, mint: string): Promise<void> {
  const summary = `What is said of ${mint} to the writer itself: volume rises while the largest wallets hold still.`
  const { status, body } = await writer.client.post(
    '/api/v1/analysis/submit',
    submission(mint, { summary }),
    key,
  )
  expect(status).toBe(201)
  const { analysisId, xpEarned } = body
  agents.sent.push({ agent: -1, summary, mint, acknowledged: { analysisId, xpEarned } })
}

/** What must hold while NATS takes no events. Readers may refuse reads, or say how old their market is. */
async function checkWithoutRoom(running: Running, key: string, why: string): Promise<void> {
  const { writer, readers } = running
  await untilHealth(writer.client, new RegExp(`readers get no events since .*${why}`), 30_000)
  expect(await statusOf(writer.client, '/readyz')).toBe(200)
  await expect.poll(() => figureOf(writer.client, 'mintlake_cluster_publishing')).toBe(0)
  await expect.poll(() => figureOf(writer.client, 'mintlake_cluster_unpublished_events')).toBeGreaterThan(0)
  for (const mint of ANALYSED.slice(-3)) await submitDirectly(running, key, mint)
  for (const { client } of readers) {
    await untilHealth(client, /"status":"degraded"/)
    const answer = await fetch(`${client.url}/api/v1/market?limit=1`)
    await answer.body?.cancel()
    if (answer.status === 200) expect(Number(answer.headers.get('x-lag-ms'))).toBeGreaterThan(1_000)
    else expect(answer.status).toBe(503)
  }
}

async function checkWithRoom({ writer, readers }: Running): Promise<void> {
  for (const { client } of [writer, ...readers]) await untilHealth(client, /"status":"ready"/, 60_000)
  expect(await figureOf(writer.client, 'mintlake_cluster_publishing')).toBe(1)
}

describe.skipIf(!hasNats)(`NATS runs out of room under load${skipped}`, () => {
  test('because other streams take it: the writer goes on until there is some', { timeout: 180_000 }, () =>
    underLoad(
      { nats: { storageBytesMax: 60 * MEGABYTE }, writer: { 'bus-stream': 'max-mb=16' } },
      async (running) => {
        const key = await running.writer.client.register('asks the writer')
        const connection = await connect({ servers: running.cluster.nats.url })
        const manager = await jetstreamManager(connection)
        await manager.streams.add({ name: 'others', subjects: ['others'] })
        const others = jetstream(connection)
        let taken = 0
        while (
          await others.publish('others', PIECE).then(
            () => true,
            () => false,
          )
        )
          taken++
        expect(taken).toBeGreaterThan(20)
        await checkWithoutRoom(running, key, 'NATS has no room')
        // Readers reach the writer, which takes what they pass on.
        await running.untilAcknowledged(20)
        await manager.streams.purge('others')
        await checkWithRoom(running)
        await connection.close()
      },
    ),
  )
})
