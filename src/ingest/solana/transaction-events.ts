// Finds the events of both programs in a transaction: in its log, or, where that was truncated, in its inner instructions. An event
// has the same index on both roads: its place among the events of these programs in the transaction.

import { base58 } from '@scure/base'
import { z } from 'zod'
import { isRecord } from '../../lib/record.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { INNER_INSTRUCTIONS_MAX, LOG_LINES_MAX } from './limits.ts'
import { AMM_PROGRAM, PUMP_PROGRAM } from './programs.ts'

/** The bytes of an event, and where it stands. */
export interface RawEvent {
  program: string
  /** Among the events of both programs in the transaction, from 0. */
  index: number
  bytes: Uint8Array
}

export interface LogEvents {
  events: RawEvent[]
  /** The log ends before the transaction did: events may be missing. */
  isTruncated: boolean
}

const OURS: readonly string[] = [PUMP_PROGRAM, AMM_PROGRAM]
// An address, not any word: `Program log: invoke [1]` is what a program may write.
const INVOKE = /^Program ([1-9A-HJ-NP-Za-km-z]{32,44}) invoke \[(\d+)\]$/
const ENDED = /^Program ([1-9A-HJ-NP-Za-km-z]{32,44}) (?:success$|failed)/
const DATA = 'Program data: '
const TRUNCATED = 'Log truncated'
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * The events in the log of a transaction that succeeded. Whose they are follows from the stack of invocations: other programs use the
 * same discriminators, and routers call these programs from inside.
 */
export function eventsInLog(lines: readonly string[]): LogEvents {
  const stack: string[] = []
  const events: RawEvent[] = []
  for (const line of lines.slice(0, LOG_LINES_MAX)) {
    if (line === TRUNCATED) return { events, isTruncated: true }
    const invoked = INVOKE.exec(line)
    if (invoked !== null) {
      // The depth that is written counts: a line may be missing before it.
      stack.length = Math.min(stack.length, Number(invoked[2]) - 1)
      stack.push(invoked[1])
      continue
    }
    const ended = ENDED.exec(line)
    if (ended !== null && stack.at(-1) === ended[1]) stack.pop()
    const program = stack.at(-1)
    if (program === undefined || !OURS.includes(program) || !line.startsWith(DATA)) continue
    const text = line.slice(DATA.length)
    const bytes = BASE64.test(text) ? Buffer.from(text, 'base64') : new Uint8Array()
    events.push({ program, index: events.length, bytes })
  }
  return { events, isTruncated: lines.length > LOG_LINES_MAX }
}

/** What a program sends to itself to say an event: these bytes, then the event. */
const EVENT_INSTRUCTION = Buffer.from('e445a52e51cb9a1d', 'hex')
const DATA_CHARACTERS_MAX = 16_384

const key = z.string().min(32).max(44)
const transactionSchema = z.object({
  transaction: z.object({
    signatures: z.array(z.string()).min(1),
    message: z.object({
      accountKeys: z.array(z.union([key, z.object({ pubkey: key }).transform((each) => each.pubkey)])),
    }),
  }),
  meta: z.object({
    err: z.unknown(),
    logMessages: z.array(z.string()).nullish(),
    innerInstructions: z
      .array(
        z.object({
          index: z.number(),
          instructions: z.array(z.object({ programIdIndex: z.number(), data: z.string() })),
        }),
      )
      .nullish(),
    loadedAddresses: z.object({ writable: z.array(key), readonly: z.array(key) }).nullish(),
  }),
})
export type TransactionAnswer = z.infer<typeof transactionSchema>

/** A transaction as `getTransaction` and `getBlock` give it (encoding json); null where it is none, or has no metadata. */
export const readTransaction = (answer: unknown): TransactionAnswer | null =>
  safeParse(transactionSchema, answer).data ?? null

/** The events in the inner instructions of a transaction; none where it failed. */
function eventsInInstructions({ transaction, meta }: TransactionAnswer): RawEvent[] {
  if (meta.err != null) return []
  const { writable = [], readonly = [] } = meta.loadedAddresses ?? {}
  const keys = [...transaction.message.accountKeys, ...writable, ...readonly]
  const events: RawEvent[] = []
  const groups = [...(meta.innerInstructions ?? [])].sort((a, b) => a.index - b.index)
  for (const { programIdIndex, data } of groups
    .flatMap(({ instructions }) => instructions)
    .slice(0, INNER_INSTRUCTIONS_MAX)) {
    const program = keys[programIdIndex]
    if (!OURS.includes(program)) continue
    const bytes = decodeBase58(data)
    if (bytes === null || !EVENT_INSTRUCTION.equals(bytes.subarray(0, EVENT_INSTRUCTION.length))) continue
    events.push({ program, index: events.length, bytes: bytes.subarray(EVENT_INSTRUCTION.length) })
  }
  return events
}

/**
 * The events of a transaction as endpoints keep it: from its log, as a notification has it; where that is truncated or not kept, from its
 * inner instructions, which are slower to read. None where it failed.
 */
export function eventsInTransaction(transaction: TransactionAnswer): LogEvents {
  const { err, innerInstructions, logMessages } = transaction.meta
  if (err != null) return { events: [], isTruncated: false }
  const log = logMessages == null ? null : eventsInLog(logMessages)
  if (log !== null && !log.isTruncated) return log
  if (innerInstructions != null) return { events: eventsInInstructions(transaction), isTruncated: false }
  return log ?? { events: [], isTruncated: true }
}

/**
 * Whether a transaction of a block may have events of ours: it has not failed, and names one of the programs. A block has some thousand
 * transactions, of which few do: the others are not looked at further. One whose metadata the endpoint has lost may have events where it
 * takes addresses from tables too: which ones nobody says.
 */
export function mayHaveEvents(answer: unknown): boolean {
  if (!isRecord(answer)) return false
  const { transaction, meta } = answer
  const message = recordOf(recordOf(transaction).message)
  if (!isRecord(meta)) return namesOurs(message.accountKeys) || !isEmpty(message.addressTableLookups)
  if (meta.err != null) return false
  const loaded = recordOf(meta.loadedAddresses)
  return [message.accountKeys, loaded.writable, loaded.readonly].some(namesOurs)
}

const recordOf = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})
const isEmpty = (value: unknown): boolean => !Array.isArray(value) || value.length === 0
const namesOurs = (keys: unknown): boolean =>
  Array.isArray(keys) &&
  keys.some((each) => OURS.includes(isRecord(each) ? String(each.pubkey) : String(each)))

function decodeBase58(text: string): Uint8Array | null {
  // Base58 takes time that grows with the square of the length.
  if (text.length > DATA_CHARACTERS_MAX) return null
  try {
    return base58.decode(text)
  } catch {
    return null
  }
}
