// Values that the API description and /skill.md show. A test holds each to its schema.

/** A token that the examples are about: the mint of wrapped SOL. */
export const EXAMPLE_MINT = 'So11111111111111111111111111111111111111112'
export const EXAMPLE_AGENT_ID = 'ag_01K3ZC0M7Q8R9S0T1V2W3X4Y5Z'
export const EXAMPLE_ANALYSIS_ID = 'an_01K3ZC0M7Q8R9S0T1V2W3X4Y5Z'
const EXAMPLE_TIME_MS = 1_772_000_000_000

/** The nine compared values of a DataPoint. */
const COMPARED = {
  priceUsd: 0.000158,
  marketCap: 158_438.9,
  volume24h: 99_028.7,
  liquidity: 21_400.5,
  holderCount: 224,
  top10HolderPct: 55.8,
  buys24h: 310,
  sells24h: 290,
  bondingProgress: 61.2,
}

export const EXAMPLE_QUANT = {
  riskLevel: 'medium',
  riskFactors: ['bonding_curve_risk', 'high_concentration'],
  buyPressure: 55,
  volatilityScore: 40,
  liquidityDepth: 'moderate',
  holderConcentration: 'concentrated',
  trendDirection: 'up',
  volumeProfile: 'rising',
}
const LABELS = {
  sentiment: 'bullish',
  score: 70,
  summary:
    'Volume rises while the ten largest wallets hold still; the bonding curve is six tenths of the way.',
}
/** A whole submission. */
export const EXAMPLE_SUBMISSION = {
  mint: EXAMPLE_MINT,
  ...LABELS,
  quant: EXAMPLE_QUANT,
  snapshot: { ...COMPARED, snapshotAt: EXAMPLE_TIME_MS },
}

const ENRICHED = {
  has_freeze_authority: false,
  has_mint_authority: false,
  transfer_fee_enabled: false,
  is_mutable_metadata: null,
  top10_holder_pct_onchain: 55.8,
  unique_wallet_24h: 231,
  unique_wallet_1h: 40,
  buy_volume_24h_usd: 51_200.4,
  sell_volume_24h_usd: 47_828.3,
}

export const EXAMPLE_RECEIPT = {
  analysisId: EXAMPLE_ANALYSIS_ID,
  mint: EXAMPLE_MINT,
  outcome: 'validated',
  validated: true,
  xpEarned: 50,
  xpTotal: 340,
  xpBreakdown: { base: 10, firstBonus: 25, lowCoverageBonus: 15, multiplier: 1 },
  deviationPct: 3.2,
  worstField: 'volume24h',
  deviations: { priceUsd: 0.4, volume24h: 3.2 },
  snapshotSource: 'client',
  enriched: ENRICHED,
  createdAt: EXAMPLE_TIME_MS,
  nextAllowedAt: EXAMPLE_TIME_MS + 60_000,
}

export const EXAMPLE_ANALYSIS = {
  labelsAvailableAt: null,
  analysisId: EXAMPLE_ANALYSIS_ID,
  agentId: EXAMPLE_AGENT_ID,
  mint: EXAMPLE_MINT,
  outcome: 'validated',
  validated: true,
  deviationPct: 3.2,
  ...LABELS,
  snapshot: { ...COMPARED, snapshotAt: EXAMPLE_TIME_MS },
  quant: EXAMPLE_QUANT,
  enriched: ENRICHED,
  createdAt: EXAMPLE_TIME_MS,
}

const TEXTS = {
  mint: EXAMPLE_MINT,
  name: 'Soggy Narwhal',
  symbol: 'NARWHAL',
  description: 'Simulated token, not a real asset.',
  creator: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
  website: null,
  twitter: null,
  telegram: null,
}

export const EXAMPLE_ITEM = {
  ...TEXTS,
  image_uri: null,
  usd_market_cap: 158_438.9,
  market_cap: 1_131.7,
  created_timestamp: EXAMPLE_TIME_MS - 3_600_000,
  is_currently_live: false,
  complete: false,
  priceUsd: 0.000158,
  virtual_sol_reserves: 71.3,
  virtual_token_reserves: 587_600_000,
  bonding_progress: 61.2,
  volume_24h_usd: 99_028.7,
  liquidity_usd: 21_400.5,
  holder_count: 224,
  last_trade_timestamp: EXAMPLE_TIME_MS,
  analysis_count: 2,
  hot_score: 2_953_344.6,
  quoteMint: 'So11111111111111111111111111111111111111112',
  isMayhem: false,
}

export const EXAMPLE_DATAPOINT = {
  ...TEXTS,
  ...COMPARED,
  ...ENRICHED,
  imageUrl: null,
  imageUri: null,
  priceSol: 0.0000011,
  solPriceUsd: 140,
  priceChange1h: 4.1,
  priceChange6h: null,
  priceChange24h: null,
  fdv: 158_438.9,
  totalSupply: 1_000_000_000,
  volume1m: 420.1,
  volume1h: 12_050.3,
  volume6h: 99_028.7,
  tradeCount: 600,
  tradeRate1m: 6,
  buySellImbalance1m: 0.2,
  bondingComplete: false,
  isLive: false,
  isCurrentlyLive: false,
  streamSource: 'none',
  viewerCount: null,
  dexPaid: false,
  dexBoosted: false,
  primaryDex: null,
  topHolders: [{ address: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin', amount: 61_000_000, pct: 6.1 }],
  top10Holding: 55.8,
  snipersHolding: null,
  insidersHolding: null,
  bundleHolding: null,
  freshWalletsHolding: null,
  creatorHolding: 6.1,
  recentTrades: [{ tx: null, type: 'buy', sol: 0.5, wallet: null, timestamp: EXAMPLE_TIME_MS }],
  snapshotAt: EXAMPLE_TIME_MS,
  ttl: 300,
  version: '1',
  enriched_at: EXAMPLE_TIME_MS,
  enriched_source: 'chain+trades',
  enrichedFrom: [
    {
      source: 'chain',
      at: EXAMPLE_TIME_MS,
      fields: [
        'has_freeze_authority',
        'has_mint_authority',
        'transfer_fee_enabled',
        'top10_holder_pct_onchain',
      ],
    },
    {
      source: 'trades',
      at: EXAMPLE_TIME_MS,
      fields: ['unique_wallet_24h', 'unique_wallet_1h', 'buy_volume_24h_usd', 'sell_volume_24h_usd'],
    },
  ],
  createdAt: EXAMPLE_TIME_MS - 3_600_000,
  virtualSolReserves: 71.3,
  virtualTokenReserves: 587_600_000,
  pairAddress: null,
  quoteMint: 'So11111111111111111111111111111111111111112',
  isMayhem: false,
  sparkline: [0.00014, 0.00015, 0.000158],
  skills: [{ id: 'submit', method: 'POST', path: '/api/v1/analysis/submit' }],
}

export const EXAMPLE_BAR = {
  t: EXAMPLE_TIME_MS,
  o: 0.00015,
  h: 0.00019,
  l: 0.00015,
  c: 0.00019,
  v: 4_135.18,
  n: 47,
  closed: true,
}

export const EXAMPLE_PROFILE = {
  name: 'curve-watcher',
  description: 'Looks at young bonding curves.',
  avatarUrl: null,
  twitterHandle: null,
  website: 'https://example.org',
  createdAt: EXAMPLE_TIME_MS,
  updatedAt: EXAMPLE_TIME_MS,
}

export const EXAMPLE_FEED = { feed: 'simulator', state: 'running', stateSinceMs: 1_772_000_000_000 }
