// Reads bodies within bounds: a whole text, or lines one after another.
import { MintlakeError } from './errors.ts'
import { LINE_CHARACTERS_MAX, STREAM_SILENCE_MS_MAX } from './limits.ts'
import type { Deadline } from './waiting.ts'

/** The bytes of a body as they come. Ends a read that waits as soon as the signal is aborted, also where fetch leaves it waiting. */
async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader()
  // Frees the connection. The body may have failed already, which does not matter any more.
  const discard = (): Promise<void> => reader.cancel().catch(() => {})
  signal.addEventListener('abort', discard)
  try {
    for (;;) {
      const { value, done } = await reader.read()
      signal.throwIfAborted()
      if (done) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', discard)
    await discard()
  }
}

/**
 * The whole body as text.
 * @throws MintlakeError `response_too_large`, `invalid_response` (no UTF-8), or the reason of the signal.
 */
export async function readText({ body }: Response, bytesMax: number, signal: AbortSignal): Promise<string> {
  if (body === null) return ''
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let text = ''
  let bytes = 0
  for await (const chunk of chunksOf(body, signal)) {
    bytes += chunk.length
    if (bytes > bytesMax)
      throw new MintlakeError('response_too_large', `The answer is longer than ${bytesMax} bytes`)
    text += decode(decoder, chunk)
  }
  return text + decode(decoder)
}

/** Of the lines of a stream. */
export interface LineBounds {
  /** A stream that completes no line for this long is cut and resumed. Must be more than the 15 s between heartbeats. */
  silenceMsMax?: number | undefined
  lineCharactersMax?: number | undefined
}

/**
 * The lines of a body, without their ends. What follows the last line end is no line and is dropped. A line has to be complete
 * within the silence that is allowed; the time that the caller takes for it does not count.
 * @throws MintlakeError `response_too_large` for a line that is too long, `invalid_response` (no UTF-8).
 */
export async function* readLines(
  body: ReadableStream<Uint8Array>,
  deadline: Deadline,
  { lineCharactersMax = LINE_CHARACTERS_MAX, silenceMsMax = STREAM_SILENCE_MS_MAX }: LineBounds = {},
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let rest = ''
  deadline.restart(silenceMsMax)
  for await (const chunk of chunksOf(body, deadline.signal)) {
    const [first = '', ...more] = decode(decoder, chunk).split('\n')
    rest += first
    for (const next of more) {
      deadline.pause()
      checkLength(rest, lineCharactersMax)
      yield rest
      rest = next
    }
    checkLength(rest, lineCharactersMax)
    if (more.length > 0) deadline.restart(silenceMsMax)
  }
}

function decode(decoder: InstanceType<typeof TextDecoder>, bytes?: Uint8Array): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
  } catch (cause) {
    throw new MintlakeError('invalid_response', 'The answer is not UTF-8', { cause })
  }
}

function checkLength(line: string, charactersMax: number): void {
  if (line.length <= charactersMax) return
  throw new MintlakeError('response_too_large', `A line is longer than ${charactersMax} characters`)
}
