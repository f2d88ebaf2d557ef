// What a reader has once it is connected to the bus. It connects in the background, again and again until that succeeds.

import type { ReaderConfig } from '../../config/reader-settings.ts'
import type { HttpServer } from '../../http/server.ts'
import { Backoff } from '../../lib/backoff.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { Pause } from '../../lib/wait.ts'
import { AccountReplica } from '../accounts/account-replica.ts'
import { type Bus, connectBus } from '../bus.ts'
import { RETRY_MS, RETRY_MS_MAX } from '../limits.ts'
import { KeptLists } from '../proxy/kept-lists.ts'
import { LOOK_MS } from '../proxy/limits.ts'
import { NodeGate } from '../proxy/node-gate.ts'
import { PassingOn } from '../proxy/passing-on.ts'
import { READER_CALL_MS_MAX } from './limits.ts'
import { Replica, type ReplicaOptions } from './replica.ts'

export interface ReaderLinkOptions extends Omit<ReplicaOptions, 'bus' | 'askForCheckpoint'> {
  settings: ReaderConfig
}

export interface ReaderParts {
  bus: Bus
  /** The connection for questions of and to other nodes: a NATS whose disk is full lets one wait that asks for the stream. */
  requests: Bus
  replica: Replica
  passingOn: PassingOn
  accounts: AccountReplica
}

export class ReaderLink {
  /** Null: not connected yet. */
  parts: ReaderParts | null = null
  /** Why it is not connected, as a sentence; null: it is, or was not tried yet. */
  trouble: string | null = null
  readonly lists = new KeptLists()
  /** Of requests that other nodes pass on to this one. */
  readonly gate = new NodeGate()
  readonly #options: ReaderLinkOptions
  readonly #connected: Promise<void>
  #looking: NodeJS.Timeout | null = null
  #isStopped = false
  readonly #pause = new Pause()

  constructor(options: ReaderLinkOptions) {
    this.#options = options
    this.#connected = this.#connect()
  }

  /** A sentence for each thing that NATS refuses to this node. */
  get refusals(): string[] {
    if (this.parts === null) return []
    const { bus, requests } = this.parts
    return [...new Set([...bus.watch.reasons, ...requests.watch.reasons])]
  }

  /** Begins to answer other nodes, which ask for pages of the lists that this one keeps. */
  async serve({ ownPort }: Pick<HttpServer, 'ownPort'>): Promise<void> {
    await this.#connected
    if (this.parts === null || this.#isStopped) return
    const { requests, passingOn } = this.parts
    const address = () => this.gate.address(this.#options.settings, ownPort, requests.connection)
    this.gate.isOpen = true
    this.lists.open(requests, address)
    this.#looking = setInterval(() => void passingOn.look(), LOOK_MS).unref()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#pause.end()
    await this.#connected
    const { parts } = this
    if (parts === null) return
    this.gate.isOpen = false
    if (this.#looking !== null) clearInterval(this.#looking)
    parts.passingOn.close()
    // Whoever waits for an answer of the bus gets an error once the connection is closed.
    const stopped = [parts.replica.stop(), parts.accounts.stop()]
    await Promise.all([parts.bus.close(), parts.requests.close()])
    await Promise.all(stopped)
  }

  async #connect(): Promise<void> {
    const { settings, log } = this.#options
    const { nodeId } = this.gate
    const backoff = new Backoff(RETRY_MS, RETRY_MS_MAX)
    while (!this.#isStopped) {
      try {
        const bus = await connectBus(settings.bus, `mintlake reader ${nodeId}`, log, READER_CALL_MS_MAX)
        const requests = connectBus(settings.bus, `mintlake reader ${nodeId}: requests`, log)
        this.#open(bus, await requests.catch((error) => bus.close().then(() => Promise.reject(error))))
        return
      } catch (error) {
        const sentence = `the bus cannot be reached: ${errorMessage(error)}`
        if (sentence !== this.trouble) log.warn({ bus: settings.bus.servers }, sentence)
        this.trouble = sentence
      }
      if (!this.#isStopped) await this.#pause.forMs(backoff.nextMs())
    }
  }

  #open(bus: Bus, requests: Bus): void {
    const { settings, market, clock, log, onSubmission } = this.#options
    const { watch } = bus
    const passingOn: PassingOn = new PassingOn({
      bus: requests,
      log,
      writerUrl: settings.bus.reader.writerUrl,
      stream: {
        silentMs: () => (watch.isConnected ? replica.writerSilentMs() : 0),
        runId: () => replica.runId,
      },
      untilApplied: async ({ eventNo, accounts: revision }, msMax) => {
        // Nothing comes while it is away.
        if (!watch.isConnected) return
        await Promise.all([replica.reached(eventNo, msMax), accounts.until(revision, msMax)])
      },
    })
    const tellUse = (key: string) => passingOn.showKey(key)
    const accounts: AccountReplica = new AccountReplica({ bus, clock, log, tellUse })
    const replica: Replica = new Replica({
      bus,
      market,
      clock,
      log,
      onSubmission,
      askForCheckpoint: () => passingOn.askCheckpoint(),
    })
    this.parts = { bus, requests, replica, passingOn, accounts }
    this.trouble = null
  }
}
