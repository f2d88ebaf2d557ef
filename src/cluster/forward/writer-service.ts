// What a writer does for other nodes: it carries out their requests and tells them of accounts. It has a connection of its own, so that
// neither waits for the events of the market.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config/settings.ts'
import type { Route } from '../../http/route.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import type { ServedParts } from '../../server/market-publisher.ts'
import { AccountPublisher } from '../accounts/account-publisher.ts'
import { type Bus, connectBus } from '../bus.ts'
import { ConnectionWatch } from '../connection-watch.ts'
import { RETRY_MS_MAX } from '../limits.ts'
import { withCursors } from './cursor-route.ts'
import { ForwardClient } from './forward-client.ts'
import { ForwardServer } from './forward-server.ts'
import { cursorExpired, type Forwarding } from './forwarded-route.ts'
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
  readonly #options: WriterServiceOptions
  readonly #established = Promise.withResolvers<void>()
  #isStopped = false
  #opening: Promise<void> | null = null
  #bus: Bus | null = null
  #server: ForwardServer | null = null
  #accounts: AccountPublisher | null = null
  #forwarding: Forwarding | null = null

  constructor(options: WriterServiceOptions) {
    this.#options = options
  }

  /** This process is the writer, and not a second one: only then it may carry anything out for others. May be called again. */
  establish(): void {
    this.#established.resolve()
  }

  /** Pages behind cursors of other nodes are made there. @param nodeId of this process */
  routes(routes: readonly Route[], nodeId: string): Route[] {
    const forwarding = (): Forwarding => {
      if (this.#forwarding === null) throw cursorExpired()
      return this.#forwarding
    }
    return routes.map((route) => withCursors(route, nodeId, forwarding))
  }

  /** Begins, once `establish` was called and the bus is reached. */
  serve(parts: ServedParts): void {
    this.#opening = this.#open(parts)
  }

  /** An account has changed, durably. */
  changeAccount(agentId: string): void {
    this.#accounts?.change(agentId)
  }

  /** A sentence for each thing that is wrong. */
  get reasons(): string[] {
    const trouble = this.#accounts?.trouble ?? null
    return trouble === null ? [] : [`readers are not told of new and revoked keys: ${trouble}`]
  }

  /** Takes no more requests of other nodes, and finishes those that run. Never rejects. */
  async stopServing(): Promise<void> {
    this.#isStopped = true
    this.#established.resolve()
    await this.#opening
    await this.#server?.stop(CALLS_LAST_MS_MAX)
  }

  /** Brings the last changes of accounts to the bus, for at most ACCOUNTS_LAST_MS_MAX, and disconnects. Never rejects. */
  async stop(): Promise<void> {
    await this.stopServing()
    await this.#accounts?.settled(ACCOUNTS_LAST_MS_MAX)
    const stopped = this.#accounts?.stop()
    await this.#bus?.close()
    await stopped
  }

  async #open({ accounts, nodeId, port, secret }: ServedParts): Promise<void> {
    const { config, log, positionToReach, makeCheckpoint } = this.#options
    await this.#established.promise
    const bus = await this.#connect()
    if (bus === null) return
    const { connection, names } = bus
    const watch = new ConnectionWatch(connection)
    // What others answer changes nothing here.
    const client = new ForwardClient({ connection, watch, names, untilApplied: () => Promise.resolve() })
    this.#forwarding = { client, names }
    const publisher = new AccountPublisher({ bus, watch, accounts, replicas: config.busReplicas, log })
    this.#accounts = publisher
    this.#server = new ForwardServer({
      ...{ connection, names, nodeId, isWriter: true, port, secret, makeCheckpoint, log },
      position: async (waitMsMax) => ({
        eventNo: positionToReach(),
        accounts: await publisher.settled(waitMsMax),
      }),
    })
  }

  /** Null: stopped before the bus was reached. */
  async #connect(): Promise<Bus | null> {
    while (!this.#isStopped) {
      try {
        this.#bus = await connectBus(this.#options.config, 'mintlake writer: requests')
        return this.#bus
      } catch (error) {
        this.#options.log.debug({ reason: errorMessage(error) }, 'requests of readers cannot be taken yet')
        await sleep(RETRY_MS_MAX / 4, undefined, { ref: false })
      }
    }
    return null
  }
}
