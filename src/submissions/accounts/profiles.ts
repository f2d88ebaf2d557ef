import type { z } from 'zod'
import type { operatorRegistrationSchema, profileChangeSchema } from '../../schema/api/accounts.ts'
import type { Agent, Profile } from '../types.ts'

export type Registration = z.output<typeof operatorRegistrationSchema>
export type ProfileChange = z.output<typeof profileChangeSchema>

/** What an agent has before it changes anything: what it was registered with. */
const firstProfile = ({ name, description }: Agent, nowMs: number): Profile => ({
  name,
  description,
  avatarUrl: null,
  twitterHandle: null,
  website: null,
  createdAt: nowMs,
  updatedAt: nowMs,
})

/** The profile after a change. A field that is absent keeps its value, null clears it. */
export function changedProfile(
  agent: Agent,
  before: Profile | null,
  change: ProfileChange,
  nowMs: number,
): Profile {
  const { createdAt, ...kept } = before ?? firstProfile(agent, nowMs)
  const {
    name = kept.name,
    description = kept.description,
    avatarUrl = kept.avatarUrl,
    twitterHandle = kept.twitterHandle,
    website = kept.website,
  } = change
  return { name, description, avatarUrl, twitterHandle, website, createdAt, updatedAt: nowMs }
}
