// What a writer does for other nodes: it carries out their requests and tells them of accounts. Each has a connection of its own, so that
// neither waits for the events of the market, and requests do not wait where NATS cannot write.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config/settings.ts'
import type { Cursors } from '../../http/response/cursors.ts'
import type { Route } from '../../http/route.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import type { ServedParts } from '../../server/market-publisher.ts'
import { AccountPublisher } from '../accounts/account-publisher.ts'
import { type Bus, connectBus } from '../bus.ts'
import { addWatchMetrics, ConnectionWatch } from '../connection-watch.ts'
import { RETRY_MS_MAX } from '../limits.ts'
import { newNodeId } from '../node-id.ts'
import { withCursors } from './cursor-route.ts'
import { ForwardClient } from './forward-client.ts'
import { ForwardServer } from './forward-server.ts'
import type { Forwarding } from './forwarded-route.ts'
import { KeptLists } from './kept-lists.ts'
import { ACCOUNTS_LAST_MS_MAX, CALLS_LAST_MS_MAX } from './limits.ts'

export interface WriterServiceOptions {
  config: Config
  log: Log
  /** Number of the last event so far. */
  positionToReach(): number
  /** See `ForwardServerOptions`. */
  makeCheckpoint(): Promise<void>
}

export class WriterService {
  readonly lists = new KeptLists()
  readonly #options: WriterServiceOptions
  readonly #nodeId = newNodeId()
  readonly #established = Promise.withResolvers<void>()
  readonly #stopping = Promise.withResolvers<void>()
  #isStopped = false
  #opening: Promise<void> | null = null
  readonly #buses: Bus[] = []
  readonly #watches: ConnectionWatch[] = []
  #server: ForwardServer | null = null
  #accounts: AccountPublisher | null = null
  #forwarding: Forwarding | null = null
  /** Whether requests of other nodes arrive here. */
  isServing = false

  constructor(options: WriterServiceOptions) {
    this.#options = options
  }

  /** This process is the writer, and not a second one: only then it may carry anything out for others. May be called again. */
  establish(): void {
    this.#established.resolve()
  }

  /** Pages of lists that other nodes keep are made there. */
  routes(routes: readonly Route[], cursors: Cursors): Route[] {
    return routes.map((route) => withCursors(route, cursors, () => this.#forwarding))
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
    return [...new Set(this.#watches.flatMap(({ reasons }) => reasons))]
  }

  /** Takes no more requests of other nodes, and finishes those that run. Never rejects. */
  async stopServing(): Promise<void> {
    this.#isStopped = true
    this.#stopping.resolve()
    await this.#opening
    await this.#server?.stop(CALLS_LAST_MS_MAX)
  }

  /** Brings the last changes of accounts to the bus, for at most ACCOUNTS_LAST_MS_MAX, and disconnects. Never rejects. */
  async stop(): Promise<void> {
    await this.stopServing()
    await this.#accounts?.settled(ACCOUNTS_LAST_MS_MAX)
    const stopped = this.#accounts?.stop()
    await Promise.all(this.#buses.map((bus) => bus.close()))
    await stopped
  }

  async #open({ accounts, relay, ready }: ServedParts): Promise<void> {
    const { config, log, positionToReach, makeCheckpoint } = this.#options
    const accountsBus = await this.#connect('accounts')
    const bus = await this.#connect('requests')
    if (accountsBus === null || bus === null || !(await this.#isReached(this.#established.promise))) return
    const { connection, names } = bus
    const nodeId = this.#nodeId
    const [accountsWatch, watch] = [this.#watch(accountsBus), this.#watch(bus)]
    // What others answer changes nothing here.
    const untilApplied = () => Promise.resolve()
    const client = new ForwardClient({ connection, watch, names, untilApplied, writerSilentMs: null })
    this.#forwarding = { client, names }
    const publisher = new AccountPublisher({
      ...{ bus: accountsBus, watch: accountsWatch, accounts, replicas: config.busReplicas, log },
    })
    this.#accounts = publisher
    // Before that they would be refused.
    if (!(await this.#isReached(ready))) return
    this.#server = new ForwardServer({
      ...{ connection, names, nodeId, isWriter: true, relay, makeCheckpoint, log },
      position: async (waitMsMax) => ({
        eventNo: positionToReach(),
        accounts: await publisher.settled(waitMsMax),
      }),
    })
    this.lists.open({ connection, watch, names, nodeId })
    // From then on the bus knows it.
    await Promise.race([connection.flush().catch(() => undefined), this.#stopping.promise])
    this.isServing = !this.#isStopped
  }

  /** False: it has failed, or this is stopped before. */
  #isReached(work: Promise<unknown>): Promise<boolean> {
    const done = work.then(
      () => !this.#isStopped,
      () => false,
    )
    return Promise.race([done, this.#stopping.promise.then(() => false)])
  }

  #watch({ connection }: Bus): ConnectionWatch {
    const watch = new ConnectionWatch(connection, (sentence) => this.#options.log.error({}, sentence))
    this.#watches.push(watch)
    return watch
  }

  /** Null: stopped before the bus was reached. */
  async #connect(what: 'accounts' | 'requests'): Promise<Bus | null> {
    while (!this.#isStopped) {
      try {
        const bus = await connectBus(this.#options.config, `mintlake writer: ${what}`)
        this.#buses.push(bus)
        return bus
      } catch (error) {
        this.#options.log.debug({ reason: errorMessage(error) }, 'requests of readers cannot be taken yet')
        await sleep(RETRY_MS_MAX / 4, undefined, { ref: false })
      }
    }
    return null
  }
}
