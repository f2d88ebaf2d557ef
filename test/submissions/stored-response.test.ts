import { expect, it } from 'vitest'
import { ENRICHED_FIELDS } from '../../src/schema/datapoint.ts'
import { SubmissionError } from '../../src/submissions/errors.ts'
import { decodeResponse, encodeResponse } from '../../src/submissions/rate-limits/stored-response.ts'

const quota = { limit: 10, remaining: 9, windowMs: 60_000, resetMs: 60_000, resetAtMs: 1_795_000_060_000 }

const receipt = {
  analysisId: 'an_01M7Y1VW000000000000000000',
  mint: 'mint',
  outcome: 'validated' as const,
  validated: true,
  xpEarned: 50,
  xpTotal: 50,
  xpBreakdown: { base: 10, firstBonus: 25, lowCoverageBonus: 15, multiplier: 1 },
  deviationPct: 0,
  worstField: null,
  deviations: {},
  snapshotSource: 'server' as const,
  enriched: Object.fromEntries(ENRICHED_FIELDS.map((field) => [field, null])) as never,
  createdAt: 1_795_000_000_000,
  nextAllowedAt: 1_795_000_060_000,
}

it('a stored receipt keeps the format of earlier versions, and is read back as it was', () => {
  const json = encodeResponse(receipt)
  expect(JSON.parse(json)).toEqual({ body: { ok: true, ...receipt } })
  expect(decodeResponse(json, quota, receipt.createdAt)).toEqual(receipt)
})

it('a stored error keeps the format of earlier versions, and is read back as a replay', () => {
  const details = { mint: 'mint', outcome: 'rejected' as const, strikes: 1 }
  const json = encodeResponse(
    new SubmissionError('snapshot_rejected', 'The snapshot deviates.', details, { retryAfterMs: 5 }),
  )
  expect(JSON.parse(json)).toEqual({
    code: 'snapshot_rejected',
    sentence: 'The snapshot deviates.',
    extra: details,
  })
  const error = decodeResponse(json, quota, receipt.createdAt)
  expect(error).toBeInstanceOf(SubmissionError)
  expect(error).toMatchObject({
    code: 'snapshot_rejected',
    message: 'The snapshot deviates.',
    details,
    quota,
    isReplay: true,
    retryAfterMs: null,
  })
})
