// Whether the connection to the bus is there now, when it is there again, and what the bus refuses to this process.
import { AuthorizationError, type NatsConnection, PermissionViolationError } from '@nats-io/transport-node'
import type { Metrics } from '../lib/metrics/metrics.ts'
import { deniedSentence } from './bus-errors.ts'
import { DENIED_MAX, DENIED_MS } from './limits.ts'

export class ConnectionWatch {
  #isConnected = true
  #isRefused = false
  /** It was lost, at least once. */
  #lost: Error | null = null
  readonly #onLost = new Set<(error: Error) => void>()
  /** What was denied, as sentences, and when it was the last time, on the monotonic clock. */
  readonly #denied = new Map<string, number>()
  readonly #onConnected = new Set<() => void>()
  readonly #onDenied: (sentence: string) => void

  /**
   * @param connection a connection that is there. It is watched until it is closed.
   * @param onDenied told of each thing that the bus does not permit, once
   */
  constructor(connection: NatsConnection, onDenied: (sentence: string) => void) {
    this.#onDenied = onDenied
    void this.#watch(connection)
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  /** A sentence for each thing that the bus refuses. */
  get reasons(): string[] {
    if (!this.#isConnected)
      return this.#isRefused ? ['NATS does not take the user of this process any more'] : []
    const fromMs = performance.now() - DENIED_MS
    return [...this.#denied].filter(([, atMs]) => atMs > fromMs).map(([sentence]) => sentence)
  }

  /** Calls `act` each time that the connection was lost and is there again. @returns ends that */
  onConnected(act: () => void): () => void {
    this.#onConnected.add(act)
    return () => this.#onConnected.delete(act)
  }

  /**
   * Waits for work no longer than the connection lasts. Rejects as soon as it is lost, and from then on: what was on its way may or may
   * not have arrived.
   */
  readonly untilLost = async <Value>(work: Promise<Value>): Promise<Value> => {
    const { promise, reject } = Promise.withResolvers<never>()
    if (this.#lost !== null) reject(this.#lost)
    this.#onLost.add(reject)
    try {
      return await Promise.race([work, promise])
    } finally {
      this.#onLost.delete(reject)
    }
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      const { type } = status
      if (type === 'disconnect' || type === 'staleConnection' || type === 'close') this.#noteLost()
      if (type === 'error') this.#noteError(status.error)
      if (type !== 'reconnect') continue
      this.#isConnected = true
      this.#isRefused = false
      this.#denied.clear()
      for (const act of this.#onConnected) act()
    }
    this.#noteLost()
  }

  #noteLost(): void {
    this.#isConnected = false
    this.#lost ??= new Error('the connection to the bus was lost')
    for (const reject of this.#onLost) reject(this.#lost)
  }

  #noteError(error: Error): void {
    if (error instanceof AuthorizationError) this.#isRefused = true
    if (!(error instanceof PermissionViolationError)) return
    const sentence = deniedSentence(error)
    const isKnown = this.#denied.has(sentence)
    if (!isKnown && this.#denied.size >= DENIED_MAX) return
    this.#denied.set(sentence, performance.now())
    if (!isKnown) this.#onDenied(sentence)
  }
}

/** @param reasons of all connections of this process; none while the bus was not reached */
export function addWatchMetrics(metrics: Metrics, reasons: () => readonly string[]): void {
  metrics.read(
    'mintlake_cluster_refused',
    'Subjects that the bus denies to this process, or 1 where it does not take its user',
    () => reasons().length,
  )
}
