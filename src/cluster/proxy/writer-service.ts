// What a writer does for other nodes: it tells them where it takes requests, and tells them of accounts. Each has a connection of its own,
// so that neither waits for the events of the market, and questions do not wait where NATS cannot write.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config/settings.ts'
import type { Cursors } from '../../http/response/cursors.ts'
import type { Route } from '../../http/route.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import { SingleFlight } from '../../lib/single-flight.ts'
import { within } from '../../lib/wait.ts'
import type { ServedParts } from '../../server/market-publisher.ts'
import { AccountPublisher } from '../accounts/account-publisher.ts'
import { type Bus, connectBus } from '../bus.ts'
import { addWatchMetrics } from '../connection-watch.ts'
import { RETRY_MS_MAX } from '../limits.ts'
import { withCursors } from './cursor-route.ts'
import { KeptLists } from './kept-lists.ts'
import { ACCOUNTS_LAST_MS_MAX, ACCOUNTS_WAIT_MS_MAX, LEAVE_MS_MAX } from './limits.ts'
import { NodeGate } from './node-gate.ts'
import { PassingOn } from './passing-on.ts'
import { type Position, withPosition } from './position.ts'
import { type Answering, answerAt, type Question } from './questions.ts'

export interface WriterServiceOptions {
  config: Config
  log: Log
  /** Number of the last event so far. */
  positionToReach(): number
  /** Makes a checkpoint of now and uploads it. Never rejects. */
  makeCheckpoint(): Promise<void>
}

/** Resolves when the bus has all that was sent to it, or is away. */
const flushed = ({ connection }: Bus): Promise<void> => connection.flush().catch(() => undefined)

export class WriterService {
  readonly lists = new KeptLists()
  readonly #options: WriterServiceOptions
  readonly gate = new NodeGate()
  readonly #established = Promise.withResolvers<void>()
  readonly #stopping = Promise.withResolvers<void>()
  #isStopped = false
  #leaving: Promise<void> | null = null
  #opening: Promise<void> | null = null
  readonly #buses: Bus[] = []
  #answering: Answering | null = null
  #accounts: AccountPublisher | null = null
  /** Null: the bus was not reached yet. */
  #elsewhere: PassingOn | null = null
  readonly #checkpoint = new SingleFlight(() => this.#options.makeCheckpoint(), 0)
  /** Whether requests of other nodes arrive here. */
  isServing = false

  constructor(options: WriterServiceOptions) {
    this.#options = options
  }

  /** This process is the writer, and not a second one: only then it may carry anything out for others. May be called again. */
  establish(): void {
    this.#established.resolve()
  }

  /** Pages of lists that other nodes keep are made there; other nodes are told what their requests have changed. */
  routes(routes: readonly Route[], cursors: Cursors): Route[] {
    const position = () => this.#position()
    return routes
      .map((route) => withCursors(route, cursors, () => this.#elsewhere))
      .map((route) => withPosition(route, position))
  }

  async #position(): Promise<Position> {
    const eventNo = this.#options.positionToReach()
    return { eventNo, accounts: (await this.#accounts?.settled(ACCOUNTS_WAIT_MS_MAX)) ?? 0 }
  }

  /** Begins, once `establish` was called and the bus is reached. */
  serve(parts: ServedParts): void {
    this.#opening = this.#open(parts)
  }

  /** An account has changed, durably. */
  changeAccount(agentId: string): void {
    this.#accounts?.change(agentId)
  }

  addMetrics(metrics: Metrics): void {
    addWatchMetrics(metrics, () => this.#refusals)
  }

  /** A sentence for each thing that is wrong. */
  get reasons(): string[] {
    const trouble = this.#accounts?.trouble ?? null
    const refused = this.#refusals
    return trouble === null
      ? refused
      : [...refused, `readers are not told of new and revoked keys: ${trouble}`]
  }

  /** What NATS refuses on either connection, each once. */
  get #refusals(): string[] {
    return [...new Set(this.#buses.flatMap(({ watch }) => watch.reasons))]
  }

  /** Takes no more requests of other nodes, which find nobody on the bus from then on. Never rejects. */
  stopServing(): Promise<void> {
    this.#leaving ??= this.#leave()
    return this.#leaving
  }

  async #leave(): Promise<void> {
    this.#isStopped = true
    this.#stopping.resolve()
    await this.#opening
    this.#answering?.unsubscribe()
    await within(LEAVE_MS_MAX, Promise.all(this.#buses.map(flushed)))
    // Not before: whoever is refused here asks the bus, which must not tell of this process any more.
    this.gate.isOpen = false
  }

  /** Brings the last changes of accounts to the bus, for at most ACCOUNTS_LAST_MS_MAX, and disconnects. Never rejects. */
  async stop(): Promise<void> {
    await this.stopServing()
    await this.#accounts?.settled(ACCOUNTS_LAST_MS_MAX)
    this.#elsewhere?.close()
    const stopped = this.#accounts?.stop()
    await Promise.all(this.#buses.map((bus) => bus.close()))
    await stopped
  }

  async #open({ accounts, port, ready }: ServedParts): Promise<void> {
    const { config, log } = this.#options
    const accountsBus = await this.#connect('accounts')
    const bus = await this.#connect('requests')
    if (accountsBus === null || bus === null || !(await this.#isReached(this.#established.promise))) return
    const { connection, names } = bus
    // What others answer changes nothing here.
    const untilApplied = () => Promise.resolve()
    this.#elsewhere = new PassingOn({ bus, untilApplied, log, writerUrl: '', stream: null })
    this.#accounts = new AccountPublisher(accountsBus, accounts, config.bus.stream.replicas, log)
    // Before that they would be refused.
    if (!(await this.#isReached(ready))) return
    const address = () => this.gate.address(config, port, connection)
    this.gate.isOpen = true
    this.#answering = answerAt(connection, names.writer, address, (asked) => this.#onAsked(asked))
    this.lists.open(bus, address)
    // From then on the bus knows it.
    await Promise.race([flushed(bus), this.#stopping.promise])
    this.isServing = !this.#isStopped
  }

  #onAsked(question: Question): void {
    if (question === 'checkpoint') void this.#checkpoint.get()
  }

  /** False: it has failed, or this is stopped before. */
  #isReached(work: Promise<unknown>): Promise<boolean> {
    const done = work.then(
      () => !this.#isStopped,
      () => false,
    )
    return Promise.race([done, this.#stopping.promise.then(() => false)])
  }

  /** Null: stopped before the bus was reached. */
  async #connect(what: 'accounts' | 'requests'): Promise<Bus | null> {
    const { config, log } = this.#options
    while (!this.#isStopped) {
      try {
        const bus = await connectBus(config.bus, `mintlake writer: ${what}`, log)
        this.#buses.push(bus)
        return bus
      } catch (error) {
        log.debug({ reason: errorMessage(error) }, 'requests of readers cannot be taken yet')
        await sleep(RETRY_MS_MAX / 4, undefined, { ref: false })
      }
    }
    return null
  }
}
