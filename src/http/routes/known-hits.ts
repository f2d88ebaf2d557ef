// What is known of the leaders' analyses, for a leaderboard that must answer whatever the lake does.
import { setTimeout as delay } from 'node:timers/promises'
import { SingleFlight } from '../../lib/single-flight.ts'
import type { AgentHits } from '../../schema/api/agent-record.ts'
import type { Submissions } from '../../submissions/types.ts'
import { AGENT_HITS_WAIT_MS, CALIBRATION_TTL_MS, LEADERBOARD_LIMIT_MAX } from '../limits.ts'

type HorizonsByAgent = ReadonlyMap<string, AgentHits['horizons']>

export interface HitsDeps {
  agentHits(agentIds: readonly string[]): Promise<AgentHits[]>
  nowMs(): number
  submissions: Pick<Submissions, 'agentLeaderboard'>
}

/** Reads once in CALIBRATION_TTL_MS whether the agents with the most XP were right. */
export class KnownHits {
  readonly #reading: SingleFlight<HorizonsByAgent>
  #latest: HorizonsByAgent = new Map()

  constructor({ agentHits, nowMs, submissions }: HitsDeps) {
    const read = async (): Promise<HorizonsByAgent> => {
      const leaders = submissions.agentLeaderboard(LEADERBOARD_LIMIT_MAX)
      const hits = leaders.length === 0 ? [] : await agentHits(leaders.map(({ agentId }) => agentId))
      this.#latest = new Map(hits.map(({ agentId, horizons }) => [agentId, horizons]))
      return this.#latest
    }
    this.#reading = new SingleFlight(read, CALIBRATION_TTL_MS, () => nowMs())
  }

  /** Never rejects, and waits at most AGENT_HITS_WAIT_MS: then it is what was known before, at first nothing. */
  async get(): Promise<HorizonsByAgent> {
    const wait = new AbortController()
    const tooLong = delay(AGENT_HITS_WAIT_MS, undefined, { signal: wait.signal, ref: false })
    try {
      return await Promise.race([this.#reading.get(), tooLong.then(() => this.#latest)])
    } catch {
      return this.#latest
    } finally {
      wait.abort()
      tooLong.catch(() => {})
    }
  }
}
