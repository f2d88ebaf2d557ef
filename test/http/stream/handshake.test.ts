// The answer to the handshake of a WebSocket, taken or refused, says what every other answer does: its request id, and parameters without
// effect.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { RawSocket } from '../../support/raw-socket.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())

const handshakeOf = (path: string, more: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
  `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`

async function handshake(path: string, more: string): Promise<string> {
  const socket = new RawSocket(server.url)
  await socket.write(handshakeOf(path, more))
  await socket.until(() => socket.text.includes('\r\n\r\n'))
  socket.close()
  return socket.text
}
const idOf = (text: string) => /^X-Request-Id: (.+)\r$/im.exec(text)?.[1]

const PATHS = [
  ['/api/v1/stream', ''],
  ['/api/v1/ingest', `Authorization: Bearer ${FEED_KEY}\r\n`],
] as const

it.each(PATHS)('of %s', async (path, key) => {
  const taken = await handshake(`${path}?format=msgpack&a,b=1`, key)
  expect(taken).toContain('HTTP/1.1 101 Switching Protocols\r\n')
  expect(taken).toContain('X-Ignored-Parameters: format, a%2Cb\r\n')
  expect(taken).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n')
  const named = await handshake(path, `${key}X-Request-Id: mine\r\n`)
  expect([idOf(named), named.includes('X-Ignored-Parameters:')]).toEqual(['mine', false])
  const refused = await handshake(path, 'Authorization: Bearer ps_wrong\r\n')
  expect(refused).toContain('HTTP/1.1 401 Unauthorized\r\n')
  expect(idOf(taken)).toBeDefined()
  expect(idOf(refused)).not.toBe(idOf(taken))
  expect(refused).toContain(`"requestId":"${idOf(refused)}"`)
})

it.each(PATHS)(
  'of %s that can be read in two ways is refused, and nothing behind it is read',
  async (path, key) => {
    for (const [name, headers] of [
      ['Host', 'Host: other\r\n'],
      ['Content-Length', 'Content-Length: 2\r\nContent-Length: 200\r\n'],
      ['Transfer-Encoding', 'Transfer-Encoding: gzip\r\n'],
    ]) {
      const socket = new RawSocket(server.url)
      await socket.write(handshakeOf(path, key + headers))
      await socket.until(() => false)
      expect(socket.statuses, name).toEqual([400])
      expect(socket.text).toContain(`"pointer":"/${name}"`)
      expect(socket.text).toContain('Connection: close')
      const followed = new RawSocket(server.url)
      await followed.write(`${handshakeOf(path, key + headers)}GET /health HTTP/1.1\r\nHost: test\r\n\r\n`)
      await followed.until(() => false)
      expect([[], [400]]).toContainEqual(followed.statuses)
    }
  },
)
