// The standing of an agent, as its profile shows it.
import { z } from 'zod'

const count = (description: string) => z.number().int().min(0).meta({ description })
const unixMs = (description: string) => z.number().int().meta({ description, unit: 'Unix ms' })

/** What is left of a limit; null where there is no such limit. */
export const remainingSchema = z
  .object({
    limit: count('Requests in one window'),
    remaining: count('Requests that are left'),
    windowMs: z.number().int().meta({ unit: 'ms' }),
    resetAt: unixMs('When more become free'),
  })
  .nullable()

const textOrNull = z.string().nullable()
const profileSchema = z.object({
  name: z.string(),
  description: textOrNull,
  avatarUrl: textOrNull,
  twitterHandle: textOrNull,
  website: textOrNull,
  createdAt: unixMs('When it was first set'),
  updatedAt: unixMs('When it was last changed'),
})

export const standingSchema = z.object({
  agentId: z.string(),
  xp: z.number(),
  rank: z.number().int().min(1).nullable().meta({ description: 'On the leaderboard; null without XP' }),
  analyses: count('Accepted analyses'),
  validated: count('Of these, validated'),
  unvalidated: count('Of these, unvalidated'),
  rejected: count('Rejected submissions'),
  strikes: count('Rejected submissions that still count towards a suspension'),
  banned: z.boolean(),
  bannedUntil: unixMs('When the ban ends; null: there is none, or it never ends').nullable(),
  limits: z.object({
    submit: remainingSchema,
    reads: remainingSchema,
    cooldowns: z
      .array(z.object({ mint: z.string(), nextAllowedAt: unixMs('When the agent may submit on it again') }))
      .meta({ description: 'Mints in cooldown, those that end first; 100 at most' }),
  }),
})

/** The answer of GET /api/v1/agent/profile. */
export const standingAnswerSchema = z.object({
  ok: z.literal(true),
  profile: profileSchema.nullable().meta({ description: 'null: none was set' }),
  standing: standingSchema,
})
