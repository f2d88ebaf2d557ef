// The format of lines, and that a scan returns the records that were written, whatever they hold.
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DiskFile } from '../../../src/lib/disk/disk.ts'
import { SCAN_CHUNK_BYTES } from '../../../src/lib/segments/limits.ts'
import { scan } from '../../../src/lib/segments/scan.ts'
import { RECORD_BYTES_MAX } from '../../../src/store/log/limits.ts'
import * as format from '../../../src/store/log/segments/format.ts'
import { anyCharacter } from '../../support/any-character.ts'

/** A file whose reads return at most `atOnce` bytes. */
const fileOf = (bytes: Buffer, atOnce = Infinity): DiskFile =>
  ({
    read: async (into: Uint8Array, offset: number) =>
      bytes.copy(into, 0, offset, Math.min(bytes.length, offset + atOnce)),
  }) as Partial<DiskFile> as DiskFile

async function scanned(bytes: Buffer, atOnce?: number) {
  const found: { kind: string | null; offset: number; length: number; payload: string }[] = []
  for await (const { head, offset, length, frame } of scan(fileOf(bytes, atOnce), format.logFormat)) {
    const payload = head === null ? '' : format.payloadOf(frame).toString()
    found.push({ kind: head?.kind ?? null, offset, length, payload })
  }
  return found
}

test('a record is a line of text: length, CRC-32 and JSON', () => {
  const lines = new format.LineBuffer()
  const rows = format.rowsText([
    { table: 'training', json: '{"a":1}' },
    { table: 'xp_ledger', json: '{"b":"é"}' },
  ])
  const length = lines.add(format.commitText(42, 40, 1_763_718_000_000, rows))
  const json =
    '{"lsn":42,"afterLsn":40,"knownAt":1763718000000,"rows":[["training",{"a":1}],["xp_ledger",{"b":"é"}]]}'
  expect(lines.bytes.toString()).toBe(`00000067 ${crc32(json).toString(16).padStart(8, '0')} ${json}\n`)
  expect(length).toBe(lines.bytes.length)
  expect(Buffer.byteLength(json)).toBe(0x67)
  expect(() => format.rowsText([{ table: 'training', json: '{\n}' }])).toThrow('a row is one line')
})

test('a segment is named after its first LSN, and no other name is taken for a segment', () => {
  expect(format.segmentNames.nameOf(42)).toBe('00000000000000000042.log')
  expect(format.segmentNames.numberOf('00000000000000000042.log')).toBe(42)
  for (const name of ['42.log', '00000000000000000042.log.damaged', '99999999999999999999.log', 'next.tmp'])
    expect(format.segmentNames.numberOf(name)).toBeNull()
})

test('records with any content are read back unchanged, whatever the size of each read', async () => {
  const text = fc.string({ unit: anyCharacter, maxLength: 200 })
  const rows = fc.array(fc.record({ text, times: fc.constantFrom(1, 1, 1, 40) }), {
    minLength: 1,
    maxLength: 12,
  })
  await fc.assert(
    fc.asyncProperty(rows, fc.integer({ min: 500, max: 50_000 }), async (values, atOnce) => {
      const lines = new format.LineBuffer()
      const payloads = values.map((value, index) => {
        const json = JSON.stringify({ text: value.text.toWellFormed().repeat(value.times) })
        return format.commitText(index + 1, 0, 1, format.rowsText([{ table: 'training', json }]))
      })
      for (const payload of payloads) lines.add(payload)
      const found = await scanned(lines.bytes, atOnce)
      expect(found.map(({ payload }) => payload)).toEqual(payloads)
      expect(found.every(({ kind }) => kind === 'entries')).toBe(true)
      expect(format.parseRows(Buffer.from(payloads[0]))).toHaveLength(1)
    }),
    { numRuns: 30 },
  )
})

test('the largest record is read back, and a line that claims to be longer is skipped', async () => {
  const lines = new format.LineBuffer()
  const frame = format.commitText(1, 0, 1, '["training",{"a":""}]').length
  const json = `{"a":"${'x'.repeat(RECORD_BYTES_MAX - frame)}"}`
  lines.add(format.commitText(1, 0, 1, format.rowsText([{ table: 'training', json }])))
  const largest = lines.bytes
  expect(largest.length).toBe(RECORD_BYTES_MAX + format.FRAME_BYTES)
  expect((await scanned(largest)).map(({ kind }) => kind)).toEqual(['entries'])
  const claiming = Buffer.from(largest)
  claiming.write((RECORD_BYTES_MAX + 1).toString(16).padStart(8, '0'), 'latin1')
  expect(await scanned(Buffer.concat([claiming, largest]))).toMatchObject([
    { kind: null, offset: 0, length: largest.length },
    { kind: 'entries', offset: largest.length },
  ])
})

test('damage affects only the lines that it touches, at any place relative to the chunks of the scan', async () => {
  const lines = new format.LineBuffer()
  const ends: number[] = []
  for (let lsn = 1; lines.length < SCAN_CHUNK_BYTES + 60_000; lsn++) {
    const json = JSON.stringify({ text: 'x'.repeat((lsn * 37) % 500) })
    lines.add(format.commitText(lsn, 0, 1, format.rowsText([{ table: 'training', json }])))
    ends.push(lines.length)
  }
  const whole = Buffer.from(lines.bytes)
  const near = fc.integer({ min: -600, max: 600 }).map((by) => SCAN_CHUNK_BYTES + by)
  const filling = fc.constantFrom('x', '\0', ' {"', '00000020 ')
  await fc.assert(
    fc.asyncProperty(near, fc.integer({ min: 1, max: 900 }), filling, async (from, length, text) => {
      const to = from + length
      const found = await scanned(Buffer.from(whole).fill(text, from, to))
      const untouched = ends.filter((end, index) => end <= from || (ends[index - 1] ?? 0) >= to).length
      expect(found.filter(({ kind }) => kind === 'entries').length).toBeGreaterThanOrEqual(untouched)
    }),
    { numRuns: 30 },
  )
})

test('a scan of arbitrary bytes ends, and its items cover every byte once, but for zeros at the end', async () => {
  const line = fc.constant('0000000e 00000000 {"end":true}\n')
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    line,
    fc.constant('\0'.repeat(40)),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 20 }), async (pieces) => {
      const bytes = Buffer.from(pieces.join(''), 'latin1')
      const found = await scanned(bytes, 13)
      let at = 0
      for (const { offset, length } of found) {
        expect(offset).toBe(at)
        at += length
      }
      expect(at).toBe(bytes.toString('latin1').replace(/\0+$/, '').length)
    }),
    { numRuns: 100 },
  )
})
