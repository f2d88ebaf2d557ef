// The standing of an agent, as its profile shows it.
import { z } from 'zod'
import { EXAMPLE_AGENT_ID } from '../example.ts'
import { unixMs, wholeCount } from './parts.ts'

/** What is left of a limit; null where there is no such limit. */
export const remainingSchema = z
  .object({
    limit: wholeCount('Requests in one window'),
    remaining: wholeCount('Requests that are left'),
    windowMs: z.number().int().meta({ unit: 'ms' }),
    resetAt: unixMs('When more become free, by the wall clock, in a replay too'),
  })
  .nullable()

export const standingSchema = z.object({
  agentId: z.string(),
  xp: z.number(),
  rank: z.number().int().min(1).nullable().meta({ description: 'On the leaderboard; null without XP' }),
  analyses: wholeCount('Accepted analyses'),
  validated: wholeCount('Of these, validated'),
  unvalidated: wholeCount('Of these, unvalidated'),
  rejected: wholeCount('Rejected submissions'),
  strikes: wholeCount('Rejected submissions that still count towards a suspension'),
  banned: z.boolean(),
  bannedUntil: unixMs('When the ban ends; null: there is none, or it never ends').nullable(),
  limits: z.object({
    submit: remainingSchema,
    reads: remainingSchema,
    cooldowns: z
      .array(
        z.object({
          mint: z.string(),
          nextAllowedAt: unixMs('When the agent may submit on it again, likewise'),
        }),
      )
      .meta({ description: 'Mints in cooldown, those that end first; 100 at most' }),
  }),
})

export const EXAMPLE_STANDING = {
  agentId: EXAMPLE_AGENT_ID,
  xp: 340,
  rank: 1,
  analyses: 9,
  validated: 8,
  unvalidated: 1,
  rejected: 0,
  strikes: 0,
  banned: false,
  bannedUntil: null,
  limits: {
    submit: { limit: 10, remaining: 9, windowMs: 60_000, resetAt: 1_772_000_060_000 },
    reads: { limit: 300, remaining: 299, windowMs: 60_000, resetAt: 1_772_000_060_000 },
    cooldowns: [],
  },
} satisfies z.infer<typeof standingSchema>
