/** Chunks as one; null where they are larger than `bytesMax`. @param onChunk told of each */
export async function readBounded(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytesMax: number,
  onChunk = () => {},
): Promise<Buffer | null> {
  const read: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    onChunk()
    bytes += chunk.byteLength
    if (bytes > bytesMax) return null
    read.push(chunk)
  }
  return Buffer.concat(read)
}

/** The body of an answer as text; null where it is larger than `bytesMax`. @param onChunk told of each part of it that comes */
export const readBoundedText = async (
  { body }: Response,
  bytesMax: number,
  onChunk?: () => void,
): Promise<string | null> => (await readBounded(body ?? [], bytesMax, onChunk))?.toString('utf8') ?? null
