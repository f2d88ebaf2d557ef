// What a start says that cannot succeed. Each ends at once, with a sentence.
import { symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startServer } from '../../src/http/server.ts'
import { makeFolder, makeFolderNow } from '../../src/lib/files.ts'
import { openTestStore, removeFolder, temporaryFolder } from '../store/support.ts'

const error = async (work: () => Promise<unknown> | unknown): Promise<string> => {
  try {
    await work()
    return ''
  } catch (thrown) {
    return (thrown as Error).message
  }
}

it('a data folder in a place that cannot be made is refused, whatever keeps it from being made', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'file'), '')
  symlinkSync(join(folder, 'nowhere', 'at', 'all'), join(folder, 'link'))
  const places = [
    '/proc/none/of/this',
    '/proc/1/none',
    '/dev/null/data',
    join(folder, 'file'),
    join(folder, 'file', 'data'),
    join(folder, 'link'),
  ]
  for (const place of places) {
    expect(await error(() => openTestStore(place))).toContain(`the data folder ${place} cannot be used: `)
    expect(await error(() => makeFolder(place))).not.toBe('')
    expect(await error(() => makeFolderNow(place))).not.toBe('')
  }
  expect(makeFolderNow(join(folder, 'a', 'b', 'c'))).toBe(join(folder, 'a'))
  expect(makeFolderNow(join(folder, 'a', 'b', 'c'))).toBeUndefined()
  removeFolder(folder)
})

it('a port that cannot be listened on is told from an address that is not this machine’s', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => other.once('listening', resolve))
  const { port } = other.address() as { port: number }
  const deps = { routes: [], ingestFrame: null } as unknown as Parameters<typeof startServer>[2]
  expect(await error(() => startServer('127.0.0.1', port, deps))).toBe(
    `port ${port} on 127.0.0.1 cannot be used: another program listens there`,
  )
  expect(await error(() => startServer('192.0.2.1', 0, deps))).toBe(
    'port 0 on 192.0.2.1 cannot be used: that is no address of this machine',
  )
  expect(await error(() => startServer('no-such-host.invalid', 0, deps))).toMatch(
    /^port 0 on no-such-host\.invalid cannot be used: (there is no host of that name|the name of that host cannot be looked up)$/,
  )
  await new Promise((resolve) => other.close(resolve))
})
