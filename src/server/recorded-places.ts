// Which trades of the chain are recorded already, so that a feed does not bring one again after a restart.
import type { StartFolders } from '../checkpoint/find-base.ts'
import type { RecordedPlace } from '../ingest/types.ts'
import { readJournal } from '../journal/reader.ts'

/**
 * The trades of a feed in the journal that say where they stand on the chain, oldest first.
 * @param within the last event that a start has found there, and one before, behind which they are wanted
 */
export async function readRecordedPlaces(
  feed: string,
  { journalFolder, folderId }: StartFolders,
  within: { afterEventNo: number; throughEventNo: number },
): Promise<RecordedPlace[]> {
  const { afterEventNo, throughEventNo } = within
  const places: RecordedPlace[] = []
  // What is damaged was told when the market was restored.
  for await (const { trades } of readJournal(journalFolder, afterEventNo, { folderId, throughEventNo })) {
    const { quotes } = trades
    if (quotes === null) continue
    for (let at = 0; at < trades.count; at++) {
      const [tx, eventIndex] = [trades.tx[at], quotes.eventIndex[at]]
      const [slot = Number.NaN, ts = Number.NaN] = [quotes.slot[at], trades.tsMs[at]]
      if (trades.feed[at] === feed && tx != null && eventIndex !== undefined && !Number.isNaN(eventIndex))
        places.push({
          tx,
          eventIndex,
          slot: Number.isNaN(slot) ? null : slot,
          ts,
          // Only a curve has a number of tokens that it still sells.
          isCurve: !Number.isNaN(quotes.curveTokens[at]),
        })
    }
  }
  return places
}
