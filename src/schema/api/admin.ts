// Bodies and answers of what the operator may do.
import { z } from 'zod'
import { TIME_MS_MAX } from '../bounds.ts'
import { EXAMPLE_AGENT_ID } from '../example.ts'
import { AGENT_TYPES } from '../vocabulary.ts'
import { AWARDED_KINDS } from '../xp.ts'
import { okData, unixMs, wholeCount } from './parts.ts'

/** Characters that are kept of a reason or a note. */
export const NOTE_CHARACTERS_MAX = 500
/** Units of an activity in one award of the operator. */
export const AWARD_TIMES_MAX = 1_000_000

const agentId = z.string().min(1)
const note = (description: string) =>
  z.string().meta({ description: `${description}. Cut after ${NOTE_CHARACTERS_MAX} characters` })

export const revokeKeysSchema = z
  .object({
    agentId,
    prefix: z
      .string()
      .min(1)
      .nullish()
      .meta({ description: 'Only the key that begins so; without it all keys' }),
  })
  .meta({ examples: [{ agentId: EXAMPLE_AGENT_ID }] })
export const banSchema = z
  .object({
    agentId,
    untilMs: z
      .number()
      .int()
      .min(0)
      .max(TIME_MS_MAX)
      .nullish()
      .meta({ description: 'When it ends; without it never', unit: 'Unix ms' }),
    reason: note('Why; kept in the record').optional(),
  })
  .meta({
    examples: [{ agentId: EXAMPLE_AGENT_ID, untilMs: 1_772_000_000_000, reason: 'copied submissions' }],
  })
export const unbanSchema = z.object({ agentId }).meta({ examples: [{ agentId: EXAMPLE_AGENT_ID }] })
export const repairLakeSchema = z
  .object({
    dataDir: z
      .string()
      .min(1)
      .nullish()
      .meta({ description: 'The data folder that is meant; another than the server’s own is refused' }),
  })
  .meta({ examples: [{}] })
export const awardXpSchema = z
  .object({
    agentId,
    kind: z.enum(AWARDED_KINDS),
    times: z.number().int().min(1).max(AWARD_TIMES_MAX).optional().meta({ description: '1 unless told' }),
    note: note('Kept in the ledger').optional(),
  })
  .meta({ examples: [{ agentId: EXAMPLE_AGENT_ID, kind: 'trade', times: 3, note: 'March' }] })

/** What operators see of an agent. */
export const agentStatusSchema = z.object({
  agentId: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  type: z.enum(AGENT_TYPES),
  createdAtMs: unixMs('When it registered'),
  keys: z.array(
    z.object({
      prefix: z.string(),
      createdAtMs: unixMs('When it was made'),
      expiresAtMs: unixMs('When it ends or has ended; null: it does not').nullable(),
    }),
  ),
  bannedUntilMs: unixMs(
    'Until when it may not submit; null where it may, and where it never may again',
  ).nullable(),
  banned: z.boolean(),
})
export const agentListSchema = okData(z.array(agentStatusSchema), [
  {
    agentId: EXAMPLE_AGENT_ID,
    name: 'curve-watcher',
    description: null,
    type: 'agent',
    createdAtMs: 1_772_000_000_000,
    keys: [{ prefix: 'ps_01234567', createdAtMs: 1_772_000_000_000, expiresAtMs: null }],
    bannedUntilMs: null,
    banned: false,
  },
])
export const keysRevokedSchema = okData(z.object({ revoked: wholeCount('Keys that were valid') }), {
  revoked: 1,
})
export const bannedSchema = okData(z.object({ banned: z.boolean() }), { banned: true })
export const awardReceiptSchema = z.object({
  agentId: z.string(),
  kind: z.string(),
  xpEarned: z.number(),
  xpTotal: z.number(),
})
export const awardAnswerSchema = okData(awardReceiptSchema, {
  agentId: EXAMPLE_AGENT_ID,
  kind: 'trade',
  xpEarned: 30,
  xpTotal: 370,
})

/** A missing or damaged file of the lake that was quarantined. */
export const setAsideFileSchema = z.object({
  table: z.string(),
  date: z.string().meta({ description: 'YYYY-MM-DD, UTC' }),
  path: z.string().meta({ description: 'Below the lake’s folder' }),
  reason: z.string(),
  rowsLost: wholeCount('Its rows that no other file has'),
  sinceMs: unixMs('When it was found'),
})
/** What a data folder has lost. */
export const lossSchema = z.object({
  kind: z.string().meta({ description: 'What lost it: log, state, journal, bars, folder …' }),
  sentence: z.string().meta({ description: 'What is lost, in words' }),
  table: z.string().nullable().meta({ description: 'Of the lake; null: of none, or of several' }),
  from: z.number().nullable().meta({ description: 'First number or time of what is lost; null: not known' }),
  to: z.number().nullable().meta({ description: 'The last one, included; null: not known' }),
  count: z.number().nullable().meta({ description: 'How many; null: not known' }),
  file: z
    .string()
    .nullable()
    .meta({ description: 'Below the data folder, where what is left of it is kept' }),
  foundAtMs: unixMs('When it was found'),
})
export const lakeRepairSchema = okData(
  z.object({
    filesChecked: wholeCount('Files read'),
    restored: z.array(z.string()).meta({ description: 'Quarantined files that are valid again' }),
    lost: z.array(setAsideFileSchema).meta({ description: 'Files whose loss this repair has acknowledged' }),
    eventsLost: wholeCount('Recorded events whose loss this repair has acknowledged'),
    losses: z
      .array(lossSchema)
      .meta({ description: 'What else was lost, and is acknowledged by this repair' }),
  }),
  { filesChecked: 120, restored: [], lost: [], eventsLost: 0, losses: [] },
)
export const lakeRetiredSchema = okData(z.object({ files: wholeCount('Files that left the lake') }), {
  files: 3,
})

export const clockTrustedSchema = okData(
  z.object({
    movedMs: z.number().meta({ unit: 'ms', description: 'How far market time has moved; negative: back' }),
    marketTimeMs: unixMs('Market time now'),
  }),
  { movedMs: -86_400_000, marketTimeMs: 1_772_000_000_000 },
)

export const stagedBackupSchema = okData(
  z.object({
    path: z.string().meta({ description: 'Folder on the server’s disk' }),
    lsn: wholeCount('The last commit that it has'),
    files: wholeCount('Files of the lake'),
    bytes: wholeCount('Of these files'),
  }),
  { path: '/var/lib/mintlake/backup', lsn: 4210, files: 37, bytes: 812_345 },
)
