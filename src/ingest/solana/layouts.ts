// The events of both programs as data: the fields of each in their order (borsh, little endian), and which of them the first layout
// had. Fields are appended over the years: one is read when its bytes are there, and what follows the last one is counted.
import { hash } from 'node:crypto'
import { base58 } from '@scure/base'
import {
  addDecoderSizePrefix,
  type Decoder,
  fixDecoderSize,
  getArrayDecoder,
  getBooleanDecoder,
  getBytesDecoder,
  getI64Decoder,
  getI128Decoder,
  getTupleDecoder,
  getU8Decoder,
  getU16Decoder,
  getU32Decoder,
  getU64Decoder,
  getUtf8Decoder,
  transformDecoder,
} from '@solana/codecs'
import { AMM_PROGRAM, PUMP_PROGRAM } from './programs.ts'

export type FieldType = 'u8' | 'u16' | 'u64' | 'i64' | 'i128' | 'bool' | 'pubkey' | 'string' | 'shares'

/** An event of one of the programs. */
export interface EventLayout {
  program: string
  name: string
  /** By name, in the order of their bytes. */
  fields: readonly (readonly [name: string, type: FieldType])[]
  /** How many of them every event has: one with fewer cannot be read. */
  required: number
}

/** The codecs' own base58 takes six times as long, and addresses are most of what an event costs. */
export const pubkey = transformDecoder(fixDecoderSize(getBytesDecoder(), 32), (bytes) =>
  base58.encode(Uint8Array.from(bytes)),
)
/** How the bytes of a field are read. Texts are of any bytes: what is no UTF-8 is replaced. */
export const FIELD_DECODERS: Readonly<Record<FieldType, Decoder<unknown>>> = {
  u8: getU8Decoder(),
  u16: getU16Decoder(),
  u64: getU64Decoder(),
  i64: getI64Decoder(),
  i128: getI128Decoder(),
  bool: getBooleanDecoder(),
  pubkey,
  string: addDecoderSizePrefix(getUtf8Decoder(), getU32Decoder()),
  // Shareholders: an address and its share each.
  shares: getArrayDecoder(getTupleDecoder([pubkey, getU16Decoder()]), { size: getU32Decoder() }),
}

/** Fields of one type that follow one another. */
const all = (type: FieldType, names: string): [string, FieldType][] =>
  names.split(' ').map((name) => [name, type])

function layout(program: string, name: string, required: number, fields: [string, FieldType][]): EventLayout {
  return { program, name, fields, required }
}

/** What a swap of a pool says before the fields that differ by side. */
const swapHead = (base: string, limit: string, quote: string, quoteWithoutFee: string, userQuote: string) => [
  ...all('i64', 'timestamp'),
  ...all('u64', `${base} ${limit} user_base_token_reserves user_quote_token_reserves`),
  ...all('u64', `pool_base_token_reserves pool_quote_token_reserves ${quote} lp_fee_basis_points lp_fee`),
  ...all('u64', `protocol_fee_basis_points protocol_fee ${quoteWithoutFee} ${userQuote}`),
  ...all('pubkey', 'pool user user_base_token_account user_quote_token_account protocol_fee_recipient'),
  ...all('pubkey', 'protocol_fee_recipient_token_account coin_creator'),
  ...all('u64', 'coin_creator_fee_basis_points coin_creator_fee'),
]
const SWAP_TAIL = [
  ...all('u64', 'cashback_fee_basis_points cashback buyback_fee_basis_points buyback_fee'),
  ...all('i128', 'virtual_quote_reserves'),
  ...all('bool', 'can_boost'),
  ...all('u64', 'base_supply holder_rewards_bps holder_rewards'),
]
/** Of the first layout of swaps: all up to the user. */
const SWAP_REQUIRED = 15

export const EVENT_LAYOUTS: readonly EventLayout[] = [
  layout(PUMP_PROGRAM, 'CreateEvent', 6, [
    ...all('string', 'name symbol uri'),
    ...all('pubkey', 'mint bonding_curve user creator'),
    ...all('i64', 'timestamp'),
    ...all('u64', 'virtual_token_reserves virtual_sol_reserves real_token_reserves token_total_supply'),
    ...all('pubkey', 'token_program'),
    ...all('bool', 'is_mayhem_mode is_cashback_enabled'),
    ...all('pubkey', 'quote_mint'),
    ...all('u64', 'virtual_quote_reserves creator_fee_bps'),
    ...all('bool', 'is_holder_reward'),
  ]),
  layout(PUMP_PROGRAM, 'TradeEvent', 8, [
    ...all('pubkey', 'mint'),
    ...all('u64', 'sol_amount token_amount'),
    ...all('bool', 'is_buy'),
    ...all('pubkey', 'user'),
    ...all('i64', 'timestamp'),
    ...all('u64', 'virtual_sol_reserves virtual_token_reserves real_sol_reserves real_token_reserves'),
    ...all('pubkey', 'fee_recipient'),
    ...all('u64', 'fee_basis_points fee'),
    ...all('pubkey', 'creator'),
    ...all('u64', 'creator_fee_basis_points creator_fee'),
    ...all('bool', 'track_volume'),
    ...all('u64', 'total_unclaimed_tokens total_claimed_tokens current_sol_volume'),
    ...all('i64', 'last_update_timestamp'),
    ...all('string', 'ix_name'),
    ...all('bool', 'mayhem_mode'),
    ...all('u64', 'cashback_fee_basis_points cashback buyback_fee_basis_points buyback_fee'),
    ...all('shares', 'shareholders'),
    ...all('pubkey', 'quote_mint'),
    ...all(
      'u64',
      'quote_amount virtual_quote_reserves real_quote_reserves holder_rewards_bps holder_rewards',
    ),
  ]),
  layout(PUMP_PROGRAM, 'CompleteEvent', 4, [
    ...all('pubkey', 'user mint bonding_curve'),
    ...all('i64', 'timestamp'),
    ...all('pubkey', 'quote_mint'),
  ]),
  layout(PUMP_PROGRAM, 'CompletePumpAmmMigrationEvent', 8, [
    ...all('pubkey', 'user mint'),
    ...all('u64', 'mint_amount sol_amount pool_migration_fee'),
    ...all('pubkey', 'bonding_curve'),
    ...all('i64', 'timestamp'),
    ...all('pubkey', 'pool quote_mint'),
  ]),
  layout(PUMP_PROGRAM, 'UpdateMayhemVirtualParamsEvent', 6, [
    ...all('i64', 'timestamp'),
    ...all('pubkey', 'mint'),
    ...all('u64', 'virtual_token_reserves virtual_sol_reserves new_virtual_token_reserves'),
    ...all('u64', 'new_virtual_sol_reserves real_token_reserves real_sol_reserves'),
  ]),
  layout(AMM_PROGRAM, 'BuyEvent', SWAP_REQUIRED, [
    ...swapHead(
      ...(['base_amount_out', 'max_quote_amount_in', 'quote_amount_in'] as const),
      ...(['quote_amount_in_with_lp_fee', 'user_quote_amount_in'] as const),
    ),
    ...all('bool', 'track_volume'),
    ...all('u64', 'total_unclaimed_tokens total_claimed_tokens current_sol_volume'),
    ...all('i64', 'last_update_timestamp'),
    ...all('u64', 'min_base_amount_out'),
    ...all('string', 'ix_name'),
    ...SWAP_TAIL,
  ]),
  layout(AMM_PROGRAM, 'SellEvent', SWAP_REQUIRED, [
    ...swapHead(
      ...(['base_amount_in', 'min_quote_amount_out', 'quote_amount_out'] as const),
      ...(['quote_amount_out_without_lp_fee', 'user_quote_amount_out'] as const),
    ),
    ...SWAP_TAIL,
  ]),
  layout(AMM_PROGRAM, 'CreatePoolEvent', 17, [
    ...all('i64', 'timestamp'),
    ...all('u16', 'index'),
    ...all('pubkey', 'creator base_mint quote_mint'),
    ...all('u8', 'base_mint_decimals quote_mint_decimals'),
    ...all('u64', 'base_amount_in quote_amount_in pool_base_amount pool_quote_amount minimum_liquidity'),
    ...all('u64', 'initial_liquidity lp_token_amount_out'),
    ...all('u8', 'pool_bump'),
    ...all('pubkey', 'pool lp_mint user_base_token_account user_quote_token_account coin_creator'),
    ...all('bool', 'is_mayhem_mode'),
  ]),
]

/** The first 8 bytes of an event, as hex (Anchor's rule). */
export const discriminatorOf = (name: string): string => hash('sha256', `event:${name}`, 'hex').slice(0, 16)

/** By program and discriminator. */
const LAYOUTS_BY_DISCRIMINATOR: ReadonlyMap<string, EventLayout> = new Map(
  EVENT_LAYOUTS.map((each) => [`${each.program}:${discriminatorOf(each.name)}`, each]),
)

/** The layout of an event of this program with this discriminator; undefined where we know none. */
export const layoutOf = (program: string, discriminator: string): EventLayout | undefined =>
  LAYOUTS_BY_DISCRIMINATOR.get(`${program}:${discriminator}`)
