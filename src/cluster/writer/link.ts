// A connection to the bus, and waiting for something no longer than it lasts.
import type { Bus } from '../bus.ts'

/** A connection, and a way to wait for something no longer than it lasts. */
export interface Link {
  bus: Bus
  /** Rejects as soon as the connection is lost: what was on its way then may or may not be in the stream. */
  untilLost<Value>(work: Promise<Value>): Promise<Value>
}

export function linkOf(bus: Bus): Link {
  let lost: Error | null = null
  const waiting = new Set<(error: Error) => void>()
  void whenLost(bus).then((error) => {
    lost = error
    for (const reject of waiting) reject(error)
  })
  const untilLost = async <Value>(work: Promise<Value>): Promise<Value> => {
    const { promise, reject } = Promise.withResolvers<never>()
    if (lost !== null) reject(lost)
    waiting.add(reject)
    try {
      return await Promise.race([work, promise])
    } finally {
      waiting.delete(reject)
    }
  }
  return { bus, untilLost }
}

async function whenLost({ connection }: Bus): Promise<Error> {
  for await (const { type } of connection.status())
    if (type === 'disconnect' || type === 'staleConnection' || type === 'close') break
  return new Error('the connection to the bus was lost')
}
