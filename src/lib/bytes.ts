/** Bytes of a megabyte, as settings and messages count them. */
export const MEGABYTE = 1_048_576

/** A text's bytes in memory of their own: one that is kept must not pin Node's pool of small buffers, 8 KiB for a few of them. */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}
