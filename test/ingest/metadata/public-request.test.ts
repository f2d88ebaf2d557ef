// Documents from addresses that strangers have written: into the server's own network leads none of them, and none takes long.
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { METADATA_BYTES_MAX } from '../../../src/ingest/metadata/limits.ts'
import { isPublicAddress } from '../../../src/ingest/metadata/public-address.ts'
import {
  fetchPublicDocument,
  type PublicRequestOptions,
} from '../../../src/ingest/metadata/public-request.ts'
import type { HostAddress } from '../../../src/ingest/metadata/resolve-host.ts'
import { hasOpenssl } from '../../cluster/access/certificates.ts'
import { DocumentServer } from '../../support/upstreams/document-server.ts'

const { signal } = new AbortController()
const HERE: HostAddress = { address: '127.0.0.1', family: 4 }
const addressOf = (address: string): HostAddress => ({ address, family: address.includes(':') ? 6 : 4 })

describe.skipIf(!hasOpenssl)('a document (skipped without openssl)', () => {
  let server: DocumentServer
  /** By name, the answer to each question, the last for all that follow. */
  let names: Record<string, HostAddress[][]>
  let resolved: string[]
  let options: PublicRequestOptions
  beforeAll(async () => {
    server = await DocumentServer.start()
  })
  afterAll(() => server.close())
  beforeEach(() => {
    server.requests.length = 0
    server.connections = 0
    server.paths.clear()
    server.serve('/ok', { ok: 1 })
    names = {}
    resolved = []
    options = {
      resolve: async (host) => {
        resolved.push(host)
        const answers = names[host] ?? [[HERE]]
        return (answers.length > 1 ? answers.shift() : answers[0]) ?? []
      },
      // The server of the test stands for one of the Internet.
      isPublic: (address) => address === HERE.address || isPublicAddress(address),
      ca: server.ca,
    }
  })
  const get = (url: string, more: Partial<PublicRequestOptions> = {}) =>
    fetchPublicDocument(url, signal, { ...options, ...more })

  it('is fetched from the address that its name had when it was checked', async () => {
    expect(await get(server.url('/ok'))).toEqual({ ok: true, text: '{"ok":1}' })
    expect(resolved).toEqual(['documents.example'])
  })

  it.each([
    ...['10.0.0.1', '100.64.1.1', '169.254.169.254', '172.16.1.1', '192.168.1.1', '0.0.0.0', '224.0.0.1'],
    ...[
      '168.63.129.16',
      '::1',
      'fe80::1',
      'fd00:ec2::254',
      '::ffff:127.0.0.1',
      '2002:7f00:1::',
      '64:ff9b::7f00:1',
    ],
  ])(
    'whose name leads to %s is refused, also beside a good address and behind a redirect',
    async (address) => {
      const refused = { ok: false, fault: 'address_refused' }
      names['inside.example'] = [[addressOf(address)]]
      names['both.example'] = [[HERE, addressOf(address)]]
      expect(await get(server.url('/ok', 'inside.example'))).toEqual(refused)
      expect(await get(server.url('/ok', 'both.example'))).toEqual(refused)
      expect(server.connections).toBe(0)
      server.paths.set('/moved', (_, response) =>
        response.writeHead(302, { Location: server.url('/ok', 'inside.example') }).end(),
      )
      expect(await get(server.url('/moved'))).toEqual(refused)
      const literal = address.includes(':') ? `[${address}]` : address
      server.paths.set('/literal', (_, response) =>
        response.writeHead(307, { Location: `https://${literal}/latest/meta-data` }).end(),
      )
      expect(await get(server.url('/literal'))).toEqual(refused)
      expect(server.requests.map(({ path }) => path)).toEqual(['/moved', '/literal'])
    },
  )

  it.each([
    ...[
      'https://127.0.0.1/',
      'https://127.1/',
      'https://0x7f.1/',
      'https://2130706433/',
      'https://017700000001/',
    ],
    ...[
      'https://[::1]/',
      'https://[::ffff:7f00:1]/',
      'https://[::127.0.0.1]/',
      'https://localhost/',
      'https://0/',
    ],
  ])('at %s is refused', async (url) => {
    const answer = await fetchPublicDocument(url, signal)
    expect(answer).toEqual({ ok: false, fault: 'address_refused' })
  })

  it('whose name changes its mind is fetched from the first address, and its redirects are checked anew', async () => {
    names['rebinding.example'] = [[HERE], [addressOf('169.254.169.254')]]
    server.paths.set('/again', (_, response) => response.writeHead(302, { Location: '/ok' }).end())
    expect(await get(server.url('/again', 'rebinding.example'))).toEqual({
      ok: false,
      fault: 'address_refused',
    })
    expect(resolved).toEqual(['rebinding.example', 'rebinding.example'])
    expect(server.requests.map(({ path }) => path)).toEqual(['/again'])
  })

  it('that a connection reaches elsewhere is not asked for', async () => {
    let asked = 0
    // What was good when it was resolved is no more when it is connected to.
    const isPublic = () => ++asked === 1
    expect(await get(server.url('/ok'), { isPublic })).toEqual({ ok: false, fault: 'address_refused' })
    expect(server.requests).toEqual([])
  })

  it('redirected without end, or to another scheme, is refused', async () => {
    server.paths.set('/loop', (_, response) => response.writeHead(301, { Location: '/loop' }).end())
    expect(await get(server.url('/loop'))).toEqual({ ok: false, fault: 'too_many_redirects' })
    expect(server.requests).toHaveLength(4)
    for (const [index, Location] of [
      'http://documents.example/',
      'file:///etc/passwd',
      'data:,x',
    ].entries()) {
      server.paths.set(`/${index}`, (_, response) => response.writeHead(302, { Location }).end())
      expect(await get(server.url(`/${index}`))).toEqual({ ok: false, fault: 'scheme_refused' })
    }
    expect(await get('no address')).toEqual({ ok: false, fault: 'unreachable' })
  })

  it('that drips, hangs, or whose name hangs, ends with its time', async () => {
    const timers: NodeJS.Timeout[] = []
    server.paths.set('/drip', (_, response) => {
      timers.push(setInterval(() => response.write(' '), 5))
    })
    server.paths.set('/hang', () => {})
    const timeout = { ok: false, fault: 'timeout' }
    expect(await get(server.url('/drip'), { msMax: 150 })).toEqual(timeout)
    expect(await get(server.url('/hang'), { msMax: 50 })).toEqual(timeout)
    expect(await get(server.url('/ok'), { msMax: 50, resolve: () => new Promise(() => {}) })).toEqual(timeout)
    for (const timer of timers) clearInterval(timer)
  })

  it.each([
    ['Upgrade: x\r\nConnection: Upgrade\r\n', 'unreachable'],
    ['', 'status'],
  ])(
    'whose server would speak something else (101, headers %j) is none, and leaves no connection',
    async (headers, fault) => {
      const closed: Promise<unknown>[] = []
      server.paths.set('/101', ({ socket }) => {
        closed.push(once(socket, 'close'))
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\n`)
      })
      expect(await get(server.url('/101'), { msMax: 600_000 })).toEqual({ ok: false, fault })
      await Promise.all(closed)
    },
  )

  it('that is too large, is compressed, ends early, or is an error is none', async () => {
    server.paths.set('/endless', (_, response) => {
      const more = () => {
        while (response.writable && response.write('x'.repeat(16_384)));
        if (response.writable) response.once('drain', more)
      }
      more()
    })
    server.paths.set('/large', (_, response) => response.end('x'.repeat(METADATA_BYTES_MAX + 1)))
    server.paths.set('/bomb', (_, response) => {
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(Buffer.alloc(10_000_000)))
    })
    server.paths.set('/cut', (_, response) => {
      response.writeHead(200, { 'Content-Length': '100' }).write('x', () => response.destroy())
    })
    server.paths.set('/error', (_, response) => response.writeHead(500).end('no'))
    const faults = Object.entries({
      ...{ '/endless': 'too_large', '/large': 'too_large', '/bomb': 'encoded', '/cut': 'unreachable' },
      ...{ '/error': 'status', '/nowhere': 'status' },
    })
    for (const [path, fault] of faults)
      expect(await get(server.url(path)), path).toEqual({ ok: false, fault })
    server.paths.set('/most', (_, response) => response.end('x'.repeat(METADATA_BYTES_MAX)))
    expect(await get(server.url('/most'))).toMatchObject({ ok: true })
  })

  it('that is refused leaves no connection behind', async () => {
    const closed: Promise<unknown>[] = []
    for (const [path, status, location] of [
      ['/error', 500, undefined],
      ['/bad', 302, 'https://['],
    ] as const)
      server.paths.set(path, (request, response) => {
        closed.push(once(request.socket, 'close'))
        response.writeHead(status, location === undefined ? {} : { location }).write('more follows')
      })
    // Its own time would end it much later than this test.
    expect(await get(server.url('/error'), { msMax: 600_000 })).toEqual({ ok: false, fault: 'status' })
    expect(await get(server.url('/bad'), { msMax: 600_000 })).toEqual({ ok: false, fault: 'unreachable' })
    expect(closed).toHaveLength(2)
    await Promise.all(closed)
  })

  it('is asked for without the name and password of its address', async () => {
    const url = server.url('/ok').replace('https://', 'https://name:password@')
    expect(await get(url)).toMatchObject({ ok: true })
    expect(server.requests[0].authorization).toBeUndefined()
  })

  it('of a server whose certificate is another’s is none', async () => {
    const { ca: _, ...withoutCa } = options
    expect(await fetchPublicDocument(server.url('/ok'), signal, withoutCa)).toEqual({
      ...{ ok: false, fault: 'unreachable' },
    })
  })
})
