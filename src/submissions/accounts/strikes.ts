// In: how many of an agent's submissions were rejected and when it was suspended, on the monotonic clock. Out: what one
// more rejection does, and the warning that stands in its answer. Never reads a clock and never keeps anything.
import { HOUR_MS } from '../../lib/time.ts'
import {
  STRIKE_WINDOW_MS,
  STRIKES_MAX,
  SUSPENSION_MS,
  SUSPENSION_WINDOW_MS,
  SUSPENSIONS_MAX,
} from '../limits.ts'

export interface StrikeRules {
  /** The rejection within 24 h that suspends; 0 switches the automatic ban off. */
  strikesMax: number
  strikeWindowMs: number
  suspensionMs: number
  /** The suspension within 30 days that bans for good; 0 never does. */
  suspensionsMax: number
  suspensionWindowMs: number
}

export const STRIKE_RULES: StrikeRules = {
  strikesMax: STRIKES_MAX,
  strikeWindowMs: STRIKE_WINDOW_MS,
  suspensionMs: SUSPENSION_MS,
  suspensionsMax: SUSPENSIONS_MAX,
  suspensionWindowMs: SUSPENSION_WINDOW_MS,
}

export type Sanction =
  | { kind: 'warning' }
  | { kind: 'suspension'; lengthMs: number }
  /** For good. */
  | { kind: 'ban' }

/** What the rejection that makes the `strikes`-th strike brings. `suspendedAtMs` holds earlier suspensions. */
export function sanctionFor(
  strikes: number,
  suspendedAtMs: readonly number[],
  nowMs: number,
  rules: StrikeRules,
): Sanction {
  if (rules.strikesMax === 0 || strikes < rules.strikesMax) return { kind: 'warning' }
  const suspensions = 1 + suspendedAtMs.filter((atMs) => atMs > nowMs - rules.suspensionWindowMs).length
  if (rules.suspensionsMax > 0 && suspensions >= rules.suspensionsMax) return { kind: 'ban' }
  return { kind: 'suspension', lengthMs: rules.suspensionMs }
}

/** The ban warning that stands in the answer to a rejection: each of its forms has the word “ban”. */
export function warningFor(strikes: number, sanction: Sanction, rules: StrikeRules): string {
  const ground = 'The snapshot deviates from the DataPoint by more than 50%.'
  if (sanction.kind === 'ban') return `${ground} This agent is banned for good.`
  if (sanction.kind === 'suspension') {
    const again = rules.suspensionsMax > 0 ? ' Further suspensions end in a ban for good.' : ''
    return `${ground} This agent is banned from submitting for ${sanction.lengthMs / HOUR_MS} hours.${again}`
  }
  if (rules.strikesMax === 0) return `${ground} Fabricated data may lead to a ban.`
  return `${ground} Strike ${strikes} of ${rules.strikesMax} within ${rules.strikeWindowMs / HOUR_MS} hours: the last one brings a ban of ${rules.suspensionMs / HOUR_MS} hours.`
}
