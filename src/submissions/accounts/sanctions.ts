import { HOUR_MS } from '../../lib/time.ts'
import {
  STRIKE_WINDOW_MS,
  STRIKES_MAX,
  SUSPENSION_MS,
  SUSPENSION_WINDOW_MS,
  SUSPENSIONS_MAX,
} from '../limits.ts'

export interface StrikeRules {
  /** The strike within `strikeWindowMs` that suspends. 0: no strike does. */
  strikesMax: number
  strikeWindowMs: number
  suspensionMs: number
  /** The suspension within `suspensionWindowMs` that bans for good. 0: none does. */
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

/**
 * The sanction of a rejection.
 * @param strikes the agent's strikes within the window, this one included
 * @param suspendedAtMs its earlier suspensions, on the same clock as `nowMs`
 */
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

/** The warning in the answer to a rejection. Clients look for the word “ban”, so every form has it. */
export function warningFor(strikes: number, sanction: Sanction, rules: StrikeRules): string {
  const reason = 'The snapshot deviates from the DataPoint by more than 50%.'
  if (sanction.kind === 'ban') return `${reason} This agent is banned for good.`
  if (sanction.kind === 'suspension') {
    const outlook = rules.suspensionsMax > 0 ? ' Further suspensions end in a ban for good.' : ''
    return `${reason} This agent is banned from submitting for ${sanction.lengthMs / HOUR_MS} hours.${outlook}`
  }
  if (rules.strikesMax === 0) return `${reason} Fabricated data may lead to a ban.`
  const [windowHours, banHours] = [rules.strikeWindowMs / HOUR_MS, rules.suspensionMs / HOUR_MS]
  return `${reason} Strike ${strikes} of ${rules.strikesMax} within ${windowHours} hours: strike ${rules.strikesMax} brings a ban of ${banHours} hours.`
}
