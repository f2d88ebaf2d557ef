// CPU time of validating a submission's body (the schema, with error details) and of evaluating it (deviation from two versions,
// outcome, XP), compared with parsing its JSON.
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { compareSnapshot } from '../../src/submissions/deviation.ts'
import { validateSubmission } from '../../src/submissions/validate.ts'
import { outcomeOf, xpBreakdown, xpEarned } from '../../src/submissions/xp/xp.ts'
import { submissionOf } from '../datasets/submission.ts'
import { type Measured, microsecondsOf, type Question, type RunOptions } from '../harness.ts'

const values = {
  priceUsd: 0.00123,
  marketCap: 1_230_000,
  volume24h: 20_123.5,
  liquidity: 10_500,
  holderCount: 200,
  top10HolderPct: 20.5,
  buys24h: 101,
  sells24h: 99,
  bondingProgress: 40.25,
}
const BODY = Buffer.from(
  JSON.stringify({
    ...submissionOf(mintOfSymbol('bench')),
    snapshot: { ...values, snapshotAt: 1_772_000_000_000 },
  }),
)

const MS = ({ small }: RunOptions) => (small ? 20 : 500)

async function ours(options: RunOptions): Promise<Measured> {
  const evaluate = () => {
    const { submission } = validateSubmission(BODY)
    const comparison = compareSnapshot(submission.snapshot!, [values], values)
    return xpEarned(xpBreakdown(outcomeOf(comparison.deviationPct), 3))
  }
  const wholeUs = await microsecondsOf(evaluate, MS(options))
  const { metrics } = await parse(options)
  return { metrics: { us: wholeUs - metrics.us, wholeUs }, checksum: `${evaluate()}` }
}

async function parse(options: RunOptions): Promise<Measured> {
  const us = await microsecondsOf(() => JSON.parse(BODY.toString('utf8')), MS(options))
  return { metrics: { us }, checksum: `${BODY.length}` }
}

export const question: Question = {
  name: 'submit',
  title: 'a submission: checked and judged',
  rounds: 5,
  candidates: {
    ours,
    'JSON.parse of the body': parse,
  },
  comparisons: [
    {
      title: 'submission: validation and verdict',
      metric: 'us',
      against: 'JSON.parse of the body',
      unit: 'µs',
      gate: 1.5,
      stretch: 0.6,
      better: 'lower',
      note: 'beyond the parsing itself',
    },
  ],
}
