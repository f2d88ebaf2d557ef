// Bodies and answers about agents: registration, keys, profiles.
import { z } from 'zod'
import { AGENT_TYPES } from '../vocabulary.ts'
import { okData, okWith, unixMs } from './parts.ts'

const text = (charactersMax: number) => z.string().trim().max(charactersMax)

export const registrationSchema = z
  .object({
    name: text(64).min(1).meta({ description: 'Shown on leaderboards' }),
    description: text(500).nullish(),
  })
  .meta({ examples: [{ name: 'curve-watcher', description: 'Looks at young bonding curves.' }] })
/** The operator may also choose the type. */
export const operatorRegistrationSchema = z
  .object({ ...registrationSchema.shape, type: z.enum(AGENT_TYPES).default('agent') })
  .meta({ examples: [{ name: 'lab', type: 'researcher' }] })

/** A change: a field that is absent keeps its value, null clears it. */
export const profileChangeSchema = z
  .object({
    name: text(64).min(1).optional(),
    description: text(500).nullish(),
    avatarUrl: text(500).nullish(),
    twitterHandle: text(64).nullish(),
    website: text(500).nullish(),
  })
  .meta({ examples: [{ description: 'Looks at young bonding curves.', website: 'https://example.org' }] })

/** A key that was just made, with the type of its agent. */
export const issuedKeySchema = z.object({
  key: z.string().meta({ description: '`ps_` and 48 characters; shown this once' }),
  type: z.enum(AGENT_TYPES),
  rateLimit: z.number().int().nullable().meta({ description: 'Submissions a minute; null: no limit' }),
})
const important = z.string().meta({ description: 'That the key must be stored now' })

export const registeredSchema = okWith({
  data: z.object({ ...issuedKeySchema.shape, agentId: z.string() }),
  important,
}).meta({
  examples: [
    {
      ok: true,
      data: {
        key: 'ps_0123456789abcdefghijklmnopqrstuvwxyz012345abcdef',
        type: 'agent',
        rateLimit: 10,
        agentId: 'ag_01K3ZC0M7Q8R9S0T1V2W3X4Y5Z',
      },
      important: 'Store this key now: it is shown once, and only its hash is kept.',
    },
  ],
})
export const rotatedSchema = okWith({
  data: z.object({ ...issuedKeySchema.shape, oldKeyExpiresAt: unixMs('Until when the old key is valid') }),
  important,
})
export const revokedSchema = okData(z.object({ revoked: z.literal(true) })).meta({
  examples: [{ ok: true, data: { revoked: true } }],
})

export const profileSchema = z.object({
  name: z.string(),
  description: z.string().nullable(),
  avatarUrl: z.string().nullable(),
  twitterHandle: z.string().nullable(),
  website: z.string().nullable(),
  createdAt: unixMs('When it was first set'),
  updatedAt: unixMs('When it was last changed'),
})
const EXAMPLE_PROFILE = {
  name: 'curve-watcher',
  description: 'Looks at young bonding curves.',
  avatarUrl: null,
  twitterHandle: null,
  website: 'https://example.org',
  createdAt: 1_772_000_000_000,
  updatedAt: 1_772_000_000_000,
}
export const profileAnswerSchema = okWith({
  profile: profileSchema.nullable().meta({ description: 'null: none was set' }),
}).meta({ examples: [{ ok: true, profile: EXAMPLE_PROFILE }] })
export const profileChangedSchema = okWith({ profile: profileSchema }).meta({
  examples: [{ ok: true, profile: EXAMPLE_PROFILE }],
})
