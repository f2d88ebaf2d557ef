// Brings the writer's accounts to the bus, and keeps them there: an account that changes is put; at each connection all are compared,
// so that nothing is missing after the bus was away or has lost its data. No commit waits for it.

import { setTimeout as sleep } from 'node:timers/promises'
import { type KV, Kvm } from '@nats-io/kv'
import { Backoff } from '../../lib/backoff.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import { Pause } from '../../lib/wait.ts'
import { Waiters } from '../../lib/waiters.ts'
import type { ServedParts } from '../../server/market-publisher.ts'
import type { Bus } from '../bus.ts'
import { RETRY_MS, RETRY_MS_MAX } from '../limits.ts'
import { COMPLETE_KEY, COMPLETE_VALUE, encodeAccount, entryKey, isSameAccount } from './account-entry.ts'
import { createdAtOf } from './created-at.ts'
import { CHECK_MS, PUTS_AT_ONCE } from './limits.ts'

export class AccountPublisher {
  readonly #bus: Bus
  readonly #accounts: ServedParts['accounts']
  readonly #replicas: number
  readonly #log: Log
  /** Agents whose entries are to be put: each as it is when its turn comes. Bounded by the number of agents. */
  readonly #changed = new Set<string>()
  /** Keys of entries that belong to no agent. */
  readonly #unknown = new Set<string>()
  readonly #unwatch: () => void
  readonly #working: Promise<void>
  /** Counts connections: what was compared at an earlier one is compared again. */
  #connection = 0
  #isComplete = false
  #isWorking = true
  #isStopped = false
  /** Why the accounts cannot be brought to the bus at present; null: they can. */
  trouble: string | null = null
  #revision = 0
  readonly #pause = new Pause()
  /** Ends the wait for replies that the lost connection will not bring. */
  #giveUp: () => void = () => {}
  #entries: { stop(): void } | null = null
  readonly #waiters = new Waiters()

  /** @param replicas NATS servers that keep each entry */
  constructor(bus: Bus, accounts: ServedParts['accounts'], replicas: number, log: Log) {
    this.#bus = bus
    this.#accounts = accounts
    this.#replicas = replicas
    this.#log = log
    this.#unwatch = bus.watch.onConnected(() => {
      this.#connection++
      this.#entries?.stop()
      this.#giveUp()
      this.#pause.end()
    })
    this.#working = this.#work()
  }

  /** An agent, its keys or its name have changed. */
  change(agentId: string): void {
    this.#changed.add(agentId)
    this.#isWorking = true
    this.#pause.end()
  }

  /** The revision of the last entry, once the bus has all that was changed so far; the last one there is after `msMax` at the latest. */
  async settled(msMax: number): Promise<number> {
    await this.#waiters.until(() => !this.#isWorking, msMax)
    return this.#revision
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unwatch()
    this.#entries?.stop()
    this.#pause.end()
    await this.#working
  }

  async #work(): Promise<void> {
    const backoff = new Backoff(RETRY_MS, RETRY_MS_MAX)
    while (!this.#isStopped) {
      const connection = this.#connection
      try {
        const { client, names } = this.#bus
        const kv = await new Kvm(client).create(names.accounts, { history: 1, replicas: this.#replicas })
        await this.#compare(kv, connection)
        if (connection === this.#connection) await this.#put(kv, connection)
        backoff.reset()
      } catch (error) {
        if (this.#isStopped) return
        this.trouble = errorMessage(error)
        this.#log.warn({ reason: errorMessage(error) }, 'accounts cannot be brought to the bus; tried again')
        await sleep(backoff.nextMs(), undefined, { ref: false })
      }
    }
  }

  /** Finds what differs between the bus and the accounts. */
  async #compare(kv: KV, connection: number): Promise<void> {
    const accounts = this.#accounts
    const byKey = new Map<string, string>()
    for (const agentId of accounts.agentIds()) byKey.set(entryKey(agentId), agentId)
    this.#isComplete = false
    this.#unknown.clear()
    const entries = await kv.history()
    this.#entries = entries
    for await (const { key, value, operation, revision } of entries) {
      this.#revision = revision
      if (operation !== 'PUT') continue
      if (key === COMPLETE_KEY) this.#isComplete = true
      const agentId = byKey.get(key)
      const account = agentId === undefined ? null : accounts.account(agentId)
      if (account !== null && isSameAccount(value, account)) byKey.delete(key)
      else if (account === null && key !== COMPLETE_KEY) this.#unknown.add(key)
    }
    this.#entries = null
    if (connection !== this.#connection) return
    for (const agentId of byKey.values()) this.#changed.add(agentId)
  }

  /** Puts what is changed, now and later, until the connection is another one. */
  async #put(kv: KV, connection: number): Promise<void> {
    const createdAt = await createdAtOf(kv)
    while (!this.#isStopped && connection === this.#connection) {
      if (this.#changed.size > 0) await this.#putSome(kv)
      else if (this.#unknown.size > 0) await this.#deleteSome(kv)
      else if (!this.#isComplete) {
        this.#noteRevision(await kv.put(COMPLETE_KEY, COMPLETE_VALUE))
        this.#isComplete = true
      } else if (!(await this.#rest()) && !this.#isStopped && createdAt !== (await createdAtOf(kv)))
        throw new Error('they were deleted there')
    }
  }

  async #putSome(kv: KV): Promise<void> {
    const agentIds = [...this.#changed.values().take(PUTS_AT_ONCE)]
    const put = async (agentId: string) => {
      const account = this.#accounts.account(agentId)
      // Changes from now on are put again.
      this.#changed.delete(agentId)
      if (account === null) return
      try {
        this.#noteRevision(await kv.put(entryKey(agentId), encodeAccount(account)))
      } catch (error) {
        this.#changed.add(agentId)
        throw error
      }
    }
    const lost = new Promise<never>((_, reject) => {
      this.#giveUp = () => reject(new Error('the connection was lost'))
    })
    const results = await Promise.race([Promise.allSettled(agentIds.map(put)), lost])
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  async #deleteSome(kv: KV): Promise<void> {
    const keys = [...this.#unknown.values().take(PUTS_AT_ONCE)]
    await Promise.all(keys.map((key) => kv.delete(key)))
    for (const key of keys) this.#unknown.delete(key)
  }

  /** Parts of one turn may end in another order than that in which the bus has taken them. */
  #noteRevision(revision: number): void {
    this.#revision = Math.max(this.#revision, revision)
  }

  /** Waits for a change, or CHECK_MS. @returns whether something has changed */
  async #rest(): Promise<boolean> {
    this.#isWorking = false
    this.trouble = null
    this.#waiters.check()
    await this.#pause.forMs(CHECK_MS)
    return this.#isWorking
  }
}
