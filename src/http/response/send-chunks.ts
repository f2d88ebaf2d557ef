// Sends a body that is made in chunks as fast as the client reads: a slow reader holds one chunk.
import { type BodyWriter, NO_BYTES } from '../context.ts'

export interface ChunkSource {
  /** The next bytes; null at the end. Rejects where the rest cannot be made. */
  next(): Promise<Buffer | null>
  /** Gives up the rest. May be called at any time. */
  stop(): void
}

/**
 * Sends the chunks of a source. After one that fills the socket, waits until there is room. A source that fails cuts the
 * connection.
 * @param msMax how long it may take in all, a slow client's time included: the connection is cut then; null: for ever
 */
export async function sendChunks(
  source: ChunkSource,
  writer: BodyWriter,
  msMax: number | null = null,
): Promise<void> {
  let isClosed = false
  let resume = () => {}
  const timer = msMax === null ? null : setTimeout(() => writer.fail(), msMax)
  writer.onWritable(() => resume())
  writer.onClosed(() => {
    isClosed = true
    source.stop()
    resume()
  })
  try {
    for (let chunk = await source.next(); chunk !== null; chunk = await source.next()) {
      if (isClosed || writer.write(chunk) || isClosed) continue
      await new Promise<void>((resolve) => {
        resume = resolve
      })
    }
    writer.end(NO_BYTES)
  } catch {
    source.stop()
    writer.fail()
  } finally {
    if (timer !== null) clearTimeout(timer)
  }
}
