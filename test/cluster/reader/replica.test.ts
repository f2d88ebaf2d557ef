// The replica on the real nats-server: it answers as the writer's market does, whatever becomes of the bus.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { encodeMessage, type ToldSubmission } from '../../../src/cluster/messages.ts'
import { Replica } from '../../../src/cluster/reader/replica.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLog } from '../../../src/lib/log.ts'
import { Market } from '../../../src/market/market.ts'
import { TIMEFRAMES } from '../../../src/schema/bar.ts'
import { answersOf, MINTS } from '../../checkpoint/support.ts'
import { type BusProxy, hasNats, type Nats, skipped, startNats, startProxy } from '../support.ts'
import { busSettings, ScriptedWriter, SETTINGS } from './scripted-writer.ts'

const REACH_MS_MAX = 20_000
const log = createLog('warn')
log.level = 'silent'

/** Everything that readers see, positions and versions included. */
const seenOf = (market: Market) => ({
  ...answersOf(market),
  seq: market.seq,
  versions: MINTS.map((mint) => [
    market.datapointJson(mint)?.version,
    market.changedSeq(mint),
    TIMEFRAMES.map(
      (tf) => market.bars({ mint, tf, limit: 100, fromMs: null, toMs: null, fill: 'none' })?.version,
    ),
  ]),
  page: market.page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: 50 }).contentVersion,
  gaps: market.gaps(10),
})

describe.skipIf(!hasNats)(`a replica${skipped}`, () => {
  let nats: Nats
  let proxy: BusProxy
  let writer: ScriptedWriter
  let bus: Bus
  let market: Market
  let replica: Replica
  let told: ToldSubmission[]
  let asked: number

  beforeEach(async () => {
    nats = await startNats()
    proxy = await startProxy(nats.port)
    writer = await ScriptedWriter.connect(nats.url)
    told = []
    asked = 0
  })
  afterEach(async () => {
    const ended = replica?.stop()
    await bus?.close()
    await ended
    await writer.bus.close()
    await proxy.close()
    await nats.remove()
  })

  async function startReplica(askForCheckpoint = () => writer.upload()): Promise<void> {
    bus = await connectBus(busSettings(proxy.url), 'replica of a test')
    market = new Market({ tokensMax: 1 })
    replica = new Replica({
      ...{ bus, market, clock: systemClock, log },
      askForCheckpoint: async () => {
        asked++
        await askForCheckpoint()
      },
      onSubmission: (submission) => told.push(submission),
    })
  }

  /** Waits until the replica has what the writer has, and compares what both answer. */
  async function expectSame(): Promise<void> {
    expect(await replica.reached(writer.eventNo, REACH_MS_MAX), replica.trouble ?? 'not reached').toBe(true)
    await writer.tick()
    await expect.poll(() => market.timeMs, { timeout: REACH_MS_MAX }).toBe(writer.market.timeMs)
    expect(seenOf(market)).toEqual(seenOf(writer.market))
  }

  /** A replica follows, and has more events than a copy of the writer's market, to which that may go back. @returns the copy */
  async function aheadOfSaved() {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    const saved = writer.save()
    writer.some(3)
    await writer.publish()
    await startReplica()
    await expectSame()
    return saved
  }

  it('begins with an empty market where the stream has its beginning, and follows', async () => {
    await writer.tick()
    writer.begin('empty')
    writer.some(20)
    await writer.publish()
    await startReplica()
    await expectSame()
    for (let turn = 0; turn < 10; turn++) {
      writer.some(3)
      await writer.publish()
    }
    await expectSame()
    expect([market.generation, replica.restored, asked]).toEqual([1, 0, 0])
  })

  it('follows market time that goes back on an operator’s word, first in a batch or within one', async () => {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    await startReplica()
    for (const before of [0, 1]) {
      await writer.tick(86_400_000)
      writer.some(2)
      await writer.publish()
      await expectSame()
      writer.some(before)
      writer.nowMs -= 86_000_000
      writer.apply({ type: 'rewind', ts: writer.nowMs })
      writer.some(2)
      await writer.publish()
      await expectSame()
    }
    expect(asked).toBe(0)
  })

  it('begins in the middle with a checkpoint, and with another size of batches', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(30)
    await writer.publish()
    writer.some(3)
    await writer.publish()
    await writer.upload()
    for (let turn = 0; turn < 30; turn++) {
      writer.some()
      await writer.publish()
    }
    await writer.bus.manager.streams.purge(writer.bus.names.stream, { keep: 31 })
    await startReplica()
    await expectSame()
    expect(replica.restored).toBe(1)
  })

  it('tells the run and the time that its market is of, also where nothing follows the checkpoint', async () => {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    await writer.upload()
    await writer.tick(5_000)
    await startReplica()
    await expect.poll(() => market.seq, { timeout: REACH_MS_MAX }).toBe(writer.market.seq)
    expect([replica.restored, replica.runId]).toEqual([1, writer.runId])
    expect(market.timeMs).toBe(writer.nowMs)
  })

  it('has the time that a stream which was made anew has told before it was found, and nothing since', async () => {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    await startReplica()
    await expectSame()
    await writer.bus.manager.streams.delete(writer.bus.names.stream)
    await writer.ensure()
    await writer.tick(5_000)
    await expect.poll(() => market.timeMs, { timeout: REACH_MS_MAX }).toBe(writer.nowMs)
    expect(seenOf(market)).toEqual(seenOf(writer.market))
  })

  it('does not go on with events that the writer has lost where a stream that was made anew has told the time alone', {
    tags: 'drill',
  }, async () => {
    const saved = await aheadOfSaved()
    proxy.cut()
    await writer.bus.manager.streams.delete(writer.bus.names.stream)
    await writer.ensure()
    writer.lose(saved)
    writer.begin('warm')
    writer.take()
    await writer.upload()
    writer.nowMs += 30_000
    await writer.tick()
    proxy.heal()
    await expect.poll(() => market.timeMs, { timeout: REACH_MS_MAX }).toBe(writer.nowMs)
    expect(seenOf(market)).toEqual(seenOf(writer.market))
    expect([replica.restored, replica.runId, asked]).toEqual([1, writer.runId, 0])
  })

  it('does not go on with events that a run in between has lost, of which the stream that was made anew tells nothing', {
    tags: 'drill',
  }, async () => {
    const saved = await aheadOfSaved()
    proxy.cut()
    await writer.bus.manager.streams.delete(writer.bus.names.stream)
    writer.lose(saved)
    writer.begin('warm')
    writer.some(6)
    const between = writer.take()
    writer.begin('warm')
    const { runId, runEventNo } = writer
    expect(runEventNo).toBeGreaterThan(replica.eventNo)
    await writer.ensure()
    await writer.send(between.map((message) => ({ ...message, runId, runEventNo })))
    await writer.publish()
    await writer.upload()
    proxy.heal()
    await expectSame()
    expect([replica.restored, replica.runId]).toEqual([1, runId])
  })

  it('refuses to begin with a checkpoint where all that the stream has had is gone, until the writer is back', async () => {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    await writer.upload()
    writer.some(3)
    await writer.publish()
    // As messages that are too old.
    await writer.bus.manager.streams.purge(writer.bus.names.stream)
    await startReplica(() => Promise.reject(new Error('nobody takes requests')))
    await expect.poll(() => replica.trouble, { timeout: REACH_MS_MAX }).toContain('waiting for the writer')
    expect([replica.restored, replica.isCurrent, asked]).toEqual([0, false, 1])
    await writer.upload()
    writer.some(1)
    await writer.publish()
    await expectSame()
  })

  it('puts the parts of a large frame together', async () => {
    writer.begin('empty')
    await writer.publish()
    await startReplica()
    const name = 'x'.repeat(20_000)
    for (let index = 0; index < 60; index++)
      writer.apply({
        ...{ type: 'token', mint: MINTS[index % 12], ts: writer.nowMs, name: `${name}${index}`, symbol: 'S' },
      })
    const messages = writer.take()
    expect(messages.length).toBeGreaterThan(2)
    await writer.send(messages)
    await expectSame()
  })

  it('drops what it has already, and tells submissions', { tags: 'drill' }, async () => {
    writer.begin('empty')
    writer.some(5)
    const submission: ToldSubmission = {
      ...{ analysisId: 'a1', agentId: 'agent', mint: MINTS[0], outcome: 'validated', deviationPct: 1 },
      ...{ xpEarned: 5, createdAt: writer.nowMs, seq: writer.market.seq },
    }
    const messages = writer.take([submission])
    await writer.send([...messages, ...messages])
    await startReplica()
    await expectSame()
    expect(told).toEqual([submission, submission])
  })

  it('takes a writer that was started again: with its market, with other settings, with an empty one', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    await startReplica()
    await expectSame()
    writer.begin('warm')
    writer.some(5)
    await writer.publish()
    await expectSame()
    const settings = { ...SETTINGS, tokensMax: 50, newWindowMs: 5_000 }
    writer.begin('empty', settings)
    writer.some(5)
    await writer.publish()
    await expectSame()
    expect(market.settings).toEqual(settings)
    expect(replica.restored).toBe(0)
  })

  it('begins again with a checkpoint where the writer has lost events that it has', {
    tags: 'drill',
  }, async () => {
    const saved = await aheadOfSaved()
    const { seq } = market
    writer.lose(saved)
    await writer.bus.manager.streams.purge(writer.bus.names.stream)
    await writer.upload()
    writer.begin('warm')
    writer.some(1)
    await writer.publish()
    await expect.poll(() => replica.restored, { timeout: REACH_MS_MAX }).toBe(1)
    await expectSame()
    expect(market.seq).toBeGreaterThan(seq)
  })

  it('begins again with a checkpoint where the market of the writer has lost others than its own', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(5)
    const saved = writer.save()
    writer.some(3)
    await writer.publish()
    await startReplica()
    await expectSame()
    // A damaged journal: the events have their numbers, and the market of the next run lacks them.
    const { eventNo } = writer
    writer.lose(saved)
    writer.lostEvents = eventNo - saved.eventNo
    writer.eventNo = eventNo
    await writer.bus.manager.streams.purge(writer.bus.names.stream)
    writer.begin('warm')
    await writer.publish()
    await expect.poll(() => asked, { timeout: REACH_MS_MAX }).toBeGreaterThan(0)
    await expectSame()
    expect(replica.restored).toBeGreaterThan(0)
    // What was restored lacks as many: it follows, and begins anew no more.
    const { restored } = replica
    writer.some(2)
    await writer.publish()
    await expectSame()
    expect(replica.restored).toBe(restored)
  })

  it('begins again with a checkpoint where another writer goes on at an earlier time than it was told of', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    await writer.upload()
    const saved = writer.save()
    await startReplica()
    await expectSame()
    // Its clock is ahead: the next writer, on another machine, knows events alone.
    await writer.tick(10_000)
    await expect.poll(() => market.timeMs).toBe(writer.market.timeMs)
    writer.nowMs -= 9_000
    writer.lose(saved)
    writer.begin('warm')
    writer.some(3)
    await writer.publish()
    await expectSame()
    expect(replica.restored).toBe(2)
  })

  it('asks for a checkpoint where the stream lacks events, and is not misled meanwhile', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(2)
    await writer.publish()
    await startReplica()
    await expectSame()
    proxy.cut()
    writer.some(5)
    await writer.publish()
    await writer.bus.manager.streams.purge(writer.bus.names.stream)
    writer.some(5)
    await writer.publish()
    proxy.heal()
    await expectSame()
    expect([asked, replica.restored]).toEqual([1, 1])
  })

  it.each(['keeps', 'loses'])(
    'goes on after a restart of a bus that %s its data',
    { tags: 'drill' },
    async (what) => {
      writer.begin('empty')
      writer.some(5)
      await writer.publish()
      await writer.upload()
      await startReplica()
      await expectSame()
      await nats.kill()
      await nats.start({ keepData: what === 'keeps' })
      await writer.reconnected()
      if (what === 'loses') {
        await writer.ensure()
        writer.some(1)
        writer.take()
        await writer.upload()
      }
      writer.some(5)
      await writer.publish()
      await expectSame()
      expect(replica.restored).toBe(what === 'loses' ? 2 : 1)
    },
  )

  it('skips a message that something else has published, and one that is damaged', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(2)
    await writer.publish()
    await writer.bus.client.publish(writer.bus.names.subject, 'not of this program')
    writer.some(2)
    await writer.publish()
    await startReplica()
    await expectSame()
    const [message] = writer.take()
    await writer.bus.client.publish(writer.bus.names.subject, encodeMessage(message).subarray(0, 40))
    writer.some(2)
    await writer.publish()
    await expectSame()
    expect([asked, replica.restored]).toEqual([0, 0])
  })

  it('restores a newer checkpoint where a damaged message had events', { tags: 'drill' }, async () => {
    writer.begin('empty')
    writer.some(2)
    await writer.publish()
    await writer.upload()
    await startReplica()
    await expectSame()
    writer.some(2)
    for (const message of writer.take())
      await writer.bus.client.publish(writer.bus.names.subject, encodeMessage(message).subarray(0, 400))
    writer.some(2)
    await writer.publish()
    await expectSame()
    // The one from before the damage would lead there again.
    expect([asked, replica.restored]).toEqual([1, 2])
  })

  it('finds its place in a stream of which many messages are damaged', { tags: 'drill' }, async () => {
    writer.begin('empty')
    for (let turn = 0; turn < 30; turn++) {
      writer.some(1)
      await writer.publish()
      if (turn === 9) await writer.upload()
      if (turn % 3 > 0) await writer.bus.client.publish(writer.bus.names.subject, 'not of this program')
    }
    await startReplica()
    await expectSame()
    expect([asked, replica.restored]).toEqual([0, 1])
  })

  it('never goes on with a checkpoint of events that the writer of the stream does not have', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(5)
    await writer.publish()
    const saved = writer.save()
    writer.some(5)
    await writer.upload()
    writer.lose(saved)
    await writer.bus.manager.streams.purge(writer.bus.names.stream)
    writer.begin('warm')
    writer.nowMs += 60_000
    for (let turn = 0; turn < 10; turn++) {
      writer.some(1)
      await writer.publish()
    }
    await startReplica()
    await expectSame()
    expect(asked).toBe(1)
  })

  it('refuses a writer of another version with a sentence, and goes on with one of its own', {
    tags: 'drill',
  }, async () => {
    writer.begin('empty')
    writer.some(1)
    const [message] = writer.take()
    await writer.send([{ ...message, protocol: '0.0.0' }])
    await startReplica()
    await expect.poll(() => replica.trouble).toContain('the writer speaks version 0.0.0 of the bus')
    await writer.bus.manager.streams.purge(writer.bus.names.stream)
    await writer.send([message])
    await expectSame()
  })
})
