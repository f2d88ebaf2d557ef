import { ANALYSIS_GOAL } from '../limits.ts'
import type { AgentRank, MarketReader, TokenLeaderboard } from '../types.ts'
import type { Scoreboard } from './scoreboard.ts'

/** The most analysed tokens, with their names as the market has them. */
export function rankTokens(scoreboard: Scoreboard, market: MarketReader, limit: number): TokenLeaderboard {
  const leaderboard = scoreboard.topTokens(limit).map(({ mint, ...coverage }) => {
    const token = market.datapoint(mint)
    return {
      mint,
      name: token?.name ?? null,
      symbol: token?.symbol ?? null,
      image: token?.imageUrl ?? null,
      ...coverage,
    }
  })
  const { totalAnalyses, uniqueTokens } = scoreboard
  const progress = Math.min(100, (100 * totalAnalyses) / ANALYSIS_GOAL)
  return { totalAnalyses, uniqueTokens, goal: ANALYSIS_GOAL, progress, leaderboard }
}

/** The agents with the most XP. */
export const rankAgents = (
  scoreboard: Scoreboard,
  name: (agentId: string) => string,
  limit: number,
): AgentRank[] =>
  scoreboard.topAgents(limit).map(({ agentId, xp, analyses }, index) => ({
    rank: index + 1,
    agentId,
    name: name(agentId),
    xp,
    analyses,
  }))
