// Bodies and answers about agents: registration, keys, profiles.
import { z } from 'zod'
import { EXAMPLE_AGENT_ID, EXAMPLE_TIME_MS } from '../example.ts'
import { AGENT_TYPES } from '../vocabulary.ts'
import { okData, okWith, unixMs } from './parts.ts'
import { EXAMPLE_STANDING, standingSchema } from './standing.ts'

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

/** No address of another kind, which a page that links to it might run. */
const webAddress = text(500).refine(
  (address) => !/^\s*[a-z][\w+.-]*:/i.test(address) || /^\s*https?:/i.test(address),
  {
    error: 'must be an http or https address',
    params: { code: 'not_allowed' },
  },
)

/** A change: a field that is absent keeps its value, null clears it. */
export const profileChangeSchema = z
  .object({
    name: text(64).min(1).optional(),
    description: text(500).nullish(),
    avatarUrl: webAddress.nullish(),
    twitterHandle: text(64).nullish(),
    website: webAddress.nullish(),
  })
  .meta({ examples: [{ description: 'Looks at young bonding curves.', website: 'https://example.org' }] })

/** A key that was just made, with the type of its agent. */
export const issuedKeySchema = z.object({
  key: z.string().meta({ description: '`ps_` and 48 characters; shown this once' }),
  type: z.enum(AGENT_TYPES),
  rateLimit: z.number().int().nullable().meta({ description: 'Submissions a minute; null: no limit' }),
})
const EXAMPLE_KEY = {
  key: 'ps_0123456789abcdefghijklmnopqrstuvwxyz012345abcdef',
  type: 'agent',
  rateLimit: 10,
}
const EXAMPLE_SENTENCE = 'Store this key now: it is shown once, and only its hash is kept.'
const important = z.string().meta({ description: 'That the key must be stored now' })

export const registeredSchema = okWith(
  { data: z.object({ ...issuedKeySchema.shape, agentId: z.string() }), important },
  { data: { ...EXAMPLE_KEY, agentId: EXAMPLE_AGENT_ID }, important: EXAMPLE_SENTENCE },
)
export const rotatedSchema = okWith(
  {
    data: z.object({ ...issuedKeySchema.shape, oldKeyExpiresAt: unixMs('Until when the old key is valid') }),
    important,
  },
  { data: { ...EXAMPLE_KEY, oldKeyExpiresAt: 1_772_086_400_000 }, important: EXAMPLE_SENTENCE },
)
export const revokedSchema = okData(z.object({ revoked: z.literal(true) }), { revoked: true })

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
  createdAt: EXAMPLE_TIME_MS,
  updatedAt: EXAMPLE_TIME_MS,
}
export const profileAnswerSchema = okWith(
  {
    profile: profileSchema.nullable().meta({ description: 'null: none was set' }),
    standing: standingSchema,
  },
  { profile: EXAMPLE_PROFILE, standing: EXAMPLE_STANDING },
)
export const profileChangedSchema = okWith({ profile: profileSchema }, { profile: EXAMPLE_PROFILE })

/** A page of the console, and what it may do. */
export const sessionSchema = okData(
  z.object({
    key: z.string().meta({ description: '`mls_` and 32 characters' }),
    expiresAt: unixMs('When it ends unless it is asked for again'),
    queryOpen: z.boolean().meta({
      description: 'Whether /api/v1/query needs no key: of programs of this computer, where it is so',
    }),
    dataDir: z.string().nullable().meta({
      description:
        'Where it needs none: the data folder, for commands; null where they find it by themselves',
    }),
  }),
  {
    key: 'mls_0123456789abcdefghijklmnopqrstuv',
    expiresAt: 1_772_007_200_000,
    queryOpen: false,
    dataDir: null,
  },
)
export const sessionRevokedSchema = okData(z.object({ revoked: z.boolean() }), { revoked: true })
export const sessionsRevokedSchema = okData(z.object({ revoked: z.number().int() }), { revoked: 3 })
