// Names that strangers have written: a name server of theirs that does not answer holds up nobody else.
import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { fetchPublicDocument } from '../../../src/ingest/metadata/public-request.ts'
import { resolveHost } from '../../../src/ingest/metadata/resolve-host.ts'

const RECORDS: Record<string, string[]> = {
  'both.example': ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
  'four.example': ['192.0.2.1'],
  'none.example': [],
}
const TYPE_A = 1
const TYPE_AAAA = 28
const { signal } = new AbortController()

let socket: Socket
let asked: string[]
let servers: string[]
beforeEach(async () => {
  asked = []
  socket = createSocket('udp4')
  socket.on('message', (query, { port }) => {
    const { name, reply } = answer(query)
    asked.push(name)
    if (reply !== null) socket.send(reply, port, '127.0.0.1')
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  servers = [`127.0.0.1:${socket.address().port}`]
})
afterEach(() => socket.close())

/** What the name server says, as RFC 1035 has it; null: nothing, of a name that it does not know. */
function answer(query: Buffer): { name: string; reply: Buffer | null } {
  const labels: string[] = []
  let at = 12
  for (; query[at] !== 0; at += 1 + query[at])
    labels.push(query.toString('latin1', at + 1, at + 1 + query[at]))
  const name = labels.join('.')
  const question = query.subarray(12, at + 5)
  const type = query.readUInt16BE(at + 1)
  const records = Object.hasOwn(RECORDS, name) ? RECORDS[name] : null
  if (records === null) return { name, reply: null }
  const told = records
    .filter((address) => (isIPv4(address) ? TYPE_A : TYPE_AAAA) === type)
    .map((address) => {
      const data = Buffer.from(ipaddr.parse(address).toByteArray())
      return Buffer.concat([Buffer.of(0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length), data])
    })
  const flags = records.length === 0 ? [0x81, 0x83] : [0x81, 0x80]
  const head = Buffer.of(query[0], query[1], ...flags, 0, 1, 0, told.length, 0, 0, 0, 0)
  return { name, reply: Buffer.concat([head, question, ...told]) }
}

it('a name has its addresses of both kinds, or of the one that there is', async () => {
  expect(await resolveHost('both.example', signal, servers)).toEqual([
    { address: '192.0.2.1', family: 4 },
    { address: '192.0.2.2', family: 4 },
    { address: '2001:db8::1', family: 6 },
  ])
  expect(await resolveHost('four.example', signal, servers)).toEqual([{ address: '192.0.2.1', family: 4 }])
  await expect(resolveHost('none.example', signal, servers)).rejects.toThrow(/ENOTFOUND/)
})

it('a name whose server does not answer ends with its document, and other look-ups do not wait for it', async () => {
  const resolve = (host: string, ending: AbortSignal) => resolveHost(host, ending, servers)
  const stopping = new AbortController()
  const fetched = Promise.all(
    Array.from({ length: 16 }, (_, index) =>
      fetchPublicDocument(`https://dead${index}.example/`, stopping.signal, { resolve, msMax: 600_000 }),
    ),
  )
  await expect.poll(() => new Set(asked).size, { interval: 5 }).toBe(16)
  // All wait; those of the process are answered nevertheless.
  expect(await resolveHost('four.example', signal, servers)).toHaveLength(1)
  expect((await lookup('localhost')).address).toMatch(/^(127\.0\.0\.1|::1)$/)
  stopping.abort()
  for (const answer of await fetched) expect(answer).toEqual({ ok: false, fault: 'stopped' })
})

it('a look-up ends with its signal, also one that has ended before', async () => {
  const stopping = new AbortController()
  const resolving = resolveHost('dead.example', stopping.signal, servers)
  await expect.poll(() => asked.length, { interval: 5 }).toBeGreaterThan(0)
  stopping.abort()
  await expect(resolving).rejects.toThrow(/ECANCELLED/)
  await expect(resolveHost('dead.example', stopping.signal, servers)).rejects.toThrow()
})
