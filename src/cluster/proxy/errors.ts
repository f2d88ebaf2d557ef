import { tryAgain } from '../../http/response/rate-limit-headers.ts'
import type { ServiceError } from '../../schema/errors.ts'
import { RETRY_AFTER_MS } from './limits.ts'

/** All but `foreign` and `late`: the other node has certainly carried nothing out. */
type Reason = 'nobody' | 'disconnected' | 'denied' | 'silent' | 'unreachable' | 'foreign' | 'late'
const SENTENCES: Readonly<Record<Reason, string>> = {
  nobody: 'no process answers to that name on the bus',
  disconnected: 'there is no connection to the bus',
  denied: 'the bus does not take messages to that name from this process',
  silent: 'who answers to that name on the bus did not say so in time',
  unreachable: 'the other node cannot be reached',
  foreign: 'what answers there is no node of this cluster',
  late: 'there was no answer',
}

/** Another node has given no answer. */
export class UnansweredError extends Error {
  readonly reason: Reason

  constructor(reason: Reason, sentence = '', cause?: unknown) {
    super(sentence || SENTENCES[reason], { cause })
    this.reason = reason
  }

  /** Whether the other node may have carried the request out. */
  get mayHaveArrived(): boolean {
    return this.reason === 'late' || this.reason === 'foreign'
  }
}

/** @param mayBeStored whether the request may have been carried out */
export const unavailable = (mayBeStored: boolean, sentence?: string): ServiceError =>
  tryAgain(
    'store_unavailable',
    sentence ??
      (mayBeStored
        ? 'The writer of this cluster has not answered: the request may have been carried out.'
        : 'The writer of this cluster cannot be reached; try again.'),
    RETRY_AFTER_MS,
    mayBeStored ? { mayBeStored } : {},
  )
