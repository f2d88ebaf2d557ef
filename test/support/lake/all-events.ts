// Recorded events of a lake, as tests read them: all that there are.
import type { RecordedEvent } from '../../../src/journal/event-batch.ts'
import type { NumberRange } from '../../../src/lib/segments/types.ts'
import { withLakeReader } from '../../../src/store/query/lake-reader.ts'
import { type RecordedSpan, readRecordedEvents, readSpan } from '../../../src/store/query/recorded-events.ts'

/** The numbers of the recorded events of a lake; null: it has none. */
export const spanOf = (dataDir: string): Promise<RecordedSpan | null> =>
  withLakeReader({ dataDir }, ({ connection }) => readSpan(connection))

/** For `lost`: any numbers may be missing. */
export const ANY: readonly NumberRange[] = [{ from: 0, to: Number.POSITIVE_INFINITY }]

/** The events in their order, in batches. @param lost as of `readRecordedEvents` */
export async function* allEvents(
  dataDir: string,
  lost: readonly NumberRange[] = [],
): AsyncGenerator<RecordedEvent[], void> {
  const span = await spanOf(dataDir)
  if (span !== null) yield* readRecordedEvents(dataDir, span, lost)
}
