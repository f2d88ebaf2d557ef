// Whatever happens to the files: what is read is what was written, in order, and damage names exactly the events that are missing.
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { headerFrame, segmentNames } from '../../src/journal/segments/format.ts'
import { removeFolder, temporaryFolder } from '../store/support.ts'
import { appendNumbered, FOLDER_ID, numbersFrom, openTestJournal, readNumbered, SETTINGS } from './support.ts'

const EVENTS = 400
let origin: string
let folder: string
let names: string[]

beforeAll(async () => {
  origin = temporaryFolder()
  folder = join(origin, 'copy')
  const journal = await openTestJournal(join(origin, 'journal'), { segmentBytes: 4_000 })
  while (journal.lastEventNo < EVENTS) {
    appendNumbered(journal, 7)
    await journal.written(1_000)
  }
  await journal.close()
  names = readdirSync(join(origin, 'journal')).sort()
})
afterAll(() => removeFolder(origin))

const restore = (): void => {
  rmSync(folder, { recursive: true, force: true })
  cpSync(join(origin, 'journal'), folder, { recursive: true })
}

/** The number of the last event: a multiple of seven. */
const LAST = Math.ceil(EVENTS / 7) * 7

test('a whole journal is read from any event on, to any event', async () => {
  expect(names.length).toBeGreaterThan(5)
  restore()
  expect(await readNumbered(folder)).toEqual({ numbers: numbersFrom(1, LAST), damage: [], missing: [] })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: LAST }),
      fc.integer({ min: 1, max: LAST }),
      async (after, through) => {
        const { numbers, damage } = await readNumbered(folder, after, { throughEventNo: through })
        expect(damage).toEqual([])
        // Batches are not divided: each has seven events here.
        const [from, to] = [after - (after % 7) + 1, through <= after ? 0 : Math.ceil(through / 7) * 7]
        expect(numbers).toEqual(numbersFrom(from, to))
      },
    ),
    { numRuns: 20 },
  )
})

const changes = fc.array(
  fc.record({
    file: fc.nat(),
    kind: fc.constantFrom('flip', 'zeros', 'cut', 'delete', 'garbage'),
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    bytes: fc.integer({ min: 1, max: 900 }),
  }),
  { minLength: 1, maxLength: 4 },
)

test('damage of any kind: every event is read or named as missing', async () => {
  await fc.assert(
    fc.asyncProperty(changes, async (each) => {
      restore()
      for (const { file, kind, at, bytes } of each) {
        const path = join(folder, names[file % names.length])
        let content: Buffer
        try {
          content = readFileSync(path)
        } catch {
          continue
        }
        const from = Math.floor(at * content.length)
        if (kind === 'delete') rmSync(path)
        else if (kind === 'cut') truncateSync(path, from)
        else {
          if (kind === 'flip') content[from] ^= 1
          else
            content.fill(
              kind === 'zeros' ? 0 : 'MJ\xf5B',
              from,
              Math.min(content.length, from + bytes),
              'latin1',
            )
          writeFileSync(path, content)
        }
      }
      const { numbers, missing, damage } = await readNumbered(folder, 0, { throughEventNo: LAST })
      expect([...numbers, ...missing].sort((a, b) => a - b)).toEqual(numbersFrom(1, LAST))
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
      if (missing.length > 0) expect(damage.length).toBeGreaterThan(0)
    }),
    { numRuns: 60 },
  )
})

test('bytes that were being written at the end are no damage, but the same in an older segment are', async () => {
  restore()
  const newest = join(folder, names.at(-1)!)
  const bytes = readFileSync(newest)
  // Without the end frame, and without a part of the last batch.
  writeFileSync(newest, bytes.subarray(0, bytes.length - 200))
  const torn = await readNumbered(folder)
  expect(torn.damage).toEqual([])
  expect(torn.numbers).toEqual(numbersFrom(1, torn.numbers.length))
  expect(torn.numbers.length).toBeLessThan(LAST)
  writeFileSync(newest, bytes)
  const older = join(folder, names[1])
  truncateSync(older, readFileSync(older).length - 200)
  const cut = await readNumbered(folder)
  expect(cut.damage).toHaveLength(1)
  expect(cut.damage[0]).toMatchObject({ kind: 'invalid_bytes', file: names[1] })
  expect(cut.missing.length).toBeGreaterThan(0)
})

test('segments of another folder, of a newer format, and other files', async () => {
  restore()
  copyFileSync(join(folder, names[0]), join(folder, segmentNames.nameOf(5_000)))
  writeFileSync(join(folder, 'notes.txt'), 'hello')
  mkdirSync(join(folder, segmentNames.nameOf(6_000)))
  const found = await readNumbered(folder)
  expect(found.numbers).toEqual(numbersFrom(1, LAST))
  expect(found.damage.map(({ kind }) => kind)).toEqual(Array(3).fill('foreign_file'))
  const foreign = await readNumbered(folder, 0, { folderId: 'folder-2' })
  expect(foreign.numbers).toEqual([])
  const header = {
    folderId: FOLDER_ID,
    runId: 'r',
    originEventNo: 1,
    simulated: false,
    settings: SETTINGS,
    firstEventNo: 9_000,
    syncedEventNo: 1,
  }
  const newer = headerFrame(header).toString('latin1').replace('"format":1', '"format":2')
  writeFileSync(join(folder, segmentNames.nameOf(9_000)), Buffer.from(newer, 'latin1'))
  // The checksum is that of the old content: only a valid newer header counts.
  expect((await readNumbered(folder)).numbers).toEqual(numbersFrom(1, LAST))
})
