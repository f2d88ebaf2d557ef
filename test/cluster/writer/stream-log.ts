// Everything that a stream has had, in its order, as a reader sees it.
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { type BusMessage, decodeMessage } from '../../../src/cluster/messages.ts'
import { decodeBatch } from '../../../src/journal/batch/batch-decoder.ts'
import type { EventBatch } from '../../../src/journal/event-batch.ts'
import { busSettingsOf } from '../support.ts'

export const connect = (url: string): Promise<Bus> => connectBus(busSettingsOf(url), 'test')

/** All messages that the stream has now, in order. */
export async function readStream(bus: Bus): Promise<BusMessage[]> {
  const { state } = await bus.manager.streams.info(bus.names.stream)
  const messages: BusMessage[] = []
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const stored = await bus.manager.streams.getMessage(bus.names.stream, { seq })
    if (stored !== null) messages.push(decodeMessage(stored.data))
  }
  return messages
}

/** The batches of messages, with parts put together. Throws where parts are not in order. */
export function batchesOf(messages: readonly BusMessage[]): EventBatch[] {
  const batches: EventBatch[] = []
  let parts: Uint8Array[] = []
  for (const { frame, part, parts: count } of messages) {
    if (frame === null) continue
    // A writer that lost its connection in the middle begins with the first part again.
    if (part === 0) parts = []
    if (part !== parts.length) throw new Error(`part ${part} behind ${parts.length} parts`)
    parts.push(frame)
    if (part < count - 1) continue
    const batch = decodeBatch(Buffer.concat(parts))
    if (batch === null) throw new Error('the stream has a damaged frame')
    batches.push(batch)
    parts = []
  }
  return batches
}

/** The events behind one: throws where any is missing or comes twice. */
export function eventNumbersOf(batches: readonly EventBatch[]): { first: number; last: number } {
  const first = batches[0]?.firstEventNo ?? 0
  let last = first - 1
  for (const { firstEventNo, lastEventNo } of batches) {
    if (firstEventNo !== last + 1) throw new Error(`event ${firstEventNo} comes behind ${last}`)
    last = lastEventNo
  }
  return { first, last }
}

/** Waits until an answer is not null. */
export async function eventually<Value>(
  ask: () => Promise<Value | null>,
  timeoutMs = 20_000,
): Promise<Value> {
  const untilMs = performance.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (answer !== null) return answer
    if (performance.now() > untilMs) throw new Error('it did not happen in time')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
