// Rows for the log, and a clock that shows a given time.
import type { Clock } from '../../../src/lib/clock.ts'
import type { EncodedRow } from '../../../src/store/log/types.ts'

export const rowOf = (id: string): EncodedRow => ({
  table: 'training',
  json: JSON.stringify({ analysis_id: id, summary: 'é\n'.repeat(id.length % 7) }),
})

export const clockAt = (now: () => number): Clock => ({ now, monotonicMs: () => performance.now() })
