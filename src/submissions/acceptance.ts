import type { Instant } from '../lib/clock.ts'
import { XP_MULTIPLIERS } from '../schema/xp.ts'
import type { Decision } from './decision.ts'
import { type Evaluation, trainingRow } from './rows.ts'
import type { Receipt } from './types.ts'
import type { WriteAward } from './xp/ledger.ts'
import type { Scoreboard } from './xp/scoreboard.ts'
import { xpBreakdown, xpEarned } from './xp/xp.ts'

const { validated, unvalidated } = XP_MULTIPLIERS
const UNVALIDATED_WARNING =
  `The snapshot deviates from the DataPoint by more than ${validated.deviationPctMax}%: half the XP. ` +
  `Above ${unvalidated.deviationPctMax}% a submission is rejected and may lead to a ban.`

/** What an accepted submission gets. Reserves nothing. */
export function acceptedReceipt(
  evaluation: Evaluation,
  scoreboard: Scoreboard,
  nextAllowedAt: number,
): Receipt {
  const { analysisId, agentId, submission, outcome, submittedAtMs } = evaluation
  const { mint } = submission
  const breakdown = xpBreakdown(outcome, scoreboard.countWithPending(mint))
  const xp = xpEarned(breakdown)
  const { deviationPct, worstField, deviations } = evaluation.deviation
  const { enriched_at: _, enriched_source: __, ...enriched } = evaluation.enriched
  return {
    analysisId,
    mint,
    outcome,
    validated: outcome === 'validated',
    xpEarned: xp,
    xpTotal: scoreboard.xpWithPending(agentId) + xp,
    xpBreakdown: breakdown,
    deviationPct,
    worstField,
    deviations,
    snapshotSource: submission.snapshot ? 'client' : 'server',
    enriched,
    ...(outcome === 'unvalidated' && { warning: UNVALIDATED_WARNING }),
    ...(evaluation.ignored.length > 0 && { ignored: evaluation.ignored }),
    createdAt: submittedAtMs,
    nextAllowedAt,
  }
}

/** An accepted submission: it earns XP, and counts at once for the bonuses of those that follow. */
export function accept(
  evaluation: Evaluation,
  now: Instant,
  scoreboard: Scoreboard,
  writeAward: WriteAward,
  cooldownMs: number,
): Decision {
  const { analysisId, agentId, submission, submittedAtMs: awardedAtMs } = evaluation
  const result = acceptedReceipt(evaluation, scoreboard, now.wallMs + cooldownMs)
  const { xpEarned: xp } = result
  const analysis = { agentId, mint: submission.mint, xp }
  scoreboard.begin(analysis)
  const award = writeAward({ agentId, awardedAtMs, kind: 'analysis', xp, analysisId, note: null })
  return {
    writes: [{ table: 'training', row: trainingRow(evaluation) }, award],
    result,
    confirm: () => scoreboard.confirm(analysis),
    cancel: () => scoreboard.cancel(analysis),
  }
}
