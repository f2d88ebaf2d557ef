/** Chunks as one; null where they are larger than `bytesMax`. */
export async function readBounded(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytesMax: number,
): Promise<Buffer | null> {
  const read: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > bytesMax) return null
    read.push(chunk)
  }
  return Buffer.concat(read)
}

/** The body of an answer as text; null where it is larger than `bytesMax`. */
export const readBoundedText = async ({ body }: Response, bytesMax: number): Promise<string | null> =>
  (await readBounded(body ?? [], bytesMax))?.toString('utf8') ?? null
