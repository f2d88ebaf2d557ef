import type { z } from 'zod'
import type { operatorRegistrationSchema, profileChangeSchema } from '../../schema/api/accounts.ts'
import type { Agent, Profile } from '../types.ts'

export type Registration = z.output<typeof operatorRegistrationSchema>
export type ProfileChange = z.output<typeof profileChangeSchema>

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
