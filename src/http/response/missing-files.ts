// What an answer that is made of the lake lacks while files of it are lost: their rows are left out, and it looks whole.
import { z } from 'zod'
import { MISSING_FILES } from '../../schema/api/lake.ts'
import type { TableName } from '../../schema/tables.ts'
import { maybeWhole } from '../docs/headers.ts'
import type { RouteParts } from '../routes/route-parts.ts'

export const MISSING_FILES_HEADER = z.object({
  'X-Missing-Files': maybeWhole(`Where there are any. ${MISSING_FILES}`),
})

/** Headers of an answer from these tables. */
export function missingFiles({ store }: RouteParts, ...tables: TableName[]): Record<string, string> {
  const count = store.lostFiles.filter(({ table }) => tables.some((each) => each === table)).length
  return count === 0 ? {} : { 'X-Missing-Files': `${count}` }
}
