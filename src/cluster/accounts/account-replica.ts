// The accounts of the writer as a reader knows them from the bus: whose key a request has, and the names of agents.

import { setTimeout as sleep } from 'node:timers/promises'
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'
import { type KV, type KvEntry, Kvm } from '@nats-io/kv'
import { nanos } from '@nats-io/transport-node'
import { tryAgain } from '../../http/response/rate-limit-headers.ts'
import { Backoff } from '../../lib/backoff.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import { Waiters } from '../../lib/waiters.ts'
import { KeyTable, newKey } from '../../submissions/accounts/key-table.ts'
import { SubmissionError } from '../../submissions/errors.ts'
import type { Account, Caller } from '../../submissions/types.ts'
import type { Bus } from '../bus.ts'
import { RETRY_MS, RETRY_MS_MAX } from '../limits.ts'
import { COMPLETE_KEY, decodeAccount } from './account-entry.ts'
import { createdAtOf } from './created-at.ts'
import { CHECK_MS, TELL_AGAIN_MS } from './limits.ts'

export interface AccountReplicaOptions {
  bus: Bus
  clock: Clock
  log: Log
  /** Tells the writer of the first use of a key that replaced another one. Rejects where it was refused. */
  tellUse(key: string): Promise<unknown>
}

/** One pass over the entries, from the first on. What earlier passes have told stays until this one is complete. */
interface Pass {
  /** Keys of the entries that there are, as far as it has come. */
  seen: Set<string>
  isCaughtUp: boolean
  hasAll: boolean
  /** The bus's clock minus the monotonic clock, ms. */
  clockOffsetMs: number
}

export class AccountReplica {
  /** Whether all accounts were known once. */
  isReady = false
  /** Of the last entry. */
  revision = 0
  readonly #options: AccountReplicaOptions
  readonly #keys = new KeyTable()
  /** By key of the entry. */
  readonly #known = new Map<string, string>()
  readonly #names = new Map<string, string>()
  /** Hashes of keys whose use is being told. */
  readonly #telling = new Set<string>()
  readonly #unwatch: () => void
  readonly #working: Promise<void>
  readonly #waiters = new Waiters()
  #isStopped = false
  #entries: { stop(): void } | null = null

  constructor(options: AccountReplicaOptions) {
    this.#options = options
    // The bus may have lost what was watched.
    this.#unwatch = options.bus.watch.onConnected(() => this.#entries?.stop())
    this.#working = this.#work()
  }

  /**
   * The agent of a key.
   * @throws SubmissionError `missing_key`, `invalid_key`, `revoked_key`; ServiceError `warming_up` while it is not known whether there
   *  is such a key
   */
  authenticate(text: string): Caller {
    try {
      const nowMs = this.#options.clock.monotonicMs()
      const key = this.#keys.authenticate(text, nowMs)
      if (this.#keys.awaitsUse(key, nowMs)) void this.#tellUse(key.hash, text)
      return { agent: key.agent, keyHash: key.hash }
    } catch (error) {
      const mayBeKnownSoon = error instanceof SubmissionError && error.code === 'invalid_key' && !this.isReady
      if (!mayBeKnownSoon) throw error
      const sentence = 'This node has not been told of all accounts yet: try again, or elsewhere.'
      throw tryAgain('warming_up', sentence)
    }
  }

  /** Again and again, until an entry says that the writer knows it: the writer may refuse, or lose what it noted. No request waits. */
  async #tellUse(hash: string, text: string): Promise<void> {
    if (this.#telling.has(hash)) return
    this.#telling.add(hash)
    const { clock, log, tellUse } = this.#options
    for (;;) {
      const key = this.#keys.get(hash)
      const nowMs = clock.monotonicMs()
      const isAwaited = key !== undefined && key.deadlineMs > nowMs && this.#keys.awaitsUse(key, nowMs)
      if (this.#isStopped || !isAwaited) break
      await tellUse(text).catch((error) =>
        log.debug({ reason: errorMessage(error) }, 'the writer was not told that a key is used; told again'),
      )
      await sleep(TELL_AGAIN_MS, undefined, { ref: false })
    }
    this.#telling.delete(hash)
  }

  /** The name to show; the identity of an agent that is not known. */
  name(agentId: string): string {
    return this.#names.get(agentId) ?? agentId
  }

  /** Resolves when the entry of that revision is applied, and after `msMax` in any case. */
  async until(revision: number, msMax: number): Promise<void> {
    await this.#waiters.until(() => this.revision >= revision, msMax)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unwatch()
    this.#entries?.stop()
    await this.#working
  }

  async #work(): Promise<void> {
    const backoff = new Backoff(RETRY_MS, RETRY_MS_MAX)
    while (!this.#isStopped) {
      try {
        const { bus } = this.#options
        const kv = await new Kvm(bus.client).open(bus.names.accounts)
        await this.#pass(kv)
        backoff.reset()
      } catch (error) {
        // Before the first writer there are none.
        this.#options.log.debug(
          { reason: errorMessage(error) },
          'accounts cannot be read from the bus; tried again',
        )
        if (this.#isStopped) return
        await sleep(backoff.nextMs(), undefined, { ref: false })
      }
    }
  }

  /** Applies all entries and the changes of them, until the connection was lost or the entries were deleted. */
  async #pass(kv: KV): Promise<void> {
    const createdAt = await createdAtOf(kv)
    const pass: Pass = {
      seen: new Set<string>(),
      isCaughtUp: false,
      hasAll: false,
      clockOffsetMs: await this.#clockOffsetMs(kv),
    }
    const entries = await kv.watch()
    this.#entries = entries
    this.revision = 0
    const check = () => createdAtOf(kv).then((now) => now !== createdAt && entries.stop())
    // Without an answer everything is read again, once there is one.
    const timer = setInterval(() => void check().catch(() => entries.stop()), CHECK_MS).unref()
    try {
      for await (const entry of entries) this.#apply(entry, pass)
    } finally {
      clearInterval(timer)
      entries.stop()
      this.#entries = null
    }
  }

  #apply(entry: KvEntry, pass: Pass): void {
    const { key, operation } = entry
    const account = operation === 'PUT' && key !== COMPLETE_KEY ? decodeAccount(entry.value) : null
    // What is told now was true a moment ago; what was told before may be old.
    const ageMs = pass.isCaughtUp
      ? 0
      : Math.max(0, this.#options.clock.monotonicMs() + pass.clockOffsetMs - entry.created.getTime())
    if (account !== null) {
      pass.seen.add(key)
      this.#learn(key, account, ageMs)
    } else if (operation !== 'PUT') {
      pass.seen.delete(key)
      this.#forget(key)
    } else if (key === COMPLETE_KEY) pass.hasAll = true
    else this.#options.log.warn({ key }, 'an account on the bus is damaged, or of another version')
    if (entry.delta === 0) pass.isCaughtUp = true
    if (pass.isCaughtUp && pass.hasAll) this.#complete(pass)
    this.revision = entry.revision
    this.#waiters.check()
  }

  /** What no entry of this pass has told does not exist any more. */
  #complete({ seen }: Pass): void {
    if (seen.size < this.#known.size)
      for (const key of this.#known.keys()) if (!seen.has(key)) this.#forget(key)
    this.isReady = true
  }

  #learn(key: string, { agent, name, keys }: Account, ageMs: number): void {
    const { agentId } = agent
    const nowMs = this.#options.clock.monotonicMs()
    for (const before of [...this.#keys.ofAgent(agentId)]) this.#keys.drop(before)
    for (const { hash, prefix, createdAtMs, expiresAtMs, endsInMs, isUsed } of keys) {
      const made = newKey(agent, hash, prefix, createdAtMs)
      made.expiresAtMs = expiresAtMs ?? Number.POSITIVE_INFINITY
      made.deadlineMs = endsInMs === null ? Number.POSITIVE_INFINITY : nowMs + endsInMs - ageMs
      made.isUsed = isUsed
      this.#keys.add(made)
    }
    this.#known.set(key, agentId)
    this.#names.set(agentId, name)
  }

  #forget(key: string): void {
    const agentId = this.#known.get(key)
    if (agentId === undefined) return
    for (const before of [...this.#keys.ofAgent(agentId)]) this.#keys.drop(before)
    this.#known.delete(key)
    this.#names.delete(agentId)
  }

  /** The bus tells its time with the consumers that it makes: this one is not used. */
  async #clockOffsetMs(kv: KV): Promise<number> {
    const { clock, bus } = this.#options
    const { streamInfo } = await kv.status()
    const stream = streamInfo.config.name
    const sentAtMs = clock.monotonicMs()
    const { name, created } = await bus.manager.consumers.add(stream, {
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.New,
      inactive_threshold: nanos(CHECK_MS),
    })
    const atMs = (sentAtMs + clock.monotonicMs()) / 2
    await bus.manager.consumers.delete(stream, name)
    return Date.parse(created) - atMs
  }
}
