// All enumerations of the API, and how much of them a submission may have. Browsers get this file.

export const SENTIMENTS = ['bullish', 'bearish', 'neutral'] as const
export const RISK_LEVELS = ['critical', 'high', 'medium', 'low'] as const
export const LIQUIDITY_DEPTHS = ['deep', 'moderate', 'shallow', 'dry'] as const
export const HOLDER_CONCENTRATIONS = ['distributed', 'moderate', 'concentrated', 'whale_dominated'] as const
export const TREND_DIRECTIONS = ['up', 'down', 'sideways', 'reversal'] as const
export const VOLUME_PROFILES = ['surging', 'rising', 'stable', 'declining', 'dead'] as const

/** The 35 risk factors of the specification (2.4). */
export const RISK_FACTORS = [
  'whale_dominance',
  'creator_holds_majority',
  'low_liquidity',
  'no_liquidity_lock',
  'high_concentration',
  'rug_pattern',
  'honeypot_risk',
  'wash_trading',
  'bonding_curve_risk',
  'rapid_sell_off',
  'no_social_presence',
  'fake_volume',
  'supply_manipulation',
  'dev_wallet_active',
  'copy_token',
  'no_website',
  'new_deployer',
  'single_holder_majority',
  'declining_holders',
  'dead_volume',
  'healthy_distribution',
  'strong_community',
  'organic_volume',
  'locked_liquidity',
  'verified_socials',
  'active_development',
  'growing_holders',
  'smart_money_inflow',
  'freeze_authority',
  'mint_authority',
  'transfer_fee',
  'mutable_metadata',
  'smart_money_outflow',
  'low_unique_wallets',
  'high_unique_wallet_growth',
] as const

export const RISK_FACTORS_MIN = 1
export const RISK_FACTORS_MAX = 8
export const SUMMARY_CODE_POINTS_MIN = 50
export const SUMMARY_CODE_POINTS_MAX = 2_000

export const OUTCOMES = ['validated', 'unvalidated', 'rejected'] as const
export const TABS = ['all', 'live', 'new', 'graduated'] as const
/** Sorts whose lists are always in order. */
export const KEPT_SORTS = ['hot', 'market_cap', 'created_timestamp'] as const
/** Figures that a list can be sorted by too; its order is made when it is asked for. */
export const FIGURE_SORTS = [
  'price',
  'volume_24h',
  'volume_1h',
  'change_5m',
  'change_1h',
  'change_6h',
  'change_24h',
  'liquidity',
  'holders',
  'trades_24h',
  'buys_24h',
  'sells_24h',
  'last_trade',
  'analyses',
] as const
export const SORTS = [...KEPT_SORTS, ...FIGURE_SORTS] as const
/** Figures that `min_` and `max_` filter by. */
export const RANGE_FIGURES = [...FIGURE_SORTS, 'market_cap', 'created_timestamp', 'age_ms'] as const
export const ORDERS = ['desc', 'asc'] as const
export const STREAM_SOURCES = ['pumpfun', 'studio', 'none'] as const

/** How far ahead outcomes look, shortest first. */
export const HORIZON_NAMES = ['5m', '15m', '1h', '6h', '24h'] as const

export type Sentiment = (typeof SENTIMENTS)[number]
export type RiskFactor = (typeof RISK_FACTORS)[number]
export type Outcome = (typeof OUTCOMES)[number]
/** Submissions of one agent, by outcome. */
export type OutcomeCounts = Readonly<Record<Outcome, number>>
export type Tab = (typeof TABS)[number]
export type Sort = (typeof SORTS)[number]
/** Whether a word names a figure that lists are ordered by when somebody asks. */
export const isFigureSort = (word: string): word is FigureSort =>
  FIGURE_SORTS.some((figure) => figure === word)
export type KeptSort = (typeof KEPT_SORTS)[number]
export type FigureSort = (typeof FIGURE_SORTS)[number]
export type RangeFigure = (typeof RANGE_FIGURES)[number]
export type Order = (typeof ORDERS)[number]

/** Agents submit; researchers may export the training set too. Only the operator makes a researcher. */
export const AGENT_TYPES = ['agent', 'researcher'] as const
export type AgentType = (typeof AGENT_TYPES)[number]
export type Horizon = (typeof HORIZON_NAMES)[number]
/** How far ahead outcomes look, in milliseconds. */
export const HORIZONS: Readonly<Record<Horizon, number>> = {
  '5m': 300_000,
  '15m': 900_000,
  '1h': 3_600_000,
  '6h': 21_600_000,
  '24h': 86_400_000,
}
