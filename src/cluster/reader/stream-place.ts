// Where in the stream the events are that a market lacks.
import type { StreamInfo } from '@nats-io/jetstream'
import { decodeBatch } from '../../journal/batch/batch-decoder.ts'
import type { Bus } from '../bus.ts'
import { type BusMessage, DamagedMessageError, decodeMessage } from '../messages.ts'

/** The numbers that the stream's messages have now; `last` is below `first` in an empty one. */
export interface StreamRange {
  first: number
  last: number
  /** The bus's time of the last one. */
  lastAtMs: number
  /** Tells a stream from one of the same name that was made later. */
  created: string
}

export const rangeOf = ({ state, created }: StreamInfo): StreamRange => ({
  first: state.messages === 0 ? state.last_seq + 1 : state.first_seq,
  last: state.last_seq,
  lastAtMs: Date.parse(state.last_ts),
  created,
})

/** A message; null: it is gone. @throws MessageError */
async function readMessage({ manager, names }: Bus, sequence: number): Promise<Found | null> {
  const stored = await manager.streams.getMessage(names.stream, { seq: sequence })
  if (stored === null) return null
  return { message: decodeMessage(stored.data), sequence, busMs: Date.parse(stored.timestamp) }
}

/** The first message from `sequence` on that is not damaged; null: all before `end` are; `gone`: it is not there any more. @throws MessageError */
async function readFrom(bus: Bus, sequence: number, end: number): Promise<Found | 'gone' | null> {
  for (let at = sequence; at < end; at++) {
    try {
      return (await readMessage(bus, at)) ?? 'gone'
    } catch (error) {
      if (!(error instanceof DamagedMessageError)) throw error
    }
  }
  return null
}

interface Found {
  message: BusMessage
  sequence: number
  /** The bus's time of it. */
  busMs: number
}

export const isEmpty = ({ first, last }: StreamRange): boolean => last < first

/**
 * The first message of `first` to `last` of which `isBehind` is so, as it is of all that follow; null: there is none. `place` is its number, or the
 * one behind the last; `isGone`: what was before it is gone, damaged messages aside.
 * @throws MessageError
 */
async function findFirst(
  bus: Bus,
  { first, last }: Pick<StreamRange, 'first' | 'last'>,
  isBehind: (message: BusMessage) => boolean,
): Promise<{ found: Found | null; place: number; isGone: boolean }> {
  let [low, high] = [first, last + 1]
  let found: Found | null = null
  let isGone = last < first
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const read = await readFrom(bus, middle, high)
    // Where none is left to read, `found` is the next one that can be.
    if (read === null) high = middle
    else if (read === 'gone' || !isBehind(read.message)) {
      isGone = read === 'gone'
      low = read === 'gone' ? middle + 1 : read.sequence + 1
    } else {
      high = middle
      found = read
    }
  }
  return { found, place: low, isGone }
}

/**
 * The number of the first message that has something behind an event; null: events behind it are missing in the stream, or may be, since
 * all that it had is gone.
 * @throws MessageError
 */
export async function findPlace(bus: Bus, eventNo: number, range: StreamRange): Promise<number | null> {
  const { found, place, isGone } = await findFirst(bus, range, ({ lastEventNo }) => lastEventNo > eventNo)
  if (found === null) return isGone ? null : place
  return found.message.firstEventNo <= eventNo + 1 && found.message.part === 0 ? place : null
}

/**
 * What the stream has told last with an event, to whoever has followed it: the run, and the market time; `sinceBusMs`: the bus's time of the
 * message that told it first. Null: it does not say that.
 * @param place of what is behind the event
 * @throws MessageError
 */
export async function findToldAt(
  bus: Bus,
  eventNo: number,
  place: number,
  { first }: StreamRange,
): Promise<{ runId: string; timeMs: number; sinceBusMs: number } | null> {
  const read = place > first ? await readFrom(bus, place - 1, place) : null
  if (read === null || read === 'gone' || read.message.lastEventNo !== eventNo) return null
  const { runId, timeMs } = read.message
  const { found } = await findFirst(
    bus,
    { first, last: place - 1 },
    ({ lastEventNo, timeMs: toldMs }) => lastEventNo === eventNo && toldMs >= timeMs,
  )
  return { runId, timeMs, sinceBusMs: found?.busMs ?? read.busMs }
}

/** The event with which a stream begins where a market begins with it, as an empty one; null: the market had begun before. */
export async function readFirstRun(bus: Bus, { first, last }: StreamRange) {
  // Behind messages of a writer that has only told the time so far.
  for (let sequence = first; sequence <= last && sequence < first + FIRST_MESSAGES_MAX; sequence++) {
    const read = await readFrom(bus, sequence, sequence + 1)
    if (read === null || read === 'gone') continue
    const { message } = read
    const { frame } = message
    if (frame === null) continue
    if (message.parts > 1) return null
    const [recorded] = decodeBatch(Buffer.from(frame))?.events ?? []
    if (recorded === undefined || recorded.eventNo !== message.firstEventNo) return null
    const { event, eventNo } = recorded
    const isBeginning = event.type === 'run' && event.header.checkpointEventNo === null
    return isBeginning ? { folderId: message.folderId, eventNo, run: event } : null
  }
  return null
}

const FIRST_MESSAGES_MAX = 64
