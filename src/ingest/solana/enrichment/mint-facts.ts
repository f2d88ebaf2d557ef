// What the accounts of a mint say: authorities, supply, the fee of transfers, and whether its metadata may change.
import { TOKEN_PROGRAMS } from '../programs.ts'
import type { Account } from '../sol-price.ts'
import {
  ACCOUNT_KIND_AT,
  ACCOUNT_KINDS,
  decoded,
  EXTENSION_TYPES,
  METADATA,
  METADATA_KEY,
  METADATA_POINTER,
  MINT,
  MINT_BYTES,
  TOKEN_ACCOUNT,
  TOKEN_ACCOUNT_BYTES,
  TOKEN_METADATA,
  TRANSFER_FEE_CONFIG,
} from './account-layouts.ts'

const [TOKEN_PROGRAM, TOKEN_2022_PROGRAM] = TOKEN_PROGRAMS
/** Metaplex's program of metadata. */
export const METADATA_PROGRAM = 'metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s'
/** Slots of an epoch of mainnet, since its first block. */
const EPOCH_SLOTS = 432_000
const EXTENSIONS_MAX = 64

export interface Metadata {
  isMutable: boolean
  /** Where its texts and picture are; null: it says nothing. */
  uri: string | null
}

export interface MintFacts {
  /** In the smallest unit. */
  supply: bigint
  decimals: number
  hasMintAuthority: boolean
  hasFreezeAuthority: boolean
  /** Transfers carry a fee, now or from an epoch that is set already. */
  hasTransferFee: boolean
  /** In the mint itself; null: it has none there. */
  metadata: Metadata | null
  /** Where else its metadata is; null: in no account, or where Metaplex has it. */
  metadataAddress: string | null
  /** Someone may point to other metadata. */
  hasPointerAuthority: boolean
}

/** Bytes of extensions by their type; null where they do not add up. */
function readExtensions(data: Uint8Array): Map<number, Uint8Array> | null {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const extensions = new Map<number, Uint8Array>()
  // What is left may be too short for one: programs leave zero bytes at the end.
  for (let at = ACCOUNT_KIND_AT + 1; at + 4 <= data.length; ) {
    const [type, length] = [view.getUint16(at, true), view.getUint16(at + 2, true)]
    if (type === 0) break
    const end = at + 4 + length
    if (end > data.length || extensions.size >= EXTENSIONS_MAX) return null
    extensions.set(type, data.subarray(at + 4, end))
    at = end
  }
  return extensions
}

/** The extensions of a mint; null where the account is no mint. */
function extensionsOf({ owner, data }: Account): Map<number, Uint8Array> | null {
  if (owner === TOKEN_PROGRAM) return data.length === MINT_BYTES ? new Map() : null
  if (owner !== TOKEN_2022_PROGRAM) return null
  if (data.length === MINT_BYTES) return new Map()
  const isMint = data.length > ACCOUNT_KIND_AT && data[ACCOUNT_KIND_AT] === ACCOUNT_KINDS.mint
  return isMint ? readExtensions(data) : null
}

/**
 * What a mint's account says; null where it is none, or cannot be read.
 * @param slot of the account; null: not known, and then a fee that has ended still counts
 */
export function readMintFacts(account: Account, slot: number | null): MintFacts | null {
  const extensions = extensionsOf(account)
  if (extensions === null) return null
  const mint = decoded(MINT, account.data)
  if (mint === null || !mint.isInitialized) return null
  const fee = readTransferFee(extensions.get(EXTENSION_TYPES.transferFeeConfig), slot)
  const pointer = extensions.get(EXTENSION_TYPES.metadataPointer)
  const pointed = pointer === undefined ? undefined : decoded(METADATA_POINTER, pointer)
  const texts = extensions.get(EXTENSION_TYPES.tokenMetadata)
  const metadata = texts === undefined ? undefined : decoded(TOKEN_METADATA, texts)
  if (fee === null || pointed === null || metadata === null) return null
  return {
    supply: mint.supply,
    decimals: mint.decimals,
    hasMintAuthority: mint.mintAuthority !== null,
    hasFreezeAuthority: mint.freezeAuthority !== null,
    hasTransferFee: fee,
    metadata: metadata ? { isMutable: metadata.updateAuthority !== null, uri: textOf(metadata.uri) } : null,
    metadataAddress: pointed?.metadataAddress ?? null,
    hasPointerAuthority: pointed !== undefined && pointed.authority !== null,
  }
}

/** Whether a transfer carries a fee; null where the extension cannot be read. */
function readTransferFee(bytes: Uint8Array | undefined, slot: number | null): boolean | null {
  if (bytes === undefined) return false
  const config = decoded(TRANSFER_FEE_CONFIG, bytes)
  if (config === null) return null
  const { olderFee, newerFee } = config
  const isAbove0 = ({ basisPoints, maximumFee }: typeof olderFee) => basisPoints > 0 && maximumFee > 0n
  // The older one is in force until the epoch of the newer one.
  const isOver = slot !== null && BigInt(Math.floor(slot / EPOCH_SLOTS)) >= newerFee.epoch
  return isAbove0(newerFee) || (!isOver && isAbove0(olderFee))
}

/** A mint's metadata as Metaplex has it; null where the account is none of this mint. */
export function readMetadata(account: Account, mint: string): Metadata | null {
  if (account.owner !== METADATA_PROGRAM || account.data[0] !== METADATA_KEY) return null
  const metadata = decoded(METADATA, account.data)
  if (metadata === null || metadata.mint !== mint) return null
  return { isMutable: metadata.isMutable, uri: textOf(metadata.uri) }
}

/** Texts are filled up with zero bytes. */
const textOf = (text: string): string | null => text.replaceAll('\0', '').trim() || null

export interface TokenAccount {
  mint: string
  owner: string
  /** In the smallest unit. */
  amount: bigint
}

/** What a wallet's account of a token says; null where it is none. */
export function readTokenAccount({ owner, data }: Account): TokenAccount | null {
  if (!TOKEN_PROGRAMS.includes(owner) || data.length < TOKEN_ACCOUNT_BYTES) return null
  const isOther = data.length > TOKEN_ACCOUNT_BYTES && data[ACCOUNT_KIND_AT] !== ACCOUNT_KINDS.account
  return isOther ? null : decoded(TOKEN_ACCOUNT, data)
}
