// What the writer of the log may be doing, and what may happen meanwhile. There is an open segment while it is `writing`, and only then.
import type { StateTable } from '../../lib/states.ts'

export type WriterState =
  /** The next group begins a segment. */
  | 'idle'
  | 'writing'
  /** Groups are in doubt until the header of the next segment, which voids them, is durable. */
  | 'inDoubt'
  /** The previous process left a segment unsealed, which has to be rewritten. */
  | 'unsealed'
  | 'closed'

export type WriterEvent =
  /** A group is durable. */
  | 'stored'
  /** The disk has refused a group, and nothing of it remains. */
  | 'refused'
  /** Nobody can tell whether a group is on the disk. */
  | 'failed'
  /** The open segment is complete. */
  | 'sealed'
  /** What was in doubt is void, or the unsealed segment is rewritten. */
  | 'recovered'
  /** The unsealed segment was removed or set aside. */
  | 'dropped'
  | 'closed'

const NEVER = { stored: null, refused: null, failed: null, sealed: null, recovered: null, dropped: null }

export const WRITER_STATES: StateTable<WriterState, WriterEvent> = {
  idle: { ...NEVER, stored: 'writing', refused: 'idle', failed: 'inDoubt', closed: 'closed' },
  writing: {
    ...NEVER,
    stored: 'writing',
    refused: 'idle',
    failed: 'inDoubt',
    sealed: 'idle',
    closed: 'closed',
  },
  inDoubt: { ...NEVER, recovered: 'writing', closed: 'closed' },
  unsealed: { ...NEVER, recovered: 'idle', dropped: 'idle', closed: 'closed' },
  closed: { ...NEVER, closed: 'closed' },
}
