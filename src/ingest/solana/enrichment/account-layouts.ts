// What accounts of the token programs, of Metaplex and of pools hold, as codecs. Tests compare them with the programs' own libraries.
import {
  addDecoderSizePrefix,
  type Decoder,
  fixDecoderSize,
  getArrayDecoder,
  getBooleanDecoder,
  getBytesDecoder,
  getNullableDecoder,
  getStructDecoder,
  getU8Decoder,
  getU16Decoder,
  getU32Decoder,
  getU64Decoder,
  getUtf8Decoder,
} from '@solana/codecs'
import { pubkey as address } from '../layouts.ts'

/** An address, or zero bytes for none. */
const addressOrNone = getNullableDecoder(address, { noneValue: 'zeroes', prefix: null })
/** An address behind a flag of four bytes. */
const optionalAddress = getNullableDecoder(address, { noneValue: 'zeroes', prefix: getU32Decoder() })
const text = addDecoderSizePrefix(getUtf8Decoder(), getU32Decoder())

/** Of both token programs. */
export const MINT_BYTES = 82
export const MINT = getStructDecoder([
  ['mintAuthority', optionalAddress],
  ['supply', getU64Decoder()],
  ['decimals', getU8Decoder()],
  ['isInitialized', getBooleanDecoder()],
  ['freezeAuthority', optionalAddress],
])

export const TOKEN_ACCOUNT_BYTES = 165
export const TOKEN_ACCOUNT = getStructDecoder([
  ['mint', address],
  ['owner', address],
  ['amount', getU64Decoder()],
])

/** Token-2022: behind the longest plain account a byte says of what kind this one is, then extensions follow. */
export const ACCOUNT_KIND_AT = 165
export const ACCOUNT_KINDS = { mint: 1, account: 2 } as const
/** Of the extensions that say something of a mint: type and codec. Each has its type and its length before it, in two bytes each. */
export const EXTENSION_TYPES = { transferFeeConfig: 1, metadataPointer: 18, tokenMetadata: 19 } as const

const transferFee = getStructDecoder([
  ['epoch', getU64Decoder()],
  ['maximumFee', getU64Decoder()],
  ['basisPoints', getU16Decoder()],
])
export const TRANSFER_FEE_CONFIG = getStructDecoder([
  ['configAuthority', addressOrNone],
  ['withdrawAuthority', addressOrNone],
  ['withheldAmount', getU64Decoder()],
  ['olderFee', transferFee],
  ['newerFee', transferFee],
])
export const METADATA_POINTER = getStructDecoder([
  ['authority', addressOrNone],
  ['metadataAddress', addressOrNone],
])
export const TOKEN_METADATA = getStructDecoder([
  ['updateAuthority', addressOrNone],
  ['mint', address],
  ['name', text],
  ['symbol', text],
  ['uri', text],
])

/** Metaplex: the first byte of an account with a token's metadata. */
export const METADATA_KEY = 4
export const METADATA = getStructDecoder([
  ['key', getU8Decoder()],
  ['updateAuthority', address],
  ['mint', address],
  ['name', text],
  ['symbol', text],
  ['uri', text],
  ['sellerFeeBasisPoints', getU16Decoder()],
  [
    'creators',
    getNullableDecoder(getArrayDecoder(fixDecoderSize(getBytesDecoder(), 34), { size: getU32Decoder() })),
  ],
  ['primarySaleHappened', getBooleanDecoder()],
  ['isMutable', getBooleanDecoder()],
])

/** Of the program of pools, whose accounts begin with a discriminator. */
export const POOL_DISCRIMINATOR = 'f19a6d0411b16dbc'
export const POOL = getStructDecoder([
  ['discriminator', fixDecoderSize(getBytesDecoder(), 8)],
  ['bump', getU8Decoder()],
  ['index', getU16Decoder()],
  ['creator', address],
  ['baseMint', address],
  ['quoteMint', address],
])

/** What the bytes hold; null where they are too few, or lengths in them do not fit. */
export function decoded<Value>(decoder: Decoder<Value>, bytes: Uint8Array): Value | null {
  try {
    return decoder.decode(bytes)
  } catch {
    return null
  }
}
