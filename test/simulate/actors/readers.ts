// Clients that read what anybody may: lists, whose positions never go back, and analyses of others, whose labels are withheld.

import type { Draws } from '../machine/machine.ts'
import { LABELS_DELAY_MS } from '../settings.ts'
import { check, drawsFor, type World } from '../world.ts'
import type { Agents } from './agents.ts'

const SLACK_MS = 50

export class Readers {
  readonly #world: World
  readonly #draws: Draws
  readonly #agents: Agents
  /** The highest position that an answer had. */
  #seq = 0

  constructor(world: World, agents: Agents) {
    this.#world = world
    this.#draws = drawsFor(world, 'readers')
    this.#agents = agents
  }

  act(): void {
    if (this.#draws.chance(0.5)) this.#readList()
    else this.#readAnalysis()
  }

  #readList(): void {
    const world = this.#world
    const before = this.#seq
    const query = `limit=5&sort=${this.#draws.of(['hot', 'volume_1h', 'last_trade'])}`
    world.server.send({ method: 'GET', path: '/api/v1/market', query }, ({ status, headers }) => {
      if (status !== 200) return
      const seq = Number(headers['x-list-version'])
      check(world, 'positions of lists never go back', seq >= before, () => `${seq} after ${before}`)
      this.#seq = Math.max(this.#seq, seq)
    })
  }

  #readAnalysis(): void {
    const world = this.#world
    const accepted = this.#agents.attempts.filter(({ fate }) => fate === 'accepted').slice(-10)
    if (accepted.length === 0) return
    const attempt = this.#draws.of(accepted)
    const path = `/api/v1/analysis/${attempt.analysisId}`
    world.server.send({ method: 'GET', path }, ({ status, body, sentMs, answeredMs, text }) => {
      if (status === 503) return
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
