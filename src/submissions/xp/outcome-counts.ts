import type { RecoveredXp } from '../../schema/recovered.ts'
import type { Outcome, OutcomeCounts } from '../../schema/vocabulary.ts'

/** Durable submissions of each agent, by outcome. */
export class OutcomeTable {
  readonly #countsByAgent = new Map<string, OutcomeCounts>()

  constructor(recovered: RecoveredXp['outcomeCounts']) {
    for (const { agentId, ...counts } of recovered) this.#countsByAgent.set(agentId, counts)
  }

  counts(agentId: string): OutcomeCounts {
    return this.#countsByAgent.get(agentId) ?? { validated: 0, unvalidated: 0, rejected: 0 }
  }

  add(agentId: string, outcome: Outcome): void {
    const counts = this.counts(agentId)
    this.#countsByAgent.set(agentId, { ...counts, [outcome]: counts[outcome] + 1 })
  }
}
