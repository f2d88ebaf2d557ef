// Requests from one node to another over HTTP, where the other one is a server that does what the test tells it.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { OPEN_ANSWERS_MAX, SOCKETS_MAX, WHOLE_ANSWER_BYTES_MAX } from '../../../src/cluster/proxy/limits.ts'
import { NodeGate } from '../../../src/cluster/proxy/node-gate.ts'
import { NodeHttp, type PassedAnswer, type PassedRequest } from '../../../src/cluster/proxy/node-http.ts'
import type { ChunkSource } from '../../../src/http/response/send-chunks.ts'

const NODE = { nodeId: 'other', secret: 'secret' }
const OURS = { 'X-Mintlake-Node': 'other' }
const LARGE_BYTES = WHOLE_ANSWER_BYTES_MAX + 1
const plain: PassedRequest = {
  ...{
    method: 'GET',
    path: '/page',
    query: '',
    headers: {},
    body: Buffer.alloc(0),
    repeats: 'read',
    answerMsMax: 5_000,
  },
}

const servers: Server[] = []
const clients: NodeHttp[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function started(answer: RequestListener) {
  const server = createServer(answer)
  servers.push(server)
  const sockets: Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new NodeHttp()
  clients.push(client)
  const address = { ...NODE, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  return { client, address, sockets }
}

const textOf = async (body: PassedAnswer['body']): Promise<string> => {
  if (Buffer.isBuffer(body)) return body.toString()
  const chunks: Buffer[] = []
  for (let chunk = await body.next(); chunk !== null; chunk = await body.next()) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
const reasonOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'answered',
    (error: { reason?: string; code?: string }) => error.reason ?? error.code ?? `${error}`,
  )
/** One that answers nothing and keeps its requests. */
const silent =
  (kept: IncomingMessage[] = []): RequestListener =>
  (request) =>
    void kept.push(request)

describe('a request to another node', () => {
  it('arrives as it came, with what the node is to know it by', async () => {
    const seen: { url: string | undefined; headers: IncomingMessage['headers']; body: string }[] = []
    const { client, address } = await started(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      seen.push({ url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() })
      response.writeHead(201, { ...OURS, 'X-Text': Buffer.from('größer 😀').toString('latin1') }).end('made')
    })
    const answer = await client.send(address, {
      ...{ ...plain, method: 'POST', path: '/api/x%20y', query: 'x=%F0%9F%98%80&y' },
      ...{
        headers: { Authorization: 'Bearer kéy', 'X-Forwarded-For': '1.2.3.4' },
        body: Buffer.from('{"a":1}'),
      },
    })
    expect([answer.status, answer.headers['x-text'], await textOf(answer.body)]).toEqual([
      201,
      'größer 😀',
      'made',
    ])
    const bytes = (text: string) => Buffer.from(text).toString('latin1')
    expect(seen[0]).toMatchObject({ url: '/api/x%20y?x=%F0%9F%98%80&y', body: '{"a":1}' })
    expect(seen[0]!.headers).toMatchObject({
      ...{ authorization: bytes('Bearer kéy'), 'x-forwarded-for': '1.2.3.4', 'content-length': '7' },
      'x-mintlake-relay': 'other secret',
    })
  })

  it('goes over a connection of before, and over a new one where that was closed', async () => {
    const { client, address, sockets } = await started((_request, response) =>
      response.writeHead(200, { ...OURS, 'Content-Length': '1' }).end('x'),
    )
    for (let turn = 0; turn < 20; turn++) await client.send(address, plain)
    expect(sockets).toHaveLength(1)
    const closed = once(sockets[0]!, 'close')
    sockets[0]!.end()
    await closed
    expect((await client.send(address, plain)).status).toBe(200)
    expect(sockets).toHaveLength(2)
  })

  it('with characters that HTTP does not allow is refused', async () => {
    const { client, address, sockets } = await started(silent())
    expect(await reasonOf(client.send(address, { ...plain, headers: { Range: 'a\u0001b' } }))).toBe(
      'invalid_parameter',
    )
    expect(sockets).toHaveLength(0)
  })
})

describe('a request without an answer', () => {
  it('has certainly not arrived where there is no connection, or where the process is another one', async () => {
    const { client, address } = await started((_request, response) =>
      response.writeHead(400, { 'X-Mintlake-Node': 'another' }).end(),
    )
    expect(await reasonOf(client.send(address, plain))).toBe('unreachable')
    servers[0]!.closeAllConnections()
    servers[0]!.close()
    await once(servers[0]!, 'close')
    expect(await reasonOf(client.send(address, plain))).toBe('unreachable')
  })

  it('may have arrived in any other case', async () => {
    const breaking: [string, string, RequestListener][] = [
      ['late', 'is cut', (_request, response) => void response.socket!.destroy()],
      ['foreign', 'is of no node', (_request, response) => void response.writeHead(200).end('nginx')],
      [
        ...(['foreign', 'is of some other node'] as const),
        (_request, response) => void response.writeHead(200, { 'X-Mintlake-Node': 'third' }).end('x'),
      ],
      [
        ...(['late', 'is cut in the middle'] as const),
        (_request, response) => {
          response.writeHead(200, { ...OURS, 'Content-Length': '100' }).write('half')
          setImmediate(() => response.socket!.destroy())
        },
      ],
      ['late', 'is late', silent()],
    ]
    for (const [reason, what, answer] of breaking) {
      const { client, address } = await started(answer)
      const error = await client.send(address, { ...plain, answerMsMax: 200 }).catch((thrown) => thrown)
      expect(error, what).toMatchObject({ reason, mayHaveArrived: true })
    }
  })

  it('waits for a free connection no longer than for an answer, and was certainly not carried out then', async () => {
    const kept: IncomingMessage[] = []
    const { client, address } = await started(silent(kept))
    const left = new AbortController()
    const busy = Array.from({ length: SOCKETS_MAX }, () =>
      reasonOf(client.send(address, { ...plain, answerMsMax: 60_000, signal: left.signal })),
    )
    await expect.poll(() => kept.length, { timeout: 10_000 }).toBe(SOCKETS_MAX)
    expect(await reasonOf(client.send(address, { ...plain, answerMsMax: 50 }))).toBe('overloaded')
    left.abort()
    expect(new Set(await Promise.all(busy))).toEqual(new Set(['late']))
    expect(kept).toHaveLength(SOCKETS_MAX)
  })

  it('ends at the other node when nobody waits for it', async () => {
    const kept: IncomingMessage[] = []
    const { client, address, sockets } = await started(silent(kept))
    const gone = new AbortController()
    const asked = reasonOf(client.send(address, { ...plain, signal: gone.signal }))
    await expect.poll(() => kept.length).toBe(1)
    const closed = once(sockets[0]!, 'close')
    gone.abort()
    await closed
    expect(await asked).toBe('late')
  })
})

describe('a large answer', () => {
  const streamOf = ({ body }: PassedAnswer): ChunkSource => {
    if (Buffer.isBuffer(body)) throw new Error('it is whole')
    return body
  }

  it('is read no faster than it is taken, and whole', async () => {
    const bytes = 32 * 1024 * 1024
    let isDrained = false
    const { client, address, sockets } = await started((_request, response) => {
      response.writeHead(200, { ...OURS, 'Content-Length': `${bytes}` })
      response.write(Buffer.alloc(bytes, 'x'), () => {
        isDrained = true
      })
      response.end()
    })
    const body = streamOf(await client.send(address, plain))
    const first = await body.next()
    expect(first!.length).toBeLessThan(bytes / 8)
    // What the sockets hold, and no more.
    await expect.poll(() => sockets[0]!.writableNeedDrain).toBe(true)
    expect(isDrained).toBe(false)
    expect(first!.length + (await textOf(body)).length).toBe(bytes)
    await expect.poll(() => isDrained).toBe(true)
  })

  it('that breaks off is not taken for a whole one', async () => {
    const { client, address } = await started((_request, response) => {
      response.writeHead(200, OURS).write('x'.repeat(1_000))
      setTimeout(() => response.socket!.destroy(), 20)
    })
    await expect(textOf((await client.send(address, plain)).body)).rejects.toThrow()
  })

  it('counts until it has ended: one too many is refused, and whole ones go on', async () => {
    const { client, address } = await started((request, response) => {
      const isSmall = request.url === '/small'
      response.writeHead(200, { ...OURS, 'Content-Length': isSmall ? '1' : `${LARGE_BYTES}` })
      if (isSmall) response.end('x')
      else response.write('x')
    })
    const open = () => client.send(address, plain)
    const all = await Promise.all(Array.from({ length: OPEN_ANSWERS_MAX }, open))
    expect(await reasonOf(open())).toBe('overloaded')
    expect(await textOf((await client.send(address, { ...plain, path: '/small' })).body)).toBe('x')
    for (const answer of all) streamOf(answer).stop()
    await expect.poll(() => reasonOf(open())).toBe('answered')
  })
})

describe('the gate of a node', () => {
  it('is for who knows its secret, and only while it is open', () => {
    const gate = new NodeGate()
    const { secret, nodeId } = gate.address({ host: 'h', bus: { nodeUrl: '' } }, 1, { info: {} } as never)
    const admitted = () => gate.admits(`${nodeId} ${secret}`)
    expect(admitted()).toBe(false)
    gate.isOpen = true
    expect(admitted()).toBe(true)
    for (const wrong of ['', nodeId, `${nodeId} `, `${nodeId} ${secret}x`, `x ${secret}`, secret])
      expect(gate.admits(wrong), wrong).toBe(false)
    gate.isOpen = false
    expect(admitted()).toBe(false)
  })

  it.each([
    ['127.0.0.1', '', 'http://127.0.0.1:8080'],
    ['0.0.0.0', '', 'http://10.0.0.7:8080'],
    ['::', '', 'http://10.0.0.7:8080'],
    ['2001:db8::1', '', 'http://[2001:db8::1]:8080'],
    ['0.0.0.0', 'https://writer.example', 'https://writer.example'],
  ])('listening at %s, told %s: %s', (host, nodeUrl, url) => {
    const connection = { info: { client_ip: '10.0.0.7' } } as never
    expect(new NodeGate().address({ host, bus: { nodeUrl } }, 8_080, connection).url).toBe(url)
  })
})
