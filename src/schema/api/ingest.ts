import { z } from 'zod'
import { okWith, wholeCount } from './parts.ts'

export const ingestAnswerSchema = okWith(
  {
    accepted: wholeCount('Records that were applied'),
    rejected: wholeCount('Records that were not'),
    errors: z
      .array(
        z.object({
          index: wholeCount('Which record of the body, from 0'),
          code: z.string(),
          message: z.string(),
        }),
      )
      .meta({ description: 'The first of the rejected' }),
    ignored: z
      .array(z.string())
      .optional()
      .meta({ description: 'Names in `fields` of patches that no patch has: such values changed nothing' }),
  },
  {
    accepted: 1,
    rejected: 1,
    errors: [{ index: 1, code: 'invalid_mint', message: 'mint: not a base58 address of 32 bytes' }],
  },
)
