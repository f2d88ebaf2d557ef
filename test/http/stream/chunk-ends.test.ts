// A reader that hands out a chunk of a body only once the end of the chunk has come, as urllib3 does and with it Python's requests, has each
// line of a compressed stream when it is sent, and not when the next one is.
import { connect, type Socket } from 'node:net'
import { constants, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())

/** The data of the chunks that have ended. */
function endedChunks(received: Buffer): Buffer {
  const ended: Buffer[] = []
  let at = received.indexOf('\r\n\r\n') + 4
  if (at < 4) return Buffer.alloc(0)
  for (;;) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd === -1) break
    const bytes = Number.parseInt(received.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + bytes
    if (received.length < end + 2) break
    ended.push(received.subarray(lineEnd + 2, end))
    at = end + 2
  }
  return Buffer.concat(ended)
}

/** Resolves with the lines of a gzip stream once one of those that a patient reader has is wanted. */
function linesUntil(
  socket: Socket,
  received: Buffer[],
  isWanted: (line: string) => boolean,
): Promise<string[]> {
  return new Promise((resolve) => {
    const look = (chunk: Buffer) => {
      received.push(chunk)
      const body = endedChunks(Buffer.concat(received))
      if (body.length === 0) return
      const text = gunzipSync(body, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
      const lines = text.split('\n').slice(0, -1)
      if (!lines.some(isWanted)) return
      socket.off('data', look)
      resolve(lines)
    }
    socket.on('data', look)
  })
}

it('a compressed stream gives its last line to a reader that waits for the end of a chunk', async () => {
  const mint = newMint()
  await server.client.push({ type: 'token', mint, ts: Date.now(), name: 'Name', symbol: 'S' })
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  const received: Buffer[] = []
  try {
    const opening = linesUntil(socket, received, (line) => line.includes('heartbeat'))
    const head = 'Host: test\r\nAccept-Encoding: gzip, deflate\r\n\r\n'
    socket.write(`GET /api/v1/market?format=ndjson&follow=1 HTTP/1.1\r\n${head}`)
    expect((await opening).at(-1)).toContain('heartbeat')
    const change = linesUntil(socket, received, (line) => line.includes('"seq"') && line.includes(mint))
    await server.client.push({ type: 'live', mint, ts: Date.now(), isLive: true })
    expect(JSON.parse((await change).at(-1)!)).toMatchObject({ mint, is_currently_live: true })
  } finally {
    socket.destroy()
  }
})
