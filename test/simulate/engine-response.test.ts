// The answer that stands in for the engine's is made no faster than it is taken, and is the same bytes.
import { describe, expect, it } from 'vitest'
import { SimulatedResponse } from './engine-response.ts'

const open = (roomBytes: number) => {
  const response = new SimulatedResponse(Buffer.from('{"a":1}'), roomBytes, '10.0.0.1')
  return { response }
}

/** Sends a body as the engine's caller does, from where the last call ended. */
function sendWith(response: SimulatedResponse, body: Buffer): void {
  const push = (offset: number): boolean => response.tryEnd(body.subarray(offset), body.length)[0]
  if (!push(0)) response.onWritable(push)
}

describe('the simulated answer', () => {
  it('has the headers that were written, several in one value too', () => {
    const { response } = open(100)
    response.writeStatus(Buffer.from('201 Created\r\nAccess-Control-Allow-Origin: *'))
    response.writeHeader('X-Request-Id', 'id:1\r\nContent-Type: text/plain; charset=utf-8\r\nX-Empty: ')
    response.end(Buffer.from('made'))
    expect(response.status).toBe(201)
    expect(response.headers).toEqual([
      ['Access-Control-Allow-Origin', '*'],
      ['X-Request-Id', 'id:1'],
      ['Content-Type', 'text/plain; charset=utf-8'],
      ['X-Empty', ''],
      ['Content-Length', '4'],
    ])
    expect(response.take(10).toString()).toBe('made')
  })

  it('is made as far as there is room, and further as it is taken', () => {
    for (const bytes of [0, 1, 9, 10, 11, 20, 25]) {
      const { response } = open(10)
      const body = Buffer.from(Array.from({ length: bytes }, (_, index) => index))
      sendWith(response, body)
      expect(response.waitingBytes).toBe(Math.min(10, bytes))
      const taken: Buffer[] = []
      while (!response.isEnded || response.waitingBytes > 0) taken.push(response.take(10))
      expect(Buffer.concat(taken).equals(body)).toBe(true)
      expect(taken.length).toBe(Math.ceil(bytes / 10))
    }
  })

  it('that is streamed says when there is no more room, and when there is again', () => {
    const { response } = open(10)
    const resumed: number[] = []
    response.onWritable((offset) => resumed.push(offset) > 0)
    expect(response.write(Buffer.from('123456'))).toBe(true)
    expect(response.write(Buffer.from('789012'))).toBe(false)
    expect(response.take(10).toString()).toBe('1234567890')
    expect(resumed).toEqual([12])
    response.end(Buffer.from('3'))
    expect(response.take(10).toString()).toBe('123')
  })

  it('keeps what was written where its writer uses the memory again', () => {
    const { response } = open(10)
    const bytes = Buffer.from('first')
    response.write(bytes)
    bytes.fill('x')
    expect(response.take(10).toString()).toBe('first')
  })

  it('tells its maker once that nobody wants it any more', () => {
    const { response } = open(10)
    let aborted = 0
    response.onAborted(() => aborted++)
    response.write(Buffer.from('begun'))
    response.abort()
    response.abort()
    response.close()
    expect([aborted, response.isEnded, response.isCut]).toEqual([1, true, true])
  })

  it('gets the body of its request after its handler has returned', async () => {
    const { response } = open(10)
    const chunks: string[] = []
    response.onData((chunk, isLast) => chunks.push(`${Buffer.from(chunk)} ${isLast}`))
    expect(chunks).toEqual([])
    await Promise.resolve()
    expect(chunks).toEqual(['{"a":1} true'])
  })
})
