// A reader that knows no accounts: every key is refused.
import { SubmissionError } from '../../submissions/errors.ts'
import type { ReaderAccounts } from './types.ts'

export const noAccounts = (): ReaderAccounts => ({
  isReady: true,
  authenticate: () => {
    throw new SubmissionError('invalid_key', 'The API key is not known.')
  },
  name: (agentId) => agentId,
  until: () => Promise.resolve(),
  stop: () => Promise.resolve(),
})
