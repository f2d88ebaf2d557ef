// A writer that does what a test tells it: it takes events, publishes them, forgets some, begins a new run, uploads checkpoints.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Objm } from '@nats-io/obj'
import { checkpointNames, writeCheckpoint } from '../../../src/checkpoint/checkpoint-file.ts'
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { PART_BYTES } from '../../../src/cluster/limits.ts'
import {
  type BusMessage,
  encodeMessage,
  PROTOCOL,
  type ToldSubmission,
} from '../../../src/cluster/messages.ts'
import { BatchEncoder } from '../../../src/journal/batch/batch-encoder.ts'
import { Market } from '../../../src/market/market.ts'
import { settingsOf } from '../../../src/market/market-parts.ts'
import type { EngineSettings, MarketEvent } from '../../../src/schema/event.ts'
import { MINTS, NOON_MS } from '../../checkpoint/support.ts'
import { temporaryFolder } from '../../support/test-server.ts'
import { busSettingsOf } from '../support.ts'

export const busSettings = (url: string) => busSettingsOf(url, 'test')

/** Of tests: small, so that many markets fit beside one another. */
export const SETTINGS = settingsOf({ tokensMax: 100 })

interface Saved {
  market: Market
  eventNo: number
}

export class ScriptedWriter {
  readonly bus: Bus
  market = new Market(SETTINGS)
  folderId = 'folder-1'
  runId = ''
  simulated = false
  runEventNo = 0
  /** What its market lacks of what was recorded. */
  lostEvents = 0
  eventNo = 0
  /** Market time, Unix ms. */
  nowMs = NOON_MS
  #encoder = new BatchEncoder()
  #firstSeq = 0
  #round = 0

  constructor(bus: Bus) {
    this.bus = bus
  }

  /** Connected, with an empty stream. */
  static async connect(url: string): Promise<ScriptedWriter> {
    const writer = new ScriptedWriter(await connectBus(busSettings(url), 'scripted writer'))
    await writer.ensure()
    return writer
  }

  /** Resolves when the bus answers again after a restart. */
  async reconnected(): Promise<void> {
    while (
      !(await this.bus.manager.getAccountInfo().then(
        () => true,
        () => false,
      ))
    );
  }

  async ensure(): Promise<void> {
    const { client, manager, names } = this.bus
    await manager.streams.add({ name: names.stream, subjects: [names.subject] })
    await new Objm(client).create(names.checkpoints)
  }

  /** Begins a run: with an empty market, or with the one of now. */
  begin(how: 'empty' | 'warm', settings: EngineSettings = SETTINGS): void {
    this.#firstSeq += 1_000_000
    this.runId = `run-${this.#firstSeq}`
    this.runEventNo = this.eventNo + 1
    if (how === 'empty') this.market = new Market({ ...settings, firstSeq: this.#firstSeq })
    const header = {
      ...{
        runId: this.runId,
        version: '',
        formatVersion: 1,
        node: '',
        settings,
        feeds: [],
        simulated: false,
      },
      ...{ checkpointEventNo: how === 'empty' ? null : this.eventNo, startedAtMs: this.nowMs },
    }
    this.apply({ type: 'run', ts: this.nowMs, firstSeq: this.#firstSeq, header })
  }

  apply(event: MarketEvent): void {
    if (this.#encoder.isFull) throw new Error('publish in between')
    this.market.apply(event, this.nowMs)
    this.eventNo++
    this.#encoder.add(event, this.market.timeMs, this.nowMs, 'test', this.market.solPriceUsdAt(this.nowMs))
  }

  /** Events of every kind. */
  some(rounds = 1): void {
    for (let done = 0; done < rounds; done++) {
      const round = this.#round++
      this.nowMs += 700
      const ts = this.nowMs
      this.apply({ type: 'solPrice', ts, usd: 100 + (round % 13) })
      MINTS.forEach((mint, index) => {
        if (round % 20 === index)
          this.apply({ type: 'token', mint, ts, name: `Token ${round}`, symbol: `T${index}` })
        this.apply({
          ...{ type: 'trade', mint, ts: ts - index, side: (round + index) % 3 ? 'buy' : 'sell' },
          ...{ tokenAmount: 1_000 / (index + 1), solAmount: 0.01 * (1 + ((round * 7 + index) % 5)) },
          ...{ wallet: `w${round % 4}`, tx: `tx-${round}-${index}` },
        })
      })
      this.apply({ type: 'live', mint: MINTS[3], ts, isLive: round % 2 === 0, viewerCount: round })
    }
  }

  /** The messages with what was applied since the last time. */
  take(submissions: ToldSubmission[] = []): BusMessage[] {
    const { eventNo, folderId, runId, runEventNo, lostEvents, market, simulated } = this
    const count = this.#encoder.count
    const firstEventNo = eventNo - count + 1
    const frame = count === 0 ? null : Uint8Array.from(this.#encoder.encode(firstEventNo, firstEventNo - 1))
    const head = {
      ...{ protocol: PROTOCOL, folderId, simulated, runId, runEventNo, lostEvents },
      ...{ firstEventNo, lastEventNo: eventNo },
    }
    const parts = Math.max(1, Math.ceil((frame?.length ?? 0) / PART_BYTES))
    return Array.from({ length: parts }, (_, part) => ({
      ...head,
      frame: frame === null ? null : frame.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
      ...{ part, parts, timeMs: market.timeMs, submissions: part === parts - 1 ? submissions : [] },
      ended: false,
    }))
  }

  async send(messages: readonly BusMessage[]): Promise<void> {
    for (const message of messages)
      await this.bus.client.publish(this.bus.names.subject, encodeMessage(message))
  }

  /** Publishes what was applied since the last time, or the time alone. */
  publish(submissions?: ToldSubmission[]): Promise<void> {
    return this.send(this.take(submissions))
  }

  /** Time passes, and is told. */
  async tick(ms = 100): Promise<void> {
    this.nowMs += ms
    this.market.advanceTo(this.nowMs)
    await this.publish()
  }

  /** Uploads the market of now. */
  async upload(): Promise<void> {
    const folder = temporaryFolder()
    const { eventNo, folderId, lostEvents, market } = this
    const head = {
      lostEvents,
      originEventNo: 1,
      settings: market.settings,
      barsInLakeToMs: 0,
      version: '',
      writtenAtMs: 0,
    }
    await writeCheckpoint(folder, { folderId, eventNo, atMs: market.timeMs, ...head }, market.save())
    const bytes = await readFile(join(folder, checkpointNames.nameOf(eventNo)))
    const store = await new Objm(this.bus.client).open(this.bus.names.checkpoints)
    const { runId } = this
    const metadata = { folderId, runId, eventNo: `${eventNo}`, bytes: `${bytes.length}`, protocol: PROTOCOL }
    await store.putBlob({ name: `${eventNo}`.padStart(16, '0'), metadata }, bytes)
  }

  /** A copy of the market, to go back to. */
  save(): Saved {
    const sections = new Map([...this.market.save()].map(({ name, bytes }) => [name, Buffer.from(bytes)]))
    const market = Market.restore(this.market.settings, (name) => sections.get(name) ?? null)
    return { market, eventNo: this.eventNo }
  }

  /** Loses everything since then, as a power cut does. */
  lose({ market, eventNo }: Saved): void {
    this.#encoder = new BatchEncoder()
    this.market = market
    this.eventNo = eventNo
  }
}
