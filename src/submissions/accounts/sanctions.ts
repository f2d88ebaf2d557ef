import { HOUR_MS } from '../../lib/time.ts'
import { XP_MULTIPLIERS } from '../../schema/xp.ts'
import { STRIKE_WINDOW_MS, SUSPENSION_MS, SUSPENSION_WINDOW_MS, type SubmitLimits } from '../limits.ts'

/** The strike that suspends, and the suspension that bans for good; 0: none does. */
export type StrikeLimits = Pick<SubmitLimits, 'strikes' | 'suspensions'>

/** A suspension lasts for SUSPENSION_MS, a ban for good. */
export type Sanction = 'warning' | 'suspension' | 'ban'

/**
 * The sanction of a rejection.
 * @param strikes the agent's strikes within the window, this one included
 * @param suspendedAtMs its earlier suspensions, on the same clock as `nowMs`
 */
export function sanctionFor(
  strikes: number,
  suspendedAtMs: readonly number[],
  nowMs: number,
  limits: StrikeLimits,
): Sanction {
  if (limits.strikes === 0 || strikes < limits.strikes) return 'warning'
  const suspensions = 1 + suspendedAtMs.filter((atMs) => atMs > nowMs - SUSPENSION_WINDOW_MS).length
  if (limits.suspensions > 0 && suspensions >= limits.suspensions) return 'ban'
  return 'suspension'
}

/** The warning in the answer to a rejection. Clients look for the word “ban”, so every form has it. */
export function warningFor(strikes: number, sanction: Sanction, limits: StrikeLimits): string {
  const reason = `The snapshot deviates from the DataPoint by more than ${XP_MULTIPLIERS.unvalidated.deviationPctMax}%.`
  if (sanction === 'ban') return `${reason} This agent is banned for good.`
  const [windowHours, banHours] = [STRIKE_WINDOW_MS / HOUR_MS, SUSPENSION_MS / HOUR_MS]
  if (sanction === 'suspension') {
    const outlook = limits.suspensions > 0 ? ' Further suspensions end in a ban for good.' : ''
    return `${reason} This agent is banned from submitting for ${banHours} hours.${outlook}`
  }
  if (limits.strikes === 0) return `${reason} Fabricated data may lead to a ban.`
  return `${reason} Strike ${strikes} of ${limits.strikes} within ${windowHours} hours: strike ${limits.strikes} brings a ban of ${banHours} hours.`
}
