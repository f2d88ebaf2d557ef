// Lines of a body, however its bytes are cut into chunks.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readLines, readText } from '../../src/client/body.ts'
import { Deadline } from '../../src/client/waiting.ts'
import { anyCharacter } from '../support/any-character.ts'

/** A body that arrives in chunks of these lengths, and the rest in one. */
function bodyOf(
  bytes: Uint8Array<ArrayBuffer>,
  lengths: readonly number[],
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0
  const rest = [...lengths]
  return new ReadableStream({
    pull(controller) {
      const end = Math.min(bytes.length, at + (rest.shift() ?? bytes.length))
      if (end > at) controller.enqueue(bytes.subarray(at, end))
      at = end
      if (at === bytes.length) controller.close()
    },
  })
}

const line = fc
  .string({ unit: anyCharacter, maxLength: 12 })
  .map((text) => text.replaceAll('\n', ' ').toWellFormed())
const chunks = fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 60 })

test('every whole line is read once, in order, and what follows the last line end is dropped', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 8 }), line, chunks, async (lines, last, lengths) => {
      const bytes = new TextEncoder().encode(lines.map((each) => `${each}\n`).join('') + last)
      const deadline = new Deadline(10_000)
      const read: string[] = []
      for await (const each of readLines(bodyOf(bytes, lengths), deadline)) read.push(each)
      deadline.end()
      expect(read).toEqual(lines)
    }),
  )
})

const noAbort = new AbortController().signal

test('a text is read whole', async () => {
  await fc.assert(
    fc.asyncProperty(line, chunks, async (text, lengths) => {
      const bytes = new TextEncoder().encode(text)
      expect(await readText(new Response(bodyOf(bytes, lengths)), bytes.length, noAbort)).toBe(text)
    }),
  )
})

test('what is no UTF-8 is refused', async () => {
  const body = bodyOf(Uint8Array.of(0x7b, 0xff, 0x0a), [1])
  await expect(readText(new Response(body), 10, noAbort)).rejects.toMatchObject({ code: 'invalid_response' })
})
