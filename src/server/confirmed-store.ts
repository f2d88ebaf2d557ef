// A store whose commits are acknowledged only while no other process can have taken over.
import type { SubmissionStore } from '../submissions/types.ts'
import type { MarketPublisher } from './market-publisher.ts'

export const confirmedStore = (
  store: SubmissionStore,
  publisher: Pick<MarketPublisher, 'mayCommit' | 'mayAcknowledge'>,
): SubmissionStore => ({
  commit: async (writes) => {
    await publisher.mayCommit()
    await store.commit(writes)
    await publisher.mayAcknowledge()
  },
  analysis: (analysisId) => store.analysis(analysisId),
  submissions: (query) => store.submissions(query),
})
