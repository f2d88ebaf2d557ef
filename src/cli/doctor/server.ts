// The port, and the server that answers there.
import { whyNotListening } from '../../lib/why-not-listening.ts'
import type { ServerHealth } from '../server-client.ts'
import { type CheckResult, fail, ok, warn } from './check.ts'

/** @param holder the process that has locked the data folder, or null */
export async function checkPort(
  host: string,
  port: number,
  health: ServerHealth | string,
  holder: number | null,
): Promise<CheckResult> {
  const place = `port ${port} on ${host}`
  const code = await whyNotListening(host, port)
  if (code === null) return ok(`${place} is free`)
  if (code === 'EADDRINUSE' && typeof health !== 'string') return ok(`${place}: a Mintlake server answers`)
  // One that makes or reads its market may be silent for seconds.
  if (code === 'EADDRINUSE' && holder !== null)
    return fail(
      `${place} is in use, as is the data folder, by process ${holder}: ${health}`,
      'if it was started just now, ask again in a moment; its log says what it does',
    )
  if (code === 'EADDRINUSE')
    return fail(
      `${place} is in use by another program (${health})`,
      'end it, or choose another port with --port',
    )
  if (code === 'EACCES')
    return fail(`${place} needs privileges`, 'choose a port above 1023 and put a proxy before it')
  return fail(`${place} cannot be used: ${code}`, 'is it an address of this machine? See --host')
}

/** @param isNamed whether the operator has named the server, so that it must answer */
export function checkServer(url: string, health: ServerHealth | string, isNamed: boolean): CheckResult {
  if (typeof health === 'string')
    return isNamed ? fail(health, 'start the server, or correct --url') : ok(health)
  const { status, reasons, simulated } = health
  const down = health.feeds.filter(({ state }) => !['running', 'finished', 'stopped'].includes(state))
  const market = simulated ? ', its market is simulated' : ''
  if (reasons.length > 0)
    return fail(
      `the server at ${url} is ${status}: ${reasons.join('; ')}`,
      '/health has what each part says of it, and the log of the server why',
    )
  if (status !== 'ready')
    return warn(`the server at ${url} is ${status}`, 'ask again in a moment; /readyz says what it waits for')
  if (down.length === 0) return ok(`the server at ${url} is ready${market}`)
  const states = down.map(({ feed, state }) => `${feed} is ${state}`).join(', ')
  return warn(`the server at ${url} is ready, but ${states}`, '/health has the latest error of each feed')
}
