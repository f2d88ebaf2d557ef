// What becomes of a request whose answer does not come, or of one too many, where the bus and the writers are what the test says.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Packr } from 'msgpackr'
import { afterEach, expect, it } from 'vitest'
import { type Bus, busNames } from '../../../src/cluster/bus.ts'
import { PROTOCOL } from '../../../src/cluster/messages.ts'
import { OPEN_ANSWERS_MAX, WHOLE_ANSWER_BYTES_MAX } from '../../../src/cluster/proxy/limits.ts'
import type { PassedRequest } from '../../../src/cluster/proxy/node-http.ts'
import { PassingOn, type StreamOfWriter } from '../../../src/cluster/proxy/passing-on.ts'
import { createLog } from '../../../src/lib/log.ts'

const packr = new Packr({ useRecords: false })
const plain: PassedRequest = {
  ...{ method: 'GET', path: '/page', query: '', headers: {}, body: Buffer.alloc(0) },
  ...{ repeats: 'read', answerMsMax: 20_000 },
}

const opened: { server: Server; passingOn?: PassingOn }[] = []
afterEach(() => {
  for (const { server, passingOn } of opened.splice(0)) {
    passingOn?.close()
    server.closeAllConnections()
    server.close()
  }
})

/** @returns its address, and what resolves with its first request */
async function writerThat(answer: RequestListener) {
  const server = createServer(answer)
  const asked = once(server, 'request')
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.push({ server })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** A node that is told of a writer by the bus. */
function passingOnTo(url: () => string, stream: StreamOfWriter | null = null): PassingOn {
  const request = async () => ({
    data: packr.pack({ protocol: PROTOCOL, nodeId: 'writer', url: url(), secret: 'secret' }),
  })
  const bus = { watch: { isConnected: true }, names: busNames('test'), connection: { request } }
  const passingOn = new PassingOn({
    ...{ bus: bus as unknown as Bus, writerUrl: '', stream, log: createLog('error') },
    untilApplied: async () => {},
  })
  opened[0]!.passingOn = passingOn
  return passingOn
}

it('that a client has left says nothing of the address of the writer', async () => {
  const { url, asked } = await writerThat(() => {})
  const passingOn = passingOnTo(() => url)
  const gone = new AbortController()
  const answered = passingOn.toWriter({ ...plain, signal: gone.signal })
  await asked
  gone.abort()
  await expect(answered).rejects.toMatchObject({ code: 'store_unavailable' })
  expect([passingOn.trouble, passingOn.isUnreached]).toEqual([null, false])
})

it('since the writer has ended, which the stream says, goes to the next one', async () => {
  const first = await writerThat(() => {})
  const next = await writerThat((_request, response) =>
    response.writeHead(200, { 'X-Mintlake-Node': 'writer', 'Content-Length': '4' }).end('next'),
  )
  let { url } = first
  let silentSinceMs: number | null = null
  const silentMs = () => (silentSinceMs === null ? 0 : performance.now() - silentSinceMs)
  const passingOn = passingOnTo(() => url, { silentMs, runId: () => 'run' })
  const answered = passingOn.toWriter(plain)
  await first.asked
  silentSinceMs = performance.now()
  url = next.url
  expect(`${(await answered).body}`).toBe('next')
  const silentForMs = silentMs()
  expect(silentForMs).toBeGreaterThan(1_900)
  expect(silentForMs).toBeLessThan(4_000)
})

it('to a node that keeps a list is waited for, also where the writer ends meanwhile', async () => {
  let finish = () => {}
  const { url, asked } = await writerThat((_request, response) => {
    const headers = { 'X-Mintlake-Node': 'writer', 'Content-Length': '4' }
    finish = () => response.writeHead(200, headers).end('page')
  })
  let onLook = () => {}
  const silentMs = () => {
    onLook()
    return 2_000
  }
  const passingOn = passingOnTo(() => url, { silentMs, runId: () => 'run' })
  const answered = passingOn.toKeeper('list', plain, 1_000)
  await asked
  // What was sent that long ago may have gone to a writer that ended so long ago.
  for (const sentMs = performance.now(); performance.now() < sentMs + 1_200; )
    await new Promise<void>((resolve) => {
      onLook = resolve
    })
  finish()
  expect(`${(await answered)?.body}`).toBe('page')
})

it('has its large answer counted among all of this node, whoever has sent them', async () => {
  const { url } = await writerThat((_request, response) => {
    response
      .writeHead(200, { 'X-Mintlake-Node': 'writer', 'Content-Length': `${WHOLE_ANSWER_BYTES_MAX + 1}` })
      .write('x')
  })
  const passingOn = passingOnTo(() => url)
  await Promise.all(Array.from({ length: OPEN_ANSWERS_MAX }, () => passingOn.toWriter(plain)))
  await expect(passingOn.toKeeper('list', plain, 1_000)).rejects.toMatchObject({ code: 'overloaded' })
})
