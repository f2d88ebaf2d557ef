// Which bars of a chart lie in gaps.
import type { ToldGap } from '../../../schema/event.ts'
import { touches } from '../../gaps.ts'

/** From the first index that a gap touches to the last one, both included, by the index of the bars drawn. */
export interface MarkedSpan {
  first: number
  last: number
  /** The gap goes on: everything to the right edge may be incomplete. */
  isOpen: boolean
}

/** Where gaps lie among bars that begin at `timesMs`, ascending, and are `barMs` long. A gap that no bar touches lies between two of them. */
export function markedSpans(
  timesMs: readonly number[],
  barMs: number,
  gaps: readonly ToldGap[],
): MarkedSpan[] {
  const [firstMs, lastMs] = [timesMs[0], timesMs.at(-1)]
  if (firstMs === undefined || lastMs === undefined) return []
  return gaps.flatMap((gap) => {
    const isOpen = gap.to === null
    if (!touches(gap, firstMs, isOpen ? Number.POSITIVE_INFINITY : lastMs + barMs)) return []
    const after = timesMs.findIndex((t) => t + barMs > gap.from)
    const first = after === -1 ? timesMs.length : after
    const last = isOpen ? timesMs.length - 1 : timesMs.findLastIndex((t) => t <= (gap.to ?? 0))
    return [{ first, last, isOpen }]
  })
}
