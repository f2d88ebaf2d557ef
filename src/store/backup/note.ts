// `backup.json` in a backup: whether it is complete, and every file with its hash. It is written before anything else, as not
// complete, and last, as complete. A server refuses a folder whose backup.json says that it is not.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { replaceFile } from '../../lib/files.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { invalid, notFound, unavailable } from '../errors.ts'
import { backupNotePath } from '../paths.ts'

const NOTE_FORMAT = 1

const completeSchema = z.object({
  complete: z.literal(true),
  format: z.literal(NOTE_FORMAT),
  madeAtMs: z.number(),
  /** The last commit that it has. */
  lsn: z.number(),
  files: z.array(z.object({ path: z.string(), bytes: z.number(), sha256: z.string() })),
})
export type BackupNote = z.infer<typeof completeSchema>
export type BackupFile = BackupNote['files'][number]

const noteSchema = z.union([z.object({ complete: z.literal(false) }), completeSchema])

const write = (folder: string, note: object): Promise<void> =>
  replaceFile(backupNotePath(folder), `${JSON.stringify(note, null, 1)}\n`)

/** Marks a folder as unfinished, durably. */
export const writeUnfinishedNote = (folder: string): Promise<void> => write(folder, { complete: false })

/** Marks a backup as complete, durably. Everything in it must be durable before. */
export const writeBackupNote = (
  folder: string,
  note: Omit<BackupNote, 'complete' | 'format'>,
): Promise<void> => write(folder, { complete: true, format: NOTE_FORMAT, ...note })

/** What the note of a folder says; null where there is none. Throws `invalid` for an unfinished backup or restore. */
function readNote(folder: string): BackupNote | null {
  const path = backupNotePath(folder)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(`${systemCode(error)}`)) return null
    throw unavailable(`${path} cannot be read: ${errorMessage(error)}`)
  }
  const { data } = safeParse(noteSchema, parseJson(text))
  if (data === undefined) throw invalid(`${path} is damaged, or of a newer version of Mintlake`)
  if (data.complete) return data
  throw invalid(`${folder} is an unfinished backup or restore: remove it, and make it again`)
}

/** Throws `invalid` where the folder is an unfinished backup or restore. */
export const checkFinished = (folder: string): void => void readNote(folder)

/** The note of a complete backup. Throws `not_found` where the folder is no backup, `invalid` where it is not complete. */
export function readBackupNote(folder: string): BackupNote {
  const note = readNote(folder)
  if (note === null) throw notFound(`${folder} is no backup: ${backupNotePath(folder)} is missing`)
  return note
}
