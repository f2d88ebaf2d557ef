// The readers of a run and the NATS between them and the writer: who is up, and what NATS has on its disk.
import { NATS_PORT, NatsServer } from './bus/nats-server.ts'
import type { StoredStream } from './bus/streams.ts'
import { type Draws, drawsOf, type Machine } from './machine/machine.ts'
import type { Network, Way } from './machine/network.ts'
import { launchReader, SimulatedNode, type SimulatedReader } from './server.ts'
import { READER_LAG_MS_MAX, readerFlagsOf } from './settings.ts'

const READER_PORT = 9_001
const BUS_URL = `nats://127.0.0.1:${NATS_PORT}`

/** The settings by which a server is the writer of a cluster. @param hasOthers whether there are other writers beside it */
export const writerSettingsOf = (seed: number, hasOthers: boolean): Record<string, string> => {
  const draws = drawsOf(seed, 'bus settings')
  return {
    ...{ role: hasOthers ? 'standby' : 'writer', bus: BUS_URL },
    'bus-stream': `max-age-ms=${draws.of([60_000, 120_000, 3_600_000])},max-mb=${draws.of([1, 2_048])}`,
  }
}

export interface ClusterWorld {
  seed: number
  machine: Machine
  network: Network
  onLog(level: string, message: string): void
}

export class Cluster {
  readonly readers: readonly SimulatedReader[]
  readonly network: Network
  /** What the disk of NATS has. */
  readonly streams = new Map<string, StoredStream>()
  nats: NatsServer | null = null
  /** When something last ended, began or changed between these processes. */
  disturbedMs = 0
  readonly #machine: Machine
  readonly #draws: Draws
  #natsDueMs = 0
  /** When the ways that are not open are so again, by host. */
  readonly #waysUntilMs = new Map<string, number>()
  readonly #readerDueMs = new Map<SimulatedReader, number>()

  constructor({ seed, machine, network, onLog }: ClusterWorld) {
    this.#machine = machine
    this.network = network
    this.#draws = drawsOf(seed, 'cluster')
    this.readers = Array.from(
      { length: 2 },
      (_, index) =>
        new SimulatedNode({
          ...{ machine, network, name: `reader ${index + 1}`, port: READER_PORT + index, onLog },
          draws: drawsOf(seed, `network of reader ${index + 1}`),
          launch: launchReader(readerFlagsOf({ bus: BUS_URL, reader: `lag-max-ms=${READER_LAG_MS_MAX}` })),
        }),
    )
  }

  /** Starts what is due. */
  keepUp(): void {
    const { nowMs } = this.#machine
    for (const [host, untilMs] of this.#waysUntilMs) {
      if (nowMs < untilMs) continue
      this.network.setWay(host, 'open')
      this.#waysUntilMs.delete(host)
      this.disturbedMs = nowMs
    }
    if (this.nats === null && nowMs >= this.#natsDueMs) {
      this.nats = new NatsServer(this.#machine, this.network, this.streams)
      this.disturbedMs = nowMs
    }
    for (const reader of this.readers) {
      if (reader.life !== null && !reader.life.process.isAlive) this.#endReader(reader)
      if (reader.life !== null || nowMs < (this.#readerDueMs.get(reader) ?? 0)) continue
      reader.start()
      this.disturbedMs = nowMs
    }
  }

  killReader(reader: SimulatedReader): void {
    reader.crash()
    this.#endReader(reader)
  }

  #endReader(reader: SimulatedReader): void {
    reader.noteEnd()
    this.#readerDueMs.set(reader, this.#machine.nowMs + this.#draws.between(50, 20_000))
  }

  killNats(): void {
    this.nats?.process.kill()
    this.nats = null
    this.disturbedMs = this.#machine.nowMs
    this.#natsDueMs = this.#machine.nowMs + this.#draws.between(50, 15_000)
  }

  /** Its disk has lost the newest messages of each stream, or all streams. */
  loseStreams(count: number | 'all'): void {
    if (count === 'all') this.streams.clear()
    else for (const stream of this.streams.values()) stream.loseLast(count)
  }

  /** Of one host for some time: a later one of the same host takes its place. */
  setWay(host: string, way: Way, untilMs: number): void {
    this.network.setWay(host, way)
    this.disturbedMs = this.#machine.nowMs
    this.#waysUntilMs.set(host, untilMs)
  }

  /** All is well from now on, and everybody is up. What stands still goes on when its time is over. */
  async heal(): Promise<void> {
    for (const host of this.#waysUntilMs.keys()) this.network.setWay(host, 'open')
    this.#waysUntilMs.clear()
    this.#natsDueMs = 0
    this.#readerDueMs.clear()
    this.keepUp()
    const untilMs = Math.max(0, ...[...this.#machine.processes.values()].map((each) => each.frozenUntilMs))
    await this.#machine.pass(Math.max(0, untilMs - this.#machine.nowMs))
    this.disturbedMs = this.#machine.nowMs
  }

  /** Ends all of it. */
  end(): void {
    for (const reader of this.readers) if (reader.life !== null) reader.crash()
    this.nats?.process.kill()
    this.nats = null
  }
}
