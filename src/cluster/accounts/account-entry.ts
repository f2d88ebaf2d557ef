// An account as the bus has it, msgpack: hashes of keys, never keys. The key of an entry is the agent's identity.
import { pack } from 'msgpackr'
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { AGENT_TYPES } from '../../schema/vocabulary.ts'
import type { Account } from '../../submissions/types.ts'
import { unpackSent } from '../messages.ts'

/** Raised when nodes of before could not understand an entry. */
const FORMAT = 1

/** The entry that is there once all accounts are: a node that has not seen it cannot tell an unknown key from one that it was not
 *  told of yet. */
export const COMPLETE_KEY = 'complete'
export const COMPLETE_VALUE = new TextEncoder().encode('all accounts are here')

const time = z.number()

const entrySchema = z.object({
  format: z.literal(FORMAT),
  agentId: z.string(),
  /** As it was registered. */
  registeredName: z.string(),
  name: z.string(),
  type: z.string(),
  createdAtMs: time,
  keys: z.array(
    z.object({
      hash: z.string(),
      prefix: z.string(),
      createdAtMs: time,
      expiresAtMs: time.nullable(),
      /** Counted from the moment at which the bus took the entry. */
      endsInMs: time.nullable(),
      isUsed: z.boolean().default(true),
    }),
  ),
})
type Entry = z.infer<typeof entrySchema>

/** The bus allows few characters in keys. */
export const entryKey = (agentId: string): string =>
  /^[\w-]{1,128}$/.test(agentId) && agentId !== COMPLETE_KEY
    ? agentId
    : `hex.${Buffer.from(agentId).toString('hex')}`

const entryOf = ({ agent, name, keys }: Account): Entry => ({
  format: FORMAT,
  agentId: agent.agentId,
  registeredName: agent.name,
  name,
  type: agent.type,
  createdAtMs: agent.createdAtMs,
  keys,
})

export const encodeAccount = (account: Account): Uint8Array => pack(entryOf(account))

/** Null: it is damaged, or of another version. A type that this version does not know gets the least rights. */
export function decodeAccount(bytes: Uint8Array): Account | null {
  const parsed = safeParse(entrySchema, unpackSent(bytes))
  if (!parsed.success) return null
  const { agentId, registeredName, name, type, createdAtMs, keys } = parsed.data
  const knownType = AGENT_TYPES.find((each) => each === type) ?? 'agent'
  const agent = { agentId, name: registeredName, description: null, type: knownType, createdAtMs }
  return { agent, name, keys }
}

/** Whether an entry says what the account is, whenever it was written. */
export function isSameAccount(bytes: Uint8Array, account: Account): boolean {
  const parsed = safeParse(entrySchema, unpackSent(bytes))
  return parsed.success && withoutMoment(parsed.data) === withoutMoment(entryOf(account))
}

/** What remains of a key's time depends on the moment; its end does not. */
const withoutMoment = (entry: Entry): string =>
  JSON.stringify({ ...entry, keys: entry.keys.map(({ endsInMs: _, ...key }) => key) })
