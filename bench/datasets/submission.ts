// The body of a submission for a token.
export const SUMMARY =
  'Volume rises while the ten largest wallets hold still; the curve is half way. '.repeat(2)

export const submissionOf = (mint: string) => ({
  mint,
  sentiment: 'bullish',
  score: 70,
  summary: SUMMARY,
  quant: {
    riskLevel: 'medium',
    riskFactors: ['bonding_curve_risk', 'whale_dominance'],
    buyPressure: 55,
    volatilityScore: 40,
    liquidityDepth: 'moderate',
    holderConcentration: 'moderate',
    trendDirection: 'up',
    volumeProfile: 'rising',
  },
})
