// `backup.json` in a backup: whether it is complete, and every file with its hash. It is written before anything else, as not
// complete, and last, as complete. A server refuses a folder whose backup.json says that it is not.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { errorMessage, systemCode } from '../../lib/error-text.ts'
import { replaceFile } from '../../lib/files.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { invalid, notFound, type StoreError, unavailable } from '../errors.ts'
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

function parseNote(folder: string, text: string): z.infer<typeof noteSchema> {
  const { data } = safeParse(noteSchema, parseJson(text))
  if (data !== undefined) return data
  throw invalid(`${backupNotePath(folder)} is damaged, or of a newer version of Mintlake`)
}

const unfinished = (folder: string): StoreError =>
  invalid(`${folder} is an unfinished backup or restore: remove it, and make it again`)

/** Throws `invalid` where the folder is an unfinished backup or restore. */
export function checkFinished(folder: string): void {
  let text: string
  try {
    text = readFileSync(backupNotePath(folder), 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return
    throw unavailable(`${backupNotePath(folder)} cannot be read: ${errorMessage(error)}`)
  }
  if (!parseNote(folder, text).complete) throw unfinished(folder)
}

/** The note of a complete backup. Rejects with `not_found` where the folder is no backup, `invalid` where it is not complete. */
export async function readBackupNote(folder: string): Promise<BackupNote> {
  const text = await readFile(backupNotePath(folder), 'utf8').catch((error: unknown) => {
    throw notFound(
      `${folder} is no backup: ${backupNotePath(folder)} cannot be read (${errorMessage(error)})`,
    )
  })
  const note = parseNote(folder, text)
  if (!note.complete) throw unfinished(folder)
  return note
}
