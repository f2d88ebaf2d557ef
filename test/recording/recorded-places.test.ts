// Which trades of the chain are recorded already: read from the journal as a start has found it.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { EventJournal } from '../../src/journal/journal.ts'
import { findEnd } from '../../src/journal/reader.ts'
import { nodeDisk } from '../../src/lib/disk/disk.ts'
import { readRecordedPlaces } from '../../src/server/recorded-places.ts'
import { cutAfterLongSync, FOLDER_ID, NOON_MS, numbersFrom, tradeAt } from '../journal/support.ts'
import { removeFolder, temporaryFolder } from '../store/support.ts'

function appendPlaced(journal: EventJournal, count: number): void {
  for (let appended = 0; appended < count; appended++) {
    const slot = journal.lastEventNo + 1
    const trade = { ...tradeAt(slot), tx: `t${slot}`, slot, eventIndex: 0 }
    journal.append(trade, NOON_MS + slot, NOON_MS, 'solana', 100)
  }
}

test('trades that nothing in the journal shows to have been durable are found all the same', async () => {
  const folder = temporaryFolder()
  onTestFinished(() => removeFolder(folder))
  const disk = await cutAfterLongSync('/journal', '/journal.mark', appendPlaced)
  for (const name of disk.fileNames)
    if (name.endsWith('.events')) writeFileSync(join(folder, name), disk.file(name))
  const folders = { journalFolder: folder, checkpointFolder: folder, folderId: FOLDER_ID }
  const { lastEventNo } = await findEnd({ folder, folderId: FOLDER_ID }, 20, nodeDisk)
  const within = { afterEventNo: 0, throughEventNo: lastEventNo }
  const places = await readRecordedPlaces('solana', folders, within)
  expect(places.map(({ slot }) => slot)).toEqual(numbersFrom(21, 30))
})
