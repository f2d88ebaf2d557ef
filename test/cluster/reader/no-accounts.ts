// A reader that knows no accounts: every key is refused.

import type { ReaderAccounts } from '../../../src/cluster/reader/types.ts'
import { SubmissionError } from '../../../src/submissions/errors.ts'

export const noAccounts = (): ReaderAccounts => ({
  isReady: true,
  authenticate: () => {
    throw new SubmissionError('invalid_key', 'The API key is not known.')
  },
  name: (agentId) => agentId,
  until: () => Promise.resolve(),
  stop: () => Promise.resolve(),
})
