// A valid submission, a token to submit on, and checks of the error shape.
import { expect } from 'vitest'
import { ERRORS } from '../../src/schema/errors.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import type { Answer, Client } from './test-server.ts'

export const SUMMARY = 'Volume rises while the ten largest wallets hold still; the curve is half way.'

export const quant = {
  riskLevel: 'medium',
  riskFactors: ['bonding_curve_risk'],
  buyPressure: 55,
  volatilityScore: 40,
  liquidityDepth: 'moderate',
  holderConcentration: 'moderate',
  trendDirection: 'up',
  volumeProfile: 'rising',
}

/** The nine compared values of a token made by `seedToken`: round numbers, so that percentages are exact. */
export const VALUES = {
  priceUsd: 0.001,
  marketCap: 1_000_000,
  volume24h: 20_000,
  liquidity: 10_000,
  holderCount: 200,
  top10HolderPct: 20,
  buys24h: 100,
  sells24h: 100,
  bondingProgress: 40,
}

let counter = 0
export const newMint = (): string => mintOfSymbol(`submission ${process.pid} ${counter++}`)

/** Pushes a token whose DataPoint has `VALUES`. */
export async function seedToken(client: Client, nowMs: number, values: object = VALUES): Promise<string> {
  const mint = newMint()
  await client.push(
    { type: 'token', mint, ts: nowMs, name: 'Seed', symbol: 'SEED' },
    { type: 'patch', mint, ts: nowMs, fields: { ...values, has_mint_authority: false } },
  )
  return mint
}

export const submission = (mint: string, more: object = {}): Record<string, unknown> => ({
  mint,
  sentiment: 'bullish',
  score: 70,
  summary: SUMMARY,
  quant,
  ...more,
})

export const submit = (
  client: Client,
  key: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> => client.post('/api/v1/analysis/submit', body, key, headers)

/** Checks every member of the contract's error shape. */
export function expectProblem(answer: Answer, code: keyof typeof ERRORS, pointer?: string): void {
  expect(answer.body, answer.text).toMatchObject({ ok: false, code })
  expect(answer.status).toBe(ERRORS[code].status)
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  const { error, type, title, status, detail, instance, requestId, errors } = answer.body
  for (const text of [error, type, title, detail, instance, requestId]) expect(typeof text).toBe('string')
  expect(status).toBe(answer.status)
  expect(requestId).toBe(answer.headers.get('x-request-id'))
  if (pointer !== undefined)
    expect(errors.map((fault: { pointer: string }) => fault.pointer)).toContain(pointer)
}
