// Events of the chain, decoded: real ones to the last digit where the shared file of them is at hand, and made ones cut and extended.
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type EventReading, readEvent } from '../../../src/ingest/solana/decode-event.ts'
import { discriminatorOf, EVENT_LAYOUTS } from '../../../src/ingest/solana/layouts.ts'
import { AMM_PROGRAM, PUMP_PROGRAM } from '../../../src/ingest/solana/programs.ts'
import { encodeEvent } from '../../support/chain/encode.ts'

const SHARED = new URL('../../../../shared/data/chain/events.json', import.meta.url)
interface RealEvent {
  what: string
  event: string
  base64: string
  left_over: number
  [field: string]: unknown
}
const real: RealEvent[] = existsSync(SHARED) ? JSON.parse(readFileSync(SHARED, 'utf8')) : []

/** The reading must be an event. */
function eventOf(reading: EventReading) {
  if (reading.kind !== 'event') throw new Error(`it is ${reading.kind}`)
  return reading.event
}
const shown = (value: unknown): string =>
  Array.isArray(value) ? `${value.length}` : typeof value === 'bigint' ? `${value}` : String(value)

describe.skipIf(real.length === 0)(
  'real events (the shared file is not at hand where this is skipped)',
  () => {
    it.each(real)('$what is read to the last digit', (told) => {
      const program = told.event.startsWith('pump_amm') ? AMM_PROGRAM : PUMP_PROGRAM
      const event = eventOf(readEvent(program, Buffer.from(told.base64, 'base64')))
      expect(told.event.endsWith(event.name)).toBe(true)
      const fields = event.fields.map((name) => [name, shown(event.value(name))])
      expect(fields).toEqual(event.fields.map((name) => [name, shown(told[name])]))
      const names = ['what', 'bytes', 'event', 'left_over', 'time', 'k', 'base64']
      expect(event.fields.length).toBe(Object.keys(told).filter((name) => !names.includes(name)).length)
      expect(event.leftOverBytes).toBe(told.left_over)
    })
  },
)

it('discriminators are those that the programs document', () => {
  const documented = {
    CreateEvent: '1b72a94ddeeb6376',
    TradeEvent: 'bddb7fd34ee661ee',
    CompleteEvent: '5f72619cd42e9808',
    CompletePumpAmmMigrationEvent: 'bde95db95c94ea94',
    UpdateMayhemVirtualParamsEvent: '757be4b6a1a8dcd6',
    BuyEvent: '67f4521f2cf57777',
    SellEvent: '3e2f370aa503dc2a',
    CreatePoolEvent: 'b1310cd2a076a774',
  }
  expect(Object.fromEntries(EVENT_LAYOUTS.map(({ name }) => [name, discriminatorOf(name)]))).toEqual(
    documented,
  )
})

describe.each(EVENT_LAYOUTS)('$name', ({ program, name, fields, required }) => {
  const whole = encodeEvent(name, { timestamp: 1_790_000_000n })

  it('cut behind any field has the fields before the cut, or cannot be read where it lacks one that it needs', () => {
    for (const [index, end] of whole.ends.entries()) {
      const reading = readEvent(program, whole.bytes.subarray(0, end))
      if (index + 1 < required) expect(reading).toEqual({ kind: 'unreadable', name })
      else {
        const event = eventOf(reading)
        expect(event.fields).toEqual(fields.slice(0, index + 1).map(([field]) => field))
        expect(event.leftOverBytes).toBe(0)
      }
    }
  })

  it('cut behind a field reads the fields before, and cut within one is unreadable', () => {
    for (let end = 8; end < whole.bytes.length; end++) {
      const reading = readEvent(program, whole.bytes.subarray(0, end))
      const count = whole.ends.filter((each) => each <= end).length
      const isRead = reading.kind === 'event'
      expect(isRead, `cut at ${end}`).toBe(count >= required && whole.ends.includes(end))
      if (isRead) expect(reading.event.fields).toHaveLength(count)
    }
  })

  it('extended by 1 to 64 bytes is read, and the bytes are counted', () => {
    for (let more = 1; more <= 64; more++) {
      const event = eventOf(readEvent(program, Buffer.concat([whole.bytes, Buffer.alloc(more, 255)])))
      expect(event.fields).toHaveLength(fields.length)
      expect(event.leftOverBytes).toBe(more)
    }
  })

  it('is not known as one of the other program', () => {
    const other = program === PUMP_PROGRAM ? AMM_PROGRAM : PUMP_PROGRAM
    expect(readEvent(other, whole.bytes)).toEqual({ kind: 'unknown' })
  })
})

it('a length beyond the end of the event takes no memory: the event is unreadable', () => {
  const { bytes } = encodeEvent('CreateEvent', { name: 'A' })
  bytes.writeUInt32LE(0xffffffff, 8)
  expect(readEvent(PUMP_PROGRAM, bytes)).toEqual({ kind: 'unreadable', name: 'CreateEvent' })
  const trade = encodeEvent('TradeEvent', {})
  const at = trade.ends[EVENT_LAYOUTS[1].fields.findIndex(([field]) => field === 'buyback_fee')]
  trade.bytes.writeUInt32LE(0xffffffff, at)
  expect(readEvent(PUMP_PROGRAM, trade.bytes)).toEqual({ kind: 'unreadable', name: 'TradeEvent' })
})

it('texts of any bytes are read', () => {
  for (const name of ['\0\0', '日本語 🚀', 'x'.repeat(10_000), '\ud800 lone']) {
    const event = eventOf(readEvent(PUMP_PROGRAM, encodeEvent('CreateEvent', { name }).bytes))
    expect(event.text('name')?.isWellFormed()).toBe(true)
  }
  const broken = encodeEvent('CreateEvent', { name: 'abcd' })
  broken.bytes.fill(0xff, 12, 16)
  expect(eventOf(readEvent(PUMP_PROGRAM, broken.bytes)).text('name')).toBe('\ufffd'.repeat(4))
})
