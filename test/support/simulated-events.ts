import type { SimulatedEvent, Simulation } from '../../src/ingest/simulator/simulation.ts'
import type { EventSink } from '../../src/schema/event.ts'

/** What a simulated market delivers up to a time, Unix ms, and did not before. @param eventsMax about so many at most */
export function simulatedEvents(
  simulation: Simulation,
  untilMs: number,
  eventsMax?: number,
): SimulatedEvent[] {
  const delivered: SimulatedEvent[] = []
  const apply: EventSink['apply'] = (event, receivedAtMs) => {
    delivered.push({ event, receivedAtMs })
    return null
  }
  simulation.advance(untilMs, { apply }, eventsMax)
  return delivered
}
