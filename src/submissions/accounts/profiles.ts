import type { z } from 'zod'
import { firstIssue, safeParse } from '../../lib/safe-parse.ts'
import type { operatorRegistrationSchema, profileChangeSchema } from '../../schema/api/accounts.ts'
import { SubmissionError } from '../errors.ts'
import type { Agent, Profile } from '../types.ts'
import { fieldError } from '../validate.ts'

export type Registration = z.output<typeof operatorRegistrationSchema>
export type ProfileChange = z.output<typeof profileChangeSchema>

/** A body of unknown shape as the schema's type. Throws validation_failed. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = safeParse(schema, body)
  if (result.success) return result.data
  const errors = result.error.issues.map((issue) => fieldError(issue, body))
  const { pointer, message } = fieldError(firstIssue(result.error), body)
  throw new SubmissionError('validation_failed', `${pointer || 'The body'} ${message}.`, { errors })
}

/** The profile after a change. A field that is absent keeps its value, null clears it. */
export function changedProfile(
  agent: Agent,
  before: Profile | null,
  change: ProfileChange,
  nowMs: number,
): Profile {
  const value = (
    field: 'description' | 'avatarUrl' | 'twitterHandle' | 'website',
    initial: string | null,
  ): string | null => {
    const sent = change[field]
    return sent === undefined ? (before?.[field] ?? initial) : sent
  }
  return {
    name: change.name ?? before?.name ?? agent.name,
    description: value('description', agent.description),
    avatarUrl: value('avatarUrl', null),
    twitterHandle: value('twitterHandle', null),
    website: value('website', null),
    createdAt: before?.createdAt ?? nowMs,
    updatedAt: nowMs,
  }
}
