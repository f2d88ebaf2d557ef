import { type Clock, readClock } from '../lib/clock.ts'
import type { ListedRow, SubmissionQuery } from '../schema/api/submission-list.ts'
import { isAnalysisId } from '../schema/submission.ts'
import { listedAnalysis, publicAnalysis } from './public-analysis.ts'
import type { AnalysisPage, Caller, SubmissionStore } from './types.ts'
import type { WithheldLabels } from './xp/withheld-labels.ts'

/** Reads stored submissions and shows each reader what it may see of them. */
export class AnalysisReader {
  readonly #store: SubmissionStore
  readonly #labels: WithheldLabels
  readonly #clock: Clock

  constructor(store: SubmissionStore, labels: WithheldLabels, clock: Clock) {
    this.#store = store
    this.#labels = labels
    this.#clock = clock
  }

  /** Null: there is none of that id. */
  async analysis(analysisId: string, reader: Caller | null): Promise<Record<string, unknown> | null> {
    // Other texts are no identities of submissions: the store need not look for them.
    if (!isAnalysisId(analysisId)) return null
    const row = await this.#store.analysis(analysisId)
    return row === null ? null : publicAnalysis(row, this.#labelsAvailableAt(row, reader))
  }

  async analyses(query: SubmissionQuery, reader: Caller | null): Promise<AnalysisPage> {
    const { submissions, next, searchedToMs } = await this.#store.submissions(query)
    const analyses = submissions.map((listed) =>
      listedAnalysis(listed, this.#labelsAvailableAt(listed.row, reader)),
    )
    return { analyses, next, searchedToMs }
  }

  /** When the reader may see the labels of a submission, Unix ms; null: now. Agents always see their own. */
  #labelsAvailableAt(row: ListedRow, reader: Caller | null): number | null {
    if (reader?.agent.agentId === row.agent_id) return null
    const receivedAtMs = row.received_at ?? row.known_at
    return this.#labels.availableAtMs(row.analysis_id, receivedAtMs, readClock(this.#clock))
  }
}
