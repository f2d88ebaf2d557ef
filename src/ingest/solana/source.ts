// Where the feed has the chain from: endpoints of today, or a tape of them.
import type { Clock } from '../../lib/clock.ts'
import type { SolanaSettings } from '../settings.ts'
import type { UpstreamEnd } from '../upstream-socket.ts'
import { wait } from '../wait.ts'
import { type Endpoint, endpointsOf, socketEndpointsOf, socketsOf, withoutAddresses } from './endpoints.ts'
import { MAINNET_GENESIS } from './programs.ts'
import { type Rpc, RpcClient } from './rpc.ts'
import {
  type Silence,
  type SubscriptionHandlers,
  type SubscriptionOptions,
  subscribe,
} from './subscription.ts'

/** Resolves when all questions that what came has raised are answered. */
export type Settled = () => Promise<void>

export interface ChainSource {
  readonly rpc: Rpc
  /** Times of what it delivers. */
  readonly clock: Clock
  /** A source that ends is not connected to again. */
  readonly hasEnd: boolean
  /** Its time is not that of the machine: what is due is looked at with each slot. */
  readonly hasOwnTime: boolean
  /** How long accounts are collected before they are asked for, ms. */
  readonly collectMs?: number
  /** The host of the present connection, or of the next. */
  readonly host: string
  /** Connects once; resolves when the connection is over. @param settled a source that can wait goes on after it */
  connect(
    handlers: SubscriptionHandlers,
    signal: AbortSignal,
    settled: Settled,
  ): Promise<UpstreamEnd & Silence>
  /** Waits in the time of its clock, or less when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  /** A message without addresses, which hold keys. */
  masked(text: string): string
}

/** Which endpoints it has, and how they are used. */
export type EndpointSettings = Pick<
  SolanaSettings,
  'rpcUrls' | 'socketUrls' | 'commitment' | 'requestsPerSecond'
>

export interface LiveSourceOptions extends EndpointSettings, SubscriptionOptions {
  rpcTimeoutMs?: number
}

export type Commitment = 'confirmed' | 'processed'

export class LiveSource implements ChainSource {
  readonly rpc: RpcClient
  readonly clock: Clock
  readonly hasEnd = false
  readonly hasOwnTime = false
  readonly #options: LiveSourceOptions
  readonly #sockets: readonly Endpoint[]
  readonly #all: readonly Endpoint[]
  #current = 0

  constructor(options: LiveSourceOptions, clock: Clock) {
    const { rpcUrls, socketUrls, requestsPerSecond, rpcTimeoutMs: timeoutMs, tape } = options
    const endpoints = endpointsOf(rpcUrls)
    this.#options = options
    this.#sockets = socketUrls.length > 0 ? socketsOf(socketUrls) : socketEndpointsOf(rpcUrls)
    this.#all = [...endpoints, ...this.#sockets]
    this.rpc = new RpcClient({ endpoints, requestsPerSecond, timeoutMs, tape, genesis: MAINNET_GENESIS })
    this.clock = clock
  }

  get host(): string {
    return this.#socket.host
  }

  get #socket(): Endpoint {
    return this.#sockets[this.#current % this.#sockets.length]
  }

  async connect(handlers: SubscriptionHandlers, signal: AbortSignal): Promise<UpstreamEnd & Silence> {
    const { commitment } = this.#options
    let wasSubscribed = false
    const onSubscribed = () => {
      wasSubscribed = true
      handlers.onSubscribed()
    }
    const { url, host, callsUrl = url } = this.#socket
    try {
      // Calls and subscriptions may be at other endpoints. One that answers no calls is believed.
      if ((await this.rpc.isOfChain({ url: callsUrl, host }, signal)) === false)
        return { reason: `${host} is an endpoint of another chain than Solana's mainnet` }
      return await subscribe(url, commitment, { ...handlers, onSubscribed }, signal, this.#options)
    } finally {
      // One that has served is tried first again; one that has not gives way to the next.
      if (!wasSubscribed) this.#current++
    }
  }

  wait(ms: number, signal: AbortSignal): Promise<void> {
    return wait(ms, signal)
  }

  masked(text: string): string {
    return withoutAddresses(text, this.#all)
  }
}
