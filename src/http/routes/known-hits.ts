// What is known of the leaders' analyses, for a leaderboard that must answer whatever the lake does.
import { SingleFlight } from '../../lib/single-flight.ts'
import { unlessLate } from '../../lib/wait.ts'
import type { AgentHits } from '../../schema/api/agent-record.ts'
import { LEADERBOARD_LIMIT_MAX } from '../../schema/api/submissions.ts'
import type { SubmissionService } from '../../submissions/submission-service.ts'
import { AGENT_HITS_WAIT_MS, CALIBRATION_TTL_MS } from '../limits.ts'
import type { RouteParts } from './route-parts.ts'

type HorizonsByAgent = ReadonlyMap<string, AgentHits['horizons']>

/** Reads once in CALIBRATION_TTL_MS whether the agents with the most XP were right. */
export class KnownHits {
  readonly #reading: SingleFlight<HorizonsByAgent>
  #latest: HorizonsByAgent = new Map()

  /** @param deps read when they are used: a reader of a cluster, which passes such requests on, has none */
  constructor(
    deps: Pick<RouteParts, 'agentHits' | 'nowMs'> & {
      submissions: Pick<SubmissionService, 'agentLeaderboard'>
    },
  ) {
    const read = async (): Promise<HorizonsByAgent> => {
      const leaders = deps.submissions.agentLeaderboard(LEADERBOARD_LIMIT_MAX)
      const hits = leaders.length === 0 ? [] : await deps.agentHits(leaders.map(({ agentId }) => agentId))
      this.#latest = new Map(hits.map(({ agentId, horizons }) => [agentId, horizons]))
      return this.#latest
    }
    this.#reading = new SingleFlight(read, CALIBRATION_TTL_MS, () => deps.nowMs())
  }

  /** Never rejects, and waits at most AGENT_HITS_WAIT_MS: then it is what was known before, at first nothing. */
  get(): Promise<HorizonsByAgent> {
    const known = () => this.#latest
    return unlessLate(AGENT_HITS_WAIT_MS, this.#reading.get(), known).catch(known)
  }
}
