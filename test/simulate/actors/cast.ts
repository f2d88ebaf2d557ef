// Who acts in a run.

import type { World } from '../world.ts'
import { Agents } from './agents.ts'
import { Backups } from './backups.ts'
import { PushFeed } from './feed.ts'
import { Followers } from './followers.ts'
import { checkLimits } from './limits-model.ts'
import { Operator } from './operator.ts'
import { Readers } from './readers.ts'
import { Replicas } from './replicas.ts'

/** A simulated market has an event within this: so often it tells the price of SOL. */
const EVENT_WITHIN_MS = 6_000

/** How a life of the server ended. */
export interface LifeEnd {
  kind: 'crash' | 'cut' | 'stop'
  /** On the machine's own time. */
  atMs: number
  /** Until then its feed brought events: from when it was told to stop it brings none. */
  feedUntilMs: number
  /** The disk was not well during this life. */
  hadBadDisk: boolean
}

export interface Sizes {
  tokens: number
  /** So many of them the market holds. */
  tokensMax: number
  agents: number
  followers: number
}

export class Cast {
  readonly feed: PushFeed
  readonly agents: Agents
  readonly followers: Followers
  readonly operator: Operator
  readonly readers: Readers
  /** Null: none are made. */
  readonly backups: Backups | null
  /** Null: there are none. */
  readonly replicas: Replicas | null
  /** There are more tokens than the market holds: some are evicted. */
  readonly hasEvictions: boolean
  /** By the number of the life. */
  readonly ends = new Map<number, LifeEnd>()
  /** The disk was not well during this life. */
  hasBadDisk = false
  readonly #world: World

  constructor(world: World, sizes: Sizes, hasBackups = false) {
    this.#world = world
    this.hasEvictions = sizes.tokens > sizes.tokensMax
    this.feed = new PushFeed(world, sizes.tokens)
    this.agents = new Agents(world, sizes.agents, (sending, answer) => {
      checkLimits(world, sending)
      if (!this.hasBadDisk) this.replicas?.checkOwnWrite(sending, answer, this.agents.attempts)
    })
    this.followers = new Followers(world, sizes.followers)
    this.operator = new Operator(world, this.agents)
    this.backups = hasBackups && world.real !== null ? new Backups(world, world.real, this.agents) : null
    this.replicas = world.cluster && new Replicas(world, world.cluster)
    this.readers = new Readers(world, this.agents, this)
  }

  /** The disk was not well during this life, or one before. */
  get hadBadDisk(): boolean {
    return this.hasBadDisk || [...this.ends.values()].some(({ hadBadDisk }) => hadBadDisk)
  }

  /** Tokens that the market certainly has. */
  get mints(): string[] {
    const { feed, server } = this.#world
    return feed === 'push' ? [...this.feed.known] : [...(server.app?.market.mints() ?? [])]
  }

  /** Whether the present life of the server took market events between two moments of the machine's own time. */
  hasTakenWithin(fromMs: number, toMs: number): boolean {
    const { feed, server } = this.#world
    if (feed === 'push') return this.feed.hasTakenWithin(fromMs, toMs)
    // What the chain does is not known here.
    if (feed === 'solana') return false
    return toMs - Math.max(fromMs, server.life?.startedMs ?? toMs) > EVENT_WITHIN_MS
  }

  /** Whether somebody waits for an answer. */
  get isWaiting(): boolean {
    return this.feed.isWaiting || this.agents.isWaiting
  }

  /** Whoever waits for too long gives up. */
  poll(): void {
    this.feed.poll()
    this.agents.poll()
    this.replicas?.poll()
  }
}
