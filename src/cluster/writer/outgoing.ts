// Makes the messages of a turn: one for each batch, several where it is large, and one without events where there are none.
import type { WrittenBatch } from '../../journal/types.ts'
import type { RunToPublish } from '../../server/market-publisher.ts'
import { PART_BYTES } from '../limits.ts'
import { encodeMessage, PROTOCOL } from '../messages.ts'
import type { MarketTimes } from './market-times.ts'
import type { ToldSubmissions, WaitingSubmission } from './told-submissions.ts'

/** Which run publishes. */
export interface PublishedRun
  extends Pick<RunToPublish, 'simulated' | 'runId' | 'runEventNo' | 'lostEvents'> {
  /** Identity of the data folder. */
  folderId: string
}

export interface OutgoingMessage {
  bytes: Uint8Array
  /** The last event that readers have after it; that before its batch for all but the last part of one. */
  throughEventNo: number
  submissions: readonly WaitingSubmission[]
}

/**
 * @param publishedEventNo the last event that is on the bus
 * @param ended whether this is the last message of the run; there are no batches then
 */
export function makeMessages(
  run: PublishedRun,
  batches: readonly WrittenBatch[],
  publishedEventNo: number,
  times: MarketTimes,
  told: ToldSubmissions,
  ended: boolean,
): OutgoingMessage[] {
  const none = { firstEventNo: publishedEventNo + 1, lastEventNo: publishedEventNo, frame: null }
  return (batches.length === 0 ? [none] : batches).flatMap(({ firstEventNo, lastEventNo, frame }) => {
    const timeMs = times.at(lastEventNo)
    const parts = Math.max(1, Math.ceil((frame?.length ?? 0) / PART_BYTES))
    return Array.from({ length: parts }, (_, part) => {
      const isLast = part === parts - 1
      const submissions = isLast ? told.take(lastEventNo) : []
      const bytes = encodeMessage({
        protocol: PROTOCOL,
        ...run,
        firstEventNo,
        lastEventNo,
        part,
        parts,
        timeMs,
        frame: frame?.subarray(part * PART_BYTES, (part + 1) * PART_BYTES) ?? null,
        submissions: submissions.map(({ submission }) => submission),
        ended,
      })
      return { bytes, throughEventNo: isLast ? lastEventNo : firstEventNo - 1, submissions }
    })
  })
}
