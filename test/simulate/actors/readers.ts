// Clients that read what anybody may: lists, whose positions never go back, one of them page by page, as it was on its first page, and
// analyses of others, whose labels are withheld.

import type { Draws } from '../machine/machine.ts'
import type { Answer, Sent, SimulatedNode } from '../server.ts'
import { LABELS_DELAY_MS } from '../settings.ts'
import { check, drawsFor, nodesOf, type World } from '../world.ts'
import type { Agents } from './agents.ts'
import type { Cast } from './cast.ts'

const SLACK_MS = 50

const PAGE_ROWS = 3

/** A list that is read page by page. */
interface Walk {
  /** Of the next page; empty: of the first one. */
  cursor: string
  version: number
  mints: string[]
}

/** Whether its row is older than the lake keeps it. */
const hasLeft = ({ lake }: World, analysisId: string | null): boolean =>
  lake.files.removed.some(({ file }) => file.content.some(({ row }) => row?.analysis_id === analysisId))

export class Readers {
  readonly #world: World
  readonly #draws: Draws
  readonly #agents: Agents
  /** The highest position that an answer of a node had, since positions may have gone back. */
  readonly #seqs = new Map<string | object, number>()
  #walk: Walk | null = null
  #page: Sent | null = null

  readonly #cast: Pick<Cast, 'hasEvictions' | 'replicas'>
  readonly #nodeDraws: Draws

  constructor(world: World, agents: Agents, cast: Pick<Cast, 'hasEvictions' | 'replicas'>) {
    this.#world = world
    this.#cast = cast
    this.#nodeDraws = drawsFor(world, 'nodes that are read')
    this.#draws = drawsFor(world, 'readers')
    this.#agents = agents
  }

  act(): void {
    const act = this.#draws.weighted({ list: 3, page: 4, analysis: 5 })
    if (act === 'list') this.#readList()
    else if (act === 'page') this.#readPage()
    else this.#readAnalysis()
    for (const reader of this.#world.cluster?.readers ?? []) this.#cast.replicas?.checkAge(reader)
  }

  /** Any node shows the market. */
  #list(query: string, onAnswer: (answer: Answer, shown: string | object) => void): Sent {
    const world = this.#world
    const nodes = nodesOf(world)
    const node = nodes.length === 1 ? nodes[0]! : this.#nodeDraws.of(nodes)
    const shown = this.#shownBy(node)
    return node.send({ method: 'GET', path: '/api/v1/market', query }, (answer) => {
      this.#cast.replicas?.checkPage(node, query, answer)
      onAnswer(answer, shown)
    })
  }

  /**
   * Whose positions never go back: a node's, in all of its lives. What the bus has lost a reader that begins anew cannot know while the
   * writer is away: then it is one of that life.
   */
  #shownBy(node: SimulatedNode<never>): string | object {
    const { counts, positions, server } = this.#world
    const hasLost = ['fault: bus loses its last', 'fault: bus emptied'].some((fault) => counts.has(fault))
    const isReader = (node as unknown) !== server
    return isReader && hasLost && node.life !== null ? node.life : `${node.name} ${positions.era}`
  }

  /** The list stays as it was on the first page: each token is there once, but for those that are evicted meanwhile. */
  #readPage(): void {
    const world = this.#world
    if (this.#page?.isLost) this.#walk = null
    else if (this.#page !== null) return
    this.#walk ??= { cursor: '', version: 0, mints: [] }
    const walk = this.#walk
    const order = walk.cursor === '' ? `&sort=${this.#draws.of(['hot', 'market_cap', 'volume_1h'])}` : ''
    const query = `limit=${PAGE_ROWS}&cursor=${walk.cursor}${order}`
    this.#page = this.#list(query, ({ status, body }) => {
      this.#page = null
      // The server began anew, or the list is too old.
      if (status !== 200) {
        this.#walk = null
        return
      }
      const { nextCursor, total, version } = body.meta
      if (walk.cursor === '') walk.version = version
      walk.mints.push(...body.data.map(({ mint }: { mint: string }) => mint))
      check(
        world,
        'pages of a list are of one list',
        walk.version === version && new Set(walk.mints).size === walk.mints.length,
        () => `version ${version} after ${walk.version}; ${walk.mints.join()}`,
      )
      walk.cursor = nextCursor ?? ''
      if (nextCursor !== null) return
      this.#walk = null
      check(
        world,
        'the pages of a list have all its rows',
        walk.mints.length === total || this.#cast.hasEvictions,
        () => `${walk.mints.length} of ${total}`,
      )
    })
  }

  #readList(): void {
    const world = this.#world
    const sentAt = new Map(this.#seqs)
    const query = `limit=5&sort=${this.#draws.of(['hot', 'volume_1h', 'last_trade'])}`
    this.#list(query, ({ status, headers }, shown) => {
      if (status !== 200) return
      const before = sentAt.get(shown) ?? 0
      const seq = Number(headers['x-list-version'])
      check(world, 'positions of lists never go back', seq >= before, () => `${seq} after ${before}`)
      this.#seqs.set(shown, Math.max(this.#seqs.get(shown) ?? 0, seq))
    })
  }

  #readAnalysis(): void {
    const world = this.#world
    const accepted = this.#agents.attempts.filter(({ fate }) => fate === 'accepted').slice(-10)
    if (accepted.length === 0) return
    const attempt = this.#draws.of(accepted)
    const path = `/api/v1/analysis/${attempt.analysisId}`
    world.server.send({ method: 'GET', path }, ({ status, body, sentMs, answeredMs, text }) => {
      if (status === 503 || (status === 404 && (world.hasDamagedLog || hasLeft(world, attempt.analysisId))))
        return
      check(world, 'an acknowledged analysis can be read', status === 200, () => `${path}: ${status} ${text}`)
      const stored = attempt.sendings.filter(({ code }) => code !== null || attempt.sendings.length === 1)
      const earliestMs = Math.min(...attempt.sendings.map((each) => each.sentMs))
      const latestMs = Math.max(...stored.map((each) => each.endedMs))
      const isShown = body.data.sentiment !== null
      if (isShown)
        check(
          world,
          'labels are never shown before their time',
          answeredMs - earliestMs >= LABELS_DELAY_MS - SLACK_MS || world.hadWrongClock,
          () => `number ${attempt.id}: shown ${answeredMs - earliestMs} ms after it was sent`,
        )
      else
        check(
          world,
          'labels are shown in time',
          sentMs - latestMs <= LABELS_DELAY_MS + SLACK_MS || world.hadWrongClock,
          () => `number ${attempt.id}: withheld ${sentMs - latestMs} ms after its answer`,
        )
    })
  }
}
