// Damaged log files: intact records are read and the damage is reported. Power cuts are tested in crash.test.ts.

import fc from 'fast-check'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { NumberRange } from '../../../src/lib/segments/types.ts'
import { openLog } from '../../../src/store/log/log.ts'
import { readLog } from '../../../src/store/log/reader.ts'
import type { Position, ReadReport } from '../../../src/store/log/types.ts'
import { quiet } from '../../support/disk/cuts.ts'
import { SimulatedDisk, systemError } from '../../support/disk/simulated-disk.ts'
import { NOON_MS, quietLog } from '../support.ts'
import { clockAt, rowOf } from './rows.ts'

interface Line {
  lsn: number
  file: string
  position: Position
}

/** Files of one log, and the acknowledged commits in them. */
interface Sample {
  files: Map<string, Buffer>
  lines: Line[]
}

const FIRST = '00000000000000000001.log'
const THIRD = '00000000000000000007.log'
const LAST = '00000000000000000012.log'

const optionsOn = (disk: SimulatedDisk) => ({
  disk,
  folder: '/log',
  logId: 'test',
  clock: clockAt(() => NOON_MS),
  log: quietLog,
  flushed: { lsn: 0, knownAtMs: 0 },
})

/** Segments of LSN 1-3, 4-6, 7-9 (and 10-11, which a failed sync made void), and 12-16, which may have been ended. */
async function makeSample(isEnded: boolean): Promise<Sample> {
  const disk = new SimulatedDisk()
  const lines: Line[] = []
  const log = await openLog(optionsOn(disk), () => undefined)
  const append = async (commits: number): Promise<void> => {
    for (let count = 0; count < commits; count++) {
      const { lsn, position } = await log.append([rowOf(`c${lsn0()}`)])
      lines.push({ lsn, file: `${String(position.segment).padStart(20, '0')}.log`, position })
    }
  }
  const lsn0 = (): number => lines.length
  await append(3)
  await log.seal()
  await append(3)
  await log.seal()
  await append(3)
  disk.fail('sync', 'EIO')
  await Promise.allSettled([log.append([rowOf('void')]), log.append([rowOf('void')])])
  await append(5)
  if (isEnded) await log.close()
  await quiet()
  return { files: new Map(disk.fileNames.map((name) => [name, disk.file(name)])), lines }
}

const endedSample = await makeSample(true)
const openSample = await makeSample(false)
const ALL = endedSample.lines.map(({ lsn }) => lsn)

let disk: SimulatedDisk

const restore = (sample: Sample): void => {
  disk = new SimulatedDisk()
  for (const [name, bytes] of sample.files) disk.put(name, Buffer.from(bytes))
}
beforeEach(() => restore(endedSample))

async function read(afterLsn = 0): Promise<{ report: ReadReport; lsns: number[]; ids: string[] }> {
  const lsns: number[] = []
  const ids: string[] = []
  const report = await readLog({ ...optionsOn(disk), afterLsn }, (record) => {
    lsns.push(record.lsn)
    ids.push(String(record.rows()[0][1].analysis_id))
  })
  return { report, lsns, ids }
}

const positionOf = (lsn: number, sample = endedSample): Position =>
  sample.lines.find((line) => line.lsn === lsn)!.position
const flip = (name: string, at: number): void => {
  const bytes = Buffer.from(disk.file(name))
  bytes[at] ^= 0x20
  disk.put(name, bytes)
}
const cutTo = (name: string, bytes: number): void => disk.put(name, disk.file(name).subarray(0, bytes))
const append = (name: string, bytes: Uint8Array): void =>
  disk.put(name, Buffer.concat([disk.file(name), bytes]))
const without = (...lsns: number[]): number[] => ALL.filter((lsn) => !lsns.includes(lsn))

describe('an undamaged log', () => {
  test.each([
    ['closed', endedSample],
    ['left open', openSample],
  ])('that was %s is read without damage: each commit once, no void one', async (_, sample) => {
    restore(sample)
    const { report, lsns, ids } = await read()
    expect(lsns).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16])
    expect(ids).not.toContain('void')
    expect(report).toMatchObject({ damage: [], commits: 14, lastLsn: 16 })
    expect(report.segments.map(({ firstLsn, lastLsn }) => [firstLsn, lastLsn])).toEqual([
      [1, 3],
      [4, 6],
      [7, 9],
      [12, 16],
    ])
  })

  test('can be read after any LSN and up to any segment', async () => {
    expect((await read(5)).lsns).toEqual([6, 7, 8, 9, 12, 13, 14, 15, 16])
    const lsns: number[] = []
    await readLog({ ...optionsOn(disk), afterLsn: 2, throughLsn: 6 }, ({ lsn }) => void lsns.push(lsn))
    expect(lsns).toEqual([3, 4, 5, 6])
  })

  test('gives each record a position, by which it can be read', async () => {
    const log = await openLog(optionsOn(disk), () => undefined)
    for (const { lsn, position } of endedSample.lines) expect((await log.read(position)).lsn).toBe(lsn)
    const wrong = { ...positionOf(5), offset: positionOf(5).offset + 1 }
    await expect(log.read(wrong)).rejects.toMatchObject({ code: 'damaged_record' })
    await expect(log.read({ ...wrong, segment: 99 })).rejects.toMatchObject({ code: 'segment_removed' })
  })
})

test.each([
  ['the newest segment', openSample, LAST],
  ['the newest segment, which was ended', endedSample, LAST],
  ['an older segment', endedSample, FIRST],
])(
  'zeros at the end of %s are neither damage nor a torn tail: the writer puts them there',
  async (_, sample, name) => {
    restore(sample)
    const { highestLsn } = (await read()).report
    append(name, Buffer.alloc(70_000))
    const { report, lsns } = await read()
    expect(lsns).toEqual(ALL)
    expect(report).toMatchObject({ damage: [], tornTails: [], highestLsn })
  },
)

describe('a torn tail, not damage, is', () => {
  test.each([
    ['garbage at the end of the newest segment', () => append(LAST, Buffer.from('no record\n'.repeat(9)))],
    ['half a line at the end of the newest segment', () => append(LAST, disk.file(LAST).subarray(100, 150))],
  ])('%s', async (_, damage) => {
    restore(openSample)
    damage()
    const { report, lsns } = await read()
    expect(lsns).toEqual(ALL)
    expect(report.damage).toEqual([])
    const { offset, length } = positionOf(16, openSample)
    expect(report.tornTails).toMatchObject([{ file: LAST, fromByte: offset + length }])
  })

  test('garbage before a segment whose header shows that nothing was lost', async () => {
    append(FIRST, Buffer.from('no record'))
    const { report, lsns } = await read()
    expect(lsns).toEqual(ALL)
    expect(report.damage).toEqual([])
    expect(report.tornTails).toMatchObject([{ file: FIRST }])
  })

  test('a cut in the last group of a log that was not closed, which looks like a torn write', async () => {
    restore(openSample)
    cutTo(LAST, positionOf(16, openSample).offset + 30)
    const { report, lsns } = await read()
    expect(lsns).toEqual(without(16))
    expect(report.damage).toEqual([])
    expect(report.tornTails).toHaveLength(1)
    // Its LSN is not assigned again.
    const log = await openLog(optionsOn(disk), () => undefined)
    expect((await log.append([rowOf('next')])).lsn).toBeGreaterThan(16)
  })
})

describe('damage is reported with its bytes and the lost commits, and all other records are used:', () => {
  const lost = (from: number, to = from): NumberRange => ({ from, to })

  test('a flipped byte', async () => {
    const { offset, length } = positionOf(8)
    flip(THIRD, offset + 40)
    const { report, lsns } = await read()
    expect(lsns).toEqual(without(8))
    expect(report.damage).toEqual([
      { kind: 'invalid_bytes', file: THIRD, fromByte: offset, toByte: offset + length, missing: lost(8) },
    ])
  })

  test.each([
    ['a flipped byte in the last line of a closed log', () => flip(LAST, positionOf(16).offset + 50), 16],
    ['a closed log that was cut', () => cutTo(LAST, positionOf(15).offset), 15],
  ])('%s', async (_, damage, firstLost) => {
    damage()
    const { report, lsns } = await read()
    expect(lsns).toEqual(ALL.filter((lsn) => lsn < firstLost))
    // The end record was cut off as well: the rest looks like a torn tail.
    if (firstLost === 16) expect(report.damage).toMatchObject([{ missing: lost(16) }])
    else expect(report.damage).toEqual([])
  })

  test('a flipped byte in the last lines of a log that was not closed and has no mark', async () => {
    for (const lsn of [15, 16]) {
      const { offset, length } = positionOf(lsn, openSample)
      // What looks like a part that a power cut left: a line without its beginning, or with a zero in it.
      const looksTorn = (at: number): boolean => (at >= 17 && at < 20) || at === 8
      for (let at = 0; at < length - 1; at++) {
        restore(openSample)
        flip(LAST, offset + at)
        const { report, lsns } = await read()
        expect(lsns, `byte ${at}`).toEqual(without(lsn))
        const damage = { fromByte: offset, toByte: offset + length, missing: lost(lsn) }
        // A commit behind it tells what was durable.
        if (lsn === 15 || !looksTorn(at)) expect(report.damage, `byte ${at}`).toMatchObject([damage])
        else expect(report).toMatchObject({ damage: [], tornTails: [{ fromByte: offset }] })
      }
    }
  })

  test('a flipped byte in a group of which nothing behind it tells that it was durable', async () => {
    disk = new SimulatedDisk()
    const written = await openLog(optionsOn(disk), () => undefined)
    const group = await Promise.all(['a', 'b', 'c', 'd'].map((id) => written.append([rowOf(id)])))
    await quiet()
    disk = disk.afterKill()
    const { offset } = group[2].position
    flip(FIRST, offset + 40)
    expect(await read()).toMatchObject({ lsns: [1, 2, 4], report: { damage: [{ missing: lost(3) }] } })
    // It is told until the segment is set aside, and what was behind it is not void.
    const log = await openLog(optionsOn(disk), () => undefined)
    expect(log.recovered.damage).toMatchObject([{ missing: lost(3) }])
    expect((await log.append([rowOf('next')])).lsn).toBe(5)
    expect(await read()).toMatchObject({ lsns: [1, 2, 4, 5], report: { damage: [{ missing: lost(3) }] } })
  })

  test('a segment that was cut', async () => {
    cutTo(THIRD, positionOf(8).offset + 7)
    const { report, lsns } = await read()
    expect(lsns).toEqual(without(8, 9))
    expect(report.damage).toMatchObject([{ kind: 'invalid_bytes', file: THIRD, missing: lost(8, 9) }])
  })

  test('of commits that are read, and no others: those before them are stored elsewhere', async () => {
    cutTo(THIRD, positionOf(8).offset + 7)
    expect((await read(8)).report.damage).toMatchObject([{ file: THIRD, missing: lost(9) }])
    expect((await read(9)).report.damage).toEqual([])
    flip(LAST, positionOf(14).offset + 40)
    const log = await openLog({ ...optionsOn(disk), flushed: { lsn: 14, knownAtMs: 0 } }, () => undefined)
    expect(log.recovered.damage).toEqual([])
  })

  test('a segment that is missing, in the middle and at the beginning', async () => {
    disk.put('00000000000000000004.log', null)
    expect(await read()).toMatchObject({
      lsns: without(4, 5, 6),
      report: { damage: [{ kind: 'missing', file: null, missing: lost(4, 6) }] },
    })
    disk.put(FIRST, null)
    expect(await read()).toMatchObject({
      lsns: without(1, 2, 3, 4, 5, 6),
      report: { damage: [{ kind: 'missing', file: null, missing: lost(1, 6) }] },
    })
    expect((await read(6)).report.damage).toEqual([])
  })

  test('an empty file', async () => {
    cutTo('00000000000000000004.log', 0)
    const { report, lsns } = await read()
    expect(lsns).toEqual(without(4, 5, 6))
    expect(report.damage).toMatchObject([
      { kind: 'invalid_header', file: '00000000000000000004.log', missing: lost(4, 6) },
    ])
    restore(endedSample)
    cutTo(LAST, 0)
    expect((await read()).report.damage).toMatchObject([
      { kind: 'invalid_header', file: LAST, missing: null },
    ])
  })

  test('a damaged header loses no commit, and void ones stay void', async () => {
    flip(LAST, 60)
    const { report, lsns, ids } = await read()
    expect(lsns).toEqual(ALL)
    expect(ids).not.toContain('void')
    expect(report.damage).toMatchObject([{ kind: 'invalid_header', file: LAST, fromByte: 0, missing: null }])
  })

  test('a damaged newline loses no commit', async () => {
    const { offset, length } = positionOf(8)
    flip(THIRD, offset + length - 1)
    const { report, lsns } = await read()
    expect(lsns).toEqual(ALL)
    expect(report.damage).toMatchObject([
      { fromByte: offset + length - 1, toByte: offset + length, missing: null },
    ])
  })

  test('missing or overwritten bytes that include a newline lose no other commit', async () => {
    const { offset, length } = positionOf(8)
    const bytes = disk.file(THIRD)
    disk.put(THIRD, Buffer.concat([bytes.subarray(0, offset + length - 1), bytes.subarray(offset + length)]))
    expect((await read()).lsns).toEqual(ALL)
    disk.put(THIRD, Buffer.from(bytes).fill(0, offset, offset + length))
    expect((await read()).lsns).toEqual(without(8))
    disk.put(THIRD, Buffer.from(bytes).fill('{"', offset - 30, offset + length))
    expect((await read()).lsns).toEqual(without(7, 8))
  })

  test('a file under a wrong name, a segment of another log and any other file are not used', async () => {
    disk.put('00000000000000000099.log', disk.file(THIRD))
    disk.put('00000000000000000005.log', Buffer.from(foreignHeader))
    disk.put('notes.txt', Buffer.from('hello'))
    disk.put('next.tmp', Buffer.from('hello'))
    const { report, lsns } = await read()
    expect(lsns).toEqual(ALL)
    expect(report.damage.map(({ kind, file }) => `${kind} ${file}`)).toEqual([
      'foreign_file 00000000000000000005.log',
      'foreign_file 00000000000000000099.log',
      'foreign_file notes.txt',
    ])
    const log = await openLog(optionsOn(disk), () => undefined)
    expect((await log.append([rowOf('next')])).lsn).toBe(100)
  })

  test('a line that occurs twice is used once', async () => {
    const { offset, length } = positionOf(8)
    const bytes = disk.file(THIRD)
    const line = bytes.subarray(offset, offset + length)
    disk.put(THIRD, Buffer.concat([bytes.subarray(0, offset), line, bytes.subarray(offset)]))
    const { report, lsns } = await read()
    expect(lsns).toEqual(ALL)
    expect(report.damage).toMatchObject([{ kind: 'out_of_order', file: THIRD, missing: null }])
  })

  test('a segment that the operating system cannot read', async () => {
    const open = disk.open.bind(disk)
    vi.spyOn(disk, 'open').mockImplementation((path) =>
      path.endsWith(THIRD) ? Promise.reject(systemError('EIO')) : open(path),
    )
    const { report, lsns } = await read()
    expect(lsns).toEqual(without(7, 8, 9))
    expect(report.damage).toMatchObject([{ kind: 'unreadable', file: THIRD, missing: lost(7, 9) }])
  })

  test('is still reported after the log was opened and written to', async () => {
    flip(LAST, positionOf(16).offset + 50)
    const log = await openLog(optionsOn(disk), () => undefined)
    expect((await log.append([rowOf('next')])).lsn).toBeGreaterThan(16)
    await log.close()
    expect((await read()).report.damage).toMatchObject([{ file: LAST, missing: lost(16) }])
  })

  test('a log of a newer format is refused as a whole', async () => {
    const payload = '{"format":2,"anything":true}'
    const { crc32 } = await import('node:zlib')
    const frame = (value: number): string => value.toString(16).padStart(8, '0')
    disk.put(LAST, Buffer.from(`${frame(payload.length)} ${frame(crc32(payload))} ${payload}\n`))
    await expect(read()).rejects.toMatchObject({ code: 'unknown_format' })
    await expect(read()).rejects.toThrow(/has format 2, and this version reads up to 1/)
  })
})

const foreignHeader = await (async () => {
  const other = new SimulatedDisk()
  const log = await openLog(
    { ...optionsOn(other), logId: 'other', flushed: { lsn: 4, knownAtMs: 0 } },
    () => undefined,
  )
  await log.append([rowOf('foreign')])
  return other.file('00000000000000000005.log')
})()

/** A random fault of one file. */
const fault = fc.record({
  file: fc.constantFrom(...endedSample.files.keys()),
  kind: fc.constantFrom('flip', 'zeros', 'garbage', 'cut', 'insert', 'remove') as fc.Arbitrary<
    'flip' | 'zeros' | 'garbage' | 'cut' | 'insert' | 'remove'
  >,
  at: fc.double({ min: 0, max: 0.9999, noNaN: true }),
  length: fc.integer({ min: 1, max: 200 }),
  bit: fc.integer({ min: 0, max: 7 }),
})

function apply({
  file,
  kind,
  at,
  length,
  bit,
}: {
  file: string
  kind: string
  at: number
  length: number
  bit: number
}) {
  if (!disk.fileNames.includes(file)) return
  const bytes = Buffer.from(disk.file(file))
  const offset = Math.floor(at * bytes.length)
  if (kind === 'flip' && bytes.length > 0) bytes[offset] ^= 1 << bit
  const end = Math.min(offset + length, bytes.length)
  if (kind === 'zeros') bytes.fill(0, offset, end)
  if (kind === 'garbage') bytes.fill('0000 {"}\n', offset, end)
  if (kind === 'cut') return disk.put(file, bytes.subarray(0, offset))
  if (kind === 'insert') {
    const inserted = bytes.subarray(offset, end)
    return disk.put(file, Buffer.concat([bytes.subarray(0, offset), inserted, bytes.subarray(offset)]))
  }
  disk.put(file, kind === 'remove' ? null : bytes)
}

/** Whether the line of a commit is unchanged. */
const isWhole = (sample: Sample, { file, position: { offset, length } }: Line): boolean =>
  disk.fileNames.includes(file) &&
  disk
    .file(file)
    .subarray(offset, offset + length)
    .equals(sample.files.get(file)!.subarray(offset, offset + length))

const RUNS = Number(process.env.MINTLAKE_TEST_LOG_FAULTS ?? 40)

describe.each([
  ['closed', endedSample],
  ['left open', openSample],
])('after random damage to the files of a log that was %s', (_, sample) => {
  test('what is read is correct, what is lost is reported, and the log can be written to', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fault, { minLength: 1, maxLength: 4 }), async (faults) => {
        restore(sample)
        for (const each of faults) apply(each)
        const { report, lsns, ids } = await read()
        // Correct: each commit once, in order, with its own rows, and none that was not acknowledged.
        expect(lsns).toEqual([...new Set(lsns)].sort((a, b) => a - b))
        const places = lsns.map((lsn) => sample.lines.findIndex((line) => line.lsn === lsn))
        const isVoidKnown = disk.fileNames.includes(LAST) && isWhole(sample, sample.lines[9])
        if (isVoidKnown) expect(ids).toEqual(places.map((place) => `c${place}`))
        // Reported: in a range of missing commits. Commits after the last proven one need not be.
        const isReported = (lsn: number): boolean =>
          report.damage.some(({ missing }) => missing !== null && missing.from <= lsn && lsn <= missing.to)
        const found = new Set(lsns)
        const unproven = report.tornTails.some(({ file }) => file === disk.fileNames.at(-1))
        const last = disk.fileNames.at(-1) ?? ''
        for (const line of sample.lines) {
          if (found.has(line.lsn) || isReported(line.lsn)) continue
          // Where the newest files are missing or cut, nothing shows what they held.
          expect(line.file >= last).toBe(true)
          expect(unproven || !isWhole(sample, line)).toBe(true)
        }
        // New LSNs are higher than all that were read, and the next process reads the same commits and the new one.
        const log = await openLog(optionsOn(disk), () => undefined)
        const { lsn } = await log.append([rowOf('next')])
        expect(lsn).toBeGreaterThan(Math.max(0, ...lsns))
        await log.close()
        const again = await read()
        expect(again.lsns).toEqual([...lsns, lsn])
      }),
      { numRuns: RUNS },
    )
  })
})
