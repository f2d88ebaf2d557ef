// Writes events and accounts of the chain as bytes, independently of the code that reads them.
import { hash } from 'node:crypto'
import { base58 } from '@scure/base'
import { EVENT_LAYOUTS, type FieldType } from '../../../src/ingest/solana/layouts.ts'
import { PUMP_PROGRAM } from '../../../src/ingest/solana/programs.ts'

export type FieldValue = string | bigint | number | boolean

function integer(value: FieldValue, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  let left = BigInt.asUintN(bytes * 8, BigInt(value))
  for (let at = 0; at < bytes; at++) {
    buffer[at] = Number(left & 0xffn)
    left >>= 8n
  }
  return buffer
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([integer(bytes.length, 4), bytes])
}

/** Addresses are few, and base58 is slow. */
const KEYS = new Map<string, Buffer>()
function keyBytes(address: string): Buffer {
  const known = KEYS.get(address) ?? Buffer.from(base58.decode(address))
  KEYS.set(address, known)
  return known
}

const WRITERS: Readonly<Record<FieldType, (value: FieldValue) => Buffer>> = {
  u8: (value) => integer(value, 1),
  u16: (value) => integer(value, 2),
  u64: (value) => integer(value, 8),
  i64: (value) => integer(value, 8),
  i128: (value) => integer(value, 16),
  bool: (value) => integer(Number(value), 1),
  pubkey: (value) => keyBytes(`${value}`),
  string: (value) => text(`${value}`),
  shares: () => integer(0, 4),
}
export const ZERO_ADDRESS = '11111111111111111111111111111111'
const DEFAULTS: Readonly<Record<FieldType, FieldValue>> = {
  ...{ u8: 0, u16: 0, u64: 0, i64: 0, i128: 0, bool: false, string: '', shares: 0 },
  pubkey: ZERO_ADDRESS,
}

/** The bytes of an event, up to the field `through`, and where each of its fields ends. */
export function encodeEvent(name: string, values: Record<string, FieldValue>, through?: string) {
  const layout = EVENT_LAYOUTS.find((each) => each.name === name)
  if (layout === undefined) throw new Error(`no event is called ${name}`)
  const parts: Buffer[] = [Buffer.from(hash('sha256', `event:${name}`, 'hex').slice(0, 16), 'hex')]
  const ends: number[] = []
  for (const [field, type] of layout.fields) {
    parts.push(WRITERS[type](values[field] ?? DEFAULTS[type]))
    ends.push(parts.reduce((sum, { length }) => sum + length, 0))
    if (field === through) break
  }
  return { program: layout.program, bytes: Buffer.concat(parts), ends }
}

/** Pyth's account with a price of SOL. */
export function pythAccount(
  usd: number,
  atMs: number,
  { level = 1, exponent = -8, confidence = 0.01 } = {},
): Buffer {
  return Buffer.concat([
    Buffer.from('22f123639d7ef4cd', 'hex'),
    Buffer.alloc(32),
    integer(level, 1),
    ...(level === 0 ? [integer(5, 1)] : []),
    Buffer.from('ef0d8b6fda2ceba41da15d4095d1da392a0d2f8ed0c6c7bc0f4cfac8c280b56d', 'hex'),
    integer(BigInt(Math.round(usd * 10 ** -exponent)), 8),
    integer(BigInt(Math.round(confidence * 10 ** -exponent)), 8),
    integer(exponent, 4),
    integer(BigInt(Math.floor(atMs / 1_000)), 8),
    Buffer.alloc(20),
  ])
}

/** Orca's pool of SOL and USDC at a price. */
export function orcaAccount(usd: number): Buffer {
  const root = BigInt(Math.round(Math.sqrt(usd / 1_000) * 2 ** 53)) << 11n
  return Buffer.concat([Buffer.alloc(65, 1), integer(root, 16), Buffer.alloc(600)])
}

/**
 * An account of a pool, as @pump-fun/pump-swap-sdk 1.20.0 (the program's own IDL and encoder) writes it: the first key is 32 times 01, the
 * second 32 times 02 and so on. The first is the creator, the second and the third are the mints.
 */
const POOL_ACCOUNT = Buffer.from(
  'f19a6d0411b16dbc03030001010101010101010101010101010101010101010101010101010101010101010202020202' +
    '020202020202020202020202020202020202020202020202020202030303030303030303030303030303030303030303' +
    '030303030303030303030304040404040404040404040404040404040404040404040404040404040404040505050505' +
    '050505050505050505050505050505050505050505050505050505060606060606060606060606060606060606060606' +
    '060606060606060606060607000000000000000707070707070707070707070707070707070707070707070707070707' +
    '070707010107000000000000000000000000000000070000000000000001',
  'hex',
)

/** @param creator without it: anybody */
export function poolAccount(
  baseMint: string,
  quoteMint: string,
  creator = base58.encode(Buffer.alloc(32, 1)),
): Buffer {
  const account = Buffer.from(POOL_ACCOUNT)
  for (const [index, key] of [creator, baseMint, quoteMint].entries())
    keyBytes(key).copy(account, POOL_ACCOUNT.indexOf(Buffer.alloc(32, index + 1)))
  return account
}

/** The account by which the program of curves makes the pool of a token. */
export function migrationCreator(mint: string): string {
  const seeds = [Buffer.from('pool-authority'), keyBytes(mint), Buffer.of(255), keyBytes(PUMP_PROGRAM)]
  const bytes = hash('sha256', Buffer.concat([...seeds, Buffer.from('ProgramDerivedAddress')]), 'buffer')
  return base58.encode(Uint8Array.from(bytes))
}

export const mintAccount = (supply: bigint, decimals: number): Buffer =>
  Buffer.concat([Buffer.alloc(36), integer(supply, 8), integer(decimals, 1), integer(1, 1), Buffer.alloc(36)])
