// Segments that leave the journal while others are being made durable: none is passed over.
import { expect, test } from 'vitest'
import { ClosedSegments } from '../../src/journal/writer/closed-segments.ts'
import type { Disk, DiskFile } from '../../src/lib/disk/disk.ts'

test('a segment that is deleted during a sync does not keep a later one from being synced', async () => {
  const synced: string[] = []
  const started = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const fileOf = (name: string): DiskFile =>
    ({
      sync: async () => {
        started.resolve()
        await gate.promise
        synced.push(name)
      },
      write: async () => {},
      close: async () => {},
    }) as unknown as DiskFile
  const disk = { unlink: async () => {}, syncFolder: async () => {} } as unknown as Disk
  const end = { segments: [], voidSegments: [], lastEventNo: 0, syncedEventNo: 0 } as never
  const closed = new ClosedSegments({ disk, folder: '/journal', end, onUnreadable: () => {} })
  const names = ['a', 'b', 'c']
  for (const [index, name] of names.entries())
    closed.add({
      ...{ name, lastEventNo: index + 1, bytes: 1, file: fileOf(name) },
      state: index === 0 ? 'durable' : 'unsynced',
    })
  const syncing = closed.syncFiles()
  await started.promise
  await closed.removeThrough(1)
  gate.resolve()
  await syncing
  expect(synced).toEqual(['b', 'c'])
})
