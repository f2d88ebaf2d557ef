import { z } from 'zod'
import { ERRORS } from '../errors.ts'
import { SNAPSHOT_FIELDS } from '../features.ts'
import { deviationsSchema, metaWith, percent, unixMs, wholeCount } from './parts.ts'
import { feedStateSchema } from './status.ts'

const CODES = z.enum(Object.keys(ERRORS))

/** One fault in a body or a parameter that a program can repair. */
export const fieldErrorSchema = z
  .object({
    pointer: z.string().meta({ description: 'JSON pointer to the fault; parameters have one too: `/limit`' }),
    code: z.string(),
    message: z.string(),
    allowed: z.array(z.string()).optional().meta({ description: 'The values that it may have' }),
    suggestion: z
      .string()
      .optional()
      .meta({ description: 'The allowed value that is nearest to what was sent' }),
  })
  .meta({
    examples: [
      {
        pointer: '/quant/riskFactors/0',
        code: 'not_allowed',
        message: 'is not one of the allowed values',
        allowed: ['rug_pattern', 'low_liquidity'],
        suggestion: 'rug_pattern',
      },
    ],
  })

/** Members of a rejected submission's answer. */
const rejection = {
  mint: z.string(),
  outcome: z.literal('rejected'),
  validated: z.literal(false),
  deviationPct: percent('The largest deviation of the snapshot'),
  worstField: z.enum(SNAPSHOT_FIELDS).nullable(),
  deviations: deviationsSchema,
  strikes: wholeCount('Rejections of this agent within 24 hours, this one included'),
  warning: z.string().meta({ description: 'What follows from further rejections' }),
}

/** Every error (RFC 9457). The members from `errors` on are there where the description of their code says so. */
export const problemSchema = z
  .object({
    ok: z.literal(false),
    error: z.string().meta({ description: 'One sentence that says what is wrong' }),
    code: CODES,
    type: z.string().meta({ description: 'urn:mintlake:error:<code>' }),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().meta({ description: 'The same as error' }),
    instance: z.string().meta({ description: 'Path of the request' }),
    requestId: z.string(),
    errors: z
      .array(fieldErrorSchema)
      .optional()
      .meta({ description: 'Every fault of the body or parameters' }),
    ...z.object(rejection).partial().shape,
    allowed: z.array(z.string()).optional().meta({ description: 'Of 405 and 415: methods, content types' }),
    available: z.array(z.string()).optional().meta({ description: 'Of 406: the formats' }),
    protocols: z.array(z.string()).optional().meta({ description: 'Of 426: the WebSocket protocols' }),
    limit: z.number().int().optional().meta({ description: 'Of 429: how many are allowed in the window' }),
    retryAfterMs: z
      .number()
      .optional()
      .meta({ description: 'Of 429 and 503: when to try again', unit: 'ms' }),
    bannedUntil: unixMs('Of 403: when a suspension ends; null: never').nullable().optional(),
    snapshotAt: z.number().optional().meta({ description: 'As it was sent', unit: 'Unix ms' }),
    serverTime: unixMs('What snapshotAt was compared with').optional(),
    hint: z.string().optional(),
    suggestion: z.string().optional().meta({ description: 'Of 404: the path that was probably meant' }),
    mayBeStored: z.literal(true).optional().meta({
      description: 'It is not known whether the submission was stored: retry with the same Idempotency-Key',
    }),
    meta: metaWith({}).optional(),
    dryRun: z
      .literal(true)
      .optional()
      .meta({ description: 'Of a dry run: nothing but the attempt is stored' }),
    bytes: wholeCount('Of 416: length of the file').optional(),
    feeds: z.array(feedStateSchema).optional().meta({ description: 'Of /readyz' }),
  })
  .meta({
    examples: [
      {
        ok: false,
        error: 'limit must be a whole number of 1 or more',
        code: 'invalid_parameter',
        type: 'urn:mintlake:error:invalid_parameter',
        title: 'A query parameter or header is not acceptable',
        status: 400,
        detail: 'limit must be a whole number of 1 or more',
        instance: '/api/v1/market',
        requestId: 'req-1',
        errors: [
          { pointer: '/limit', code: 'invalid_parameter', message: 'must be a whole number of 1 or more' },
        ],
      },
    ],
  })
