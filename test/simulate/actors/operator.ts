// The operator: bans, awards, new keys. What was acknowledged has to hold from then on.

import type { Draws } from '../machine/machine.ts'
import type { Answer } from '../server.ts'
import { operatorsPost } from '../settings.ts'
import { drawsFor, note, type World } from '../world.ts'
import type { Agent, Agents } from './agents.ts'

const AWARD_XP = 5

export interface Award {
  agentId: string
  xp: number
  /** Unique: the ledger has it as the note. */
  note: string
  state: 'acknowledged' | 'unknown' | 'refused'
}

export class Operator {
  readonly awards: Award[] = []
  readonly #world: World
  readonly #agents: Agents
  readonly #draws: Draws

  constructor(world: World, agents: Agents) {
    this.#world = world
    this.#agents = agents
    this.#draws = drawsFor(world, 'operator')
  }

  act(): void {
    const draws = this.#draws
    const { ready } = this.#agents
    if (ready.length === 0) return
    const agent = draws.of(ready)
    const act = draws.weighted({ award: 4, ban: 1, unban: 2, rotate: 1 })
    if (act === 'award') this.#award(agent)
    else if (act === 'rotate') this.#rotate(agent)
    // What strikes have banned is not lifted, so that both can be told apart.
    else if (agent.character !== 'cheating') this.#ban(agent, act === 'ban')
  }

  #award(agent: Agent): void {
    const award: Award = {
      ...{ agentId: agent.agentId!, xp: AWARD_XP, note: `award ${this.awards.length}`, state: 'unknown' },
    }
    this.awards.push(award)
    const body = { agentId: award.agentId, kind: 'chat', times: 1, note: award.note }
    this.#ask('/api/v1/admin/xp', body, ({ status, body: answer }) => {
      if (status === 200) award.state = 'acknowledged'
      else if (answer?.mayBeStored !== true && status !== 500) award.state = 'refused'
    })
  }

  #ban(agent: Agent, isBan: boolean): void {
    const before = agent.ban
    agent.ban = 'unknown'
    const path = `/api/v1/admin/${isBan ? 'ban' : 'unban'}`
    this.#ask(path, { agentId: agent.agentId, reason: 'simulated' }, ({ status, body, answeredMs }) => {
      note(this.#world, isBan ? 'ban' : 'unban', agent.name, status)
      if (status === 200) {
        agent.ban = isBan ? 'banned' : 'none'
        agent.banSinceMs = answeredMs
      } else if (body?.mayBeStored !== true && before === 'none' && isBan) agent.ban = 'none'
    })
  }

  #rotate(agent: Agent): void {
    const { rotation } = agent
    // Of two at once the later one ends the key of the earlier one, which nobody has used; one that was lost may still come later.
    if (rotation !== null && rotation.answer === null && !rotation.isLost) return
    const mayEndTheNewOne = rotation?.isLost === true
    const request = { method: 'POST', path: '/api/v1/keys/rotate', key: agent.key! } as const
    agent.mayHaveOldKey = true
    agent.rotation = this.#world.server.send(request, ({ status, body }) => {
      if (status === 201 || status === 200) {
        agent.key = body.data.key
        agent.mayHaveOldKey = mayEndTheNewOne
      }
      note(this.#world, 'rotated', agent.name, status)
    })
  }

  #ask(path: string, body: object, onAnswer: (answer: Answer) => void): void {
    this.#world.server.send(operatorsPost(path, body), onAnswer)
  }
}
