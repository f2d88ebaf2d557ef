// The NATS server that connects the nodes of a cluster.
import type { Config } from '../../config/settings.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { type Check, type CheckResult, fail, ok } from './check.ts'

/** None for a server that is alone. */
export const busChecks = ({ bus }: Config): Check[] =>
  bus.servers.length === 0 ? [] : [{ name: 'bus', run: () => checkBus(bus) }]

async function checkBus(settings: Config['bus']): Promise<CheckResult> {
  // Their addresses may hold a password.
  const places = settings.servers.map((text) => URL.parse(text)?.host || text.replace(/.*@/, '')).join(', ')
  // Loaded here: a server that is alone has no need of it.
  const { connectBus } = await import('../../cluster/bus.ts')
  try {
    const bus = await connectBus(settings, 'mintlake doctor')
    await bus.close()
    return ok(`NATS at ${places} answers, and has JetStream`)
  } catch (error) {
    return fail(
      `NATS at ${places} cannot be used: ${errorMessage(error)}`,
      'start NATS with JetStream, or correct --bus and --bus-login',
    )
  }
}
