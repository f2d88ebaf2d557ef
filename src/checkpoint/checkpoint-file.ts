// A checkpoint as a file: the sections of a market one behind the other, then a directory of them with what the file is, its checksum
// and its length. Each section has a checksum of its own, which the market compares.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { type DiskFile, nodeDisk } from '../lib/disk/disk.ts'
import { createWhole, writeAll } from '../lib/disk/whole-files.ts'
import { errorMessage } from '../lib/error-text.ts'
import { safeParse } from '../lib/safe-parse.ts'
import { CheckpointError } from '../lib/sections/checkpoint-error.ts'
import type { Section } from '../lib/sections/sections.ts'
import { NEXT_NAME, NumberedNames } from '../lib/segments/numbered-names.ts'
import { engineSettingsSchema } from '../schema/event.ts'
import { DIRECTORY_BYTES_MAX } from './limits.ts'

export const CHECKPOINT_FORMAT = 1
const MAGIC = 'MINTLAKE'
/** Checksum and length of the directory, then MAGIC. */
const TAIL_BYTES = 16

const headSchema = z.object({
  format: z.number(),
  /** Identity of the data folder. */
  folderId: z.string(),
  /** The market is as it was after this event. */
  eventNo: z.number(),
  /** Market time then, Unix ms. */
  atMs: z.number(),
  /** Number of the `run` event with which the market began as an empty one. */
  originEventNo: z.number(),
  /** How many of the events behind that one up to `eventNo` this market lacks, since a damaged journal has lost them. Only told where there
   *  are any. */
  lostEvents: z.number().default(0),
  settings: engineSettingsSchema,
  /** The lake has every closed bar that ended by this market time, Unix ms. */
  barsInLakeToMs: z.number(),
  /** Whether the lake has the profiles of all tokens. Only known at the end of a run. */
  profilesInLake: z.boolean().optional(),
  /** Version of Mintlake that wrote it. */
  version: z.string(),
  writtenAtMs: z.number(),
})
export type CheckpointHead = z.infer<typeof headSchema>
/** What it is told of when it is written. */
export type NewCheckpointHead = Omit<z.input<typeof headSchema>, 'format'>

const directorySchema = headSchema.extend({
  sections: z.array(z.tuple([z.string(), z.number(), z.number()])),
})

/** Named after the event whose market they hold. */
export const checkpointNames = new NumberedNames('checkpoint')

/**
 * Writes a checkpoint durably. What is there before stays readable at each step.
 * @param beforeSection throws to give up
 * @returns its bytes
 */
export async function writeCheckpoint(
  folder: string,
  head: NewCheckpointHead,
  sections: Iterable<Section>,
  beforeSection: () => void = () => {},
  disk = nodeDisk,
): Promise<number> {
  await disk.makeFolder(folder)
  let bytes = 0
  const path = join(folder, checkpointNames.nameOf(head.eventNo))
  const file = await createWhole(disk, join(folder, NEXT_NAME), path, 'create', async (next) => {
    bytes = await writeSections(next, { format: CHECKPOINT_FORMAT, ...head }, sections, beforeSection)
    await next.sync()
  })
  await file.close()
  await disk.syncFolder(folder)
  return bytes
}

/** @returns the bytes of all */
async function writeSections(
  file: DiskFile,
  head: z.input<typeof headSchema>,
  sections: Iterable<Section>,
  beforeSection: () => void,
): Promise<number> {
  const directory: [string, number, number][] = []
  let offset = 0
  for (const { name, bytes } of sections) {
    beforeSection()
    await writeAll(file, bytes)
    directory.push([name, offset, bytes.length])
    offset += bytes.length
  }
  const text = Buffer.from(JSON.stringify({ ...head, sections: directory }))
  const tail = Buffer.alloc(TAIL_BYTES)
  tail.writeUInt32LE(crc32(text), 0)
  tail.writeUInt32LE(text.length, 4)
  tail.write(MAGIC, 8)
  await writeAll(file, Buffer.concat([text, tail]))
  return offset + text.length + tail.length
}

/** A checkpoint that was opened to be read. */
export class CheckpointFile {
  readonly head: CheckpointHead
  readonly #file: number
  readonly #sections: ReadonlyMap<string, { offset: number; bytes: number }>

  /** @throws CheckpointError where it cannot be read, is damaged or of another format. */
  constructor(path: string) {
    this.#file = openFile(path)
    try {
      const { sections, ...head } = readDirectory(this.#file)
      this.head = head
      this.#sections = new Map(sections.map(([name, offset, bytes]) => [name, { offset, bytes }]))
    } catch (error) {
      closeSync(this.#file)
      throw error instanceof CheckpointError ? error : new CheckpointError(unreadable(error))
    }
  }

  /** A section by its name; null: there is none. Blocks while it is read. @throws CheckpointError */
  readonly read = (name: string): Uint8Array | null => {
    const found = this.#sections.get(name)
    return found === undefined ? null : readFully(this.#file, found.offset, found.bytes)
  }

  close(): void {
    closeSync(this.#file)
  }
}

const unreadable = (error: unknown): string => `It cannot be read: ${errorMessage(error)}.`

function openFile(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (error) {
    throw new CheckpointError(unreadable(error))
  }
}

function readFully(file: number, offset: number, length: number): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(length)
  let at = 0
  try {
    while (at < length) {
      const read = readSync(file, bytes, at, length - at, offset + at)
      if (read === 0) break
      at += read
    }
  } catch (error) {
    throw new CheckpointError(unreadable(error))
  }
  if (at < length) throw new CheckpointError('It ends too early.')
  return bytes
}

function readDirectory(file: number): z.infer<typeof directorySchema> {
  const { size } = fstatSync(file)
  const tail = Buffer.from(readFully(file, Math.max(0, size - TAIL_BYTES), TAIL_BYTES))
  const length = tail.readUInt32LE(4)
  if (tail.toString('latin1', 8) !== MAGIC || length > DIRECTORY_BYTES_MAX || length > size - TAIL_BYTES)
    throw new CheckpointError('It is no checkpoint, or its end is damaged.')
  const text = readFully(file, size - TAIL_BYTES - length, length)
  if (crc32(text) !== tail.readUInt32LE(0)) throw new CheckpointError('Its directory is damaged.')
  const value: unknown = JSON.parse(Buffer.from(text).toString())
  const format = safeParse(z.object({ format: z.number() }), value)
  if (format.success && format.data.format !== CHECKPOINT_FORMAT)
    throw new CheckpointError(
      `It has format ${format.data.format}, and this version reads ${CHECKPOINT_FORMAT}.`,
    )
  const directory = safeParse(directorySchema, value)
  if (!directory.success) throw new CheckpointError('Its directory does not have the form of one.')
  return directory.data
}
