// The messages of the stream that carries the market from the writer to the readers.
import { pack, unpack } from 'msgpackr'
import { z } from 'zod'
import { CHECKPOINT_FORMAT } from '../checkpoint/checkpoint-file.ts'
import { FORMAT as JOURNAL_FORMAT } from '../journal/segments/format.ts'
import { safeParse } from '../lib/safe-parse.ts'
import { streamedSubmissionSchema } from '../schema/api/stream.ts'

/** Raised when nodes of before could not understand, or would apply differently, what is sent. */
const MESSAGE_FORMAT = 5
/** Nodes of one cluster must have the same. */
export const PROTOCOL = `${MESSAGE_FORMAT}.${JOURNAL_FORMAT}.${CHECKPOINT_FORMAT}`

const eventNo = z.number().int().min(0)

/** A submission as followers are told of it. */
const toldSubmissionSchema = streamedSubmissionSchema.omit({ agentName: true, symbol: true }).extend({
  /** Position of the market at which it was told. */
  seq: z.number(),
})
export type ToldSubmission = z.infer<typeof toldSubmissionSchema>

const messageSchema = z.object({
  protocol: z.string(),
  /** Identity of the writer's data folder. */
  folderId: z.string(),
  /** Whether the market is made up. */
  simulated: z.boolean(),
  /** The writer's run, and the number of the `run` event with which it began. */
  runId: z.string(),
  runEventNo: eventNo,
  /** How many recorded events its market lacks, since a damaged journal had lost them when it began. Writers of before do not tell it. */
  lostEvents: z.number().int().default(0),
  /** Events of the frame; without one, `lastEventNo` is the last that was published, and `firstEventNo` the one behind it. */
  firstEventNo: eventNo,
  lastEventNo: eventNo,
  /** A batch as the journal has it, or a part of one. */
  frame: z.custom<Uint8Array>((value) => value instanceof Uint8Array).nullable(),
  /** From 0 to `parts` - 1. A batch is applied once all its parts are there. */
  part: z.number().int().min(0),
  parts: z.number().int().min(1),
  /** Market time that is in effect once all events up to `lastEventNo` are applied, Unix ms. */
  timeMs: z.number(),
  /** Judged since the message before. */
  submissions: z.array(toldSubmissionSchema),
  /** The writer's last message: its run has ended in order, and acknowledges nothing any more. */
  ended: z.boolean(),
})
export type BusMessage = z.infer<typeof messageSchema>

/** A message that this version cannot read. The sentence is for operators. */
export class MessageError extends Error {}
/** One that no version can read. What it should have told is missing. */
export class DamagedMessageError extends MessageError {}

const protocolSchema = z.object({ protocol: z.string() })

export const encodeMessage = (message: BusMessage): Uint8Array => pack(message)

/** What another node has sent; undefined where it is no msgpack. */
export function unpackSent(bytes: Uint8Array): unknown {
  try {
    return unpack(bytes)
  } catch {
    return undefined
  }
}

/** Why what was sent is not understood, where it is of another version, as a sentence; null: it is not. */
export function versionTrouble(sent: unknown, sender: string): string | null {
  const { data } = safeParse(protocolSchema, sent)
  if (data === undefined || data.protocol === PROTOCOL) return null
  return `${sender} speaks version ${data.protocol} of the bus, this process version ${PROTOCOL}: run the same version of Mintlake everywhere`
}

/** @throws MessageError */
export function decodeMessage(bytes: Uint8Array): BusMessage {
  const value = unpackSent(bytes)
  const trouble = versionTrouble(value, 'the writer')
  if (trouble !== null) throw new MessageError(trouble)
  const message = safeParse(messageSchema, value)
  if (message.success) return message.data
  const sentence = 'the stream has a message that is damaged, or of something else than Mintlake'
  throw new DamagedMessageError(`${sentence}: ${message.error.message}`)
}
