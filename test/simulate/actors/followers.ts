// Programs that follow the market: some read at once, some seldom. Each keeps the rows that it was told of.
import type { Draws } from '../machine/machine.ts'
import type { SimulatedNode, Stream } from '../server.ts'
import { check, count, drawsFor, note, type World } from '../world.ts'

interface Follower {
  name: string
  isSlow: boolean
  stream: Stream | null
  /** The node that the stream is of, and its life. */
  node: SimulatedNode<never>
  life: number
  rest: string
  rows: Map<string, Record<string, unknown>>
  /** Of the last line; null: none was received yet. */
  seq: number | null
  /** When that was: see `PositionSources`. */
  era: number
  /** First rows are under way: there was no heartbeat yet. */
  isBeginning: boolean
}

const isOver = ({ stream, node, life }: Follower): boolean =>
  stream === null || stream.isEnded || life !== node.lives

export class Followers {
  readonly all: Follower[]
  readonly #world: World
  readonly #draws: Draws
  readonly #nodes: readonly SimulatedNode<never>[]
  readonly #nodeDraws: Draws

  constructor(world: World, followers: number) {
    this.#world = world
    const node = world.server as never
    this.#nodes = [node, ...((world.cluster?.readers ?? []) as never[])]
    this.#nodeDraws = drawsFor(world, 'nodes that are followed')
    this.#draws = drawsFor(world, 'followers')
    this.all = Array.from({ length: followers }, (_, index) => ({
      ...{ name: `follower ${index}`, isSlow: index % 2 === 1, stream: null, node, life: 0, rest: '' },
      ...{ rows: new Map(), seq: null, era: 0, isBeginning: true },
    }))
  }

  /** One of them reads, connects or leaves. */
  act(): void {
    const draws = this.#draws
    const follower = draws.of(this.all)
    if (isOver(follower)) this.#connect(follower)
    else if (!follower.isSlow || draws.chance(0.2)) this.#read(follower)
    if (draws.chance(0.12)) {
      follower.stream?.leave()
      follower.stream = null
    }
  }

  /** All of them read what there is. */
  readAll(): void {
    for (const follower of this.all) {
      if (isOver(follower)) this.#connect(follower)
      else this.#read(follower)
    }
  }

  #connect(follower: Follower): void {
    if (follower.stream !== null && follower.life === follower.node.lives) this.#read(follower)
    // It goes on at any node.
    if (this.#nodes.length > 1) follower.node = this.#nodeDraws.of(this.#nodes)
    const { era } = this.#world.positions
    if (follower.era !== era) Object.assign(follower, { seq: null, era })
    const { node } = follower
    const since = follower.seq === null ? '' : `&since=${follower.seq}`
    follower.stream = node.follow(`format=ndjson&follow=1&limit=500${since}`)
    follower.life = node.lives
    follower.rest = ''
    follower.isBeginning = since === ''
    if (since === '') follower.rows.clear()
    if (follower.stream !== null) count(this.#world, 'streams opened')
  }

  #read(follower: Follower): void {
    const lines = (follower.rest + (follower.stream?.read() ?? '')).split('\n')
    follower.rest = lines.pop() ?? ''
    if (follower.stream?.status !== 200) return
    for (const line of lines) this.#take(follower, JSON.parse(line))
  }

  #take(
    follower: Follower,
    { event, seq, ...row }: Record<string, unknown> & { event?: string; seq?: number },
  ): void {
    if (event === 'bye') note(this.#world, follower.name, 'bye', String(row.reason))
    if (event === 'resync') {
      follower.rows.clear()
      follower.isBeginning = true
    }
    if (seq !== undefined && event !== 'bye') {
      const last = follower.seq
      check(
        this.#world,
        'positions of a stream never go back',
        last === null || seq >= last,
        () => `${follower.name}: ${seq} after ${last}`,
      )
      follower.seq = seq
      if (event === 'heartbeat') follower.isBeginning = false
    }
    if (event === 'left') follower.rows.delete(String(row.mint))
    if (event === undefined) follower.rows.set(String(row.mint), row)
  }
}
