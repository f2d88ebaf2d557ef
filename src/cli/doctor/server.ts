// The port, and the server that answers there.
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { whyNotListening } from '../../lib/why-not-listening.ts'
import { Failure } from '../command.ts'
import { HEALTH_TIMEOUT_MS } from '../limits.ts'
import { askServer } from '../server-client.ts'
import { type CheckResult, fail, ok, warn } from './check.ts'

const healthSchema = z.object({
  status: z.string(),
  reasons: z.array(z.string()),
  simulated: z.boolean(),
  feeds: z.array(z.object({ feed: z.string(), state: z.string() })),
  store: z.object({ folderId: z.string().optional() }),
})
export type ServerHealth = z.infer<typeof healthSchema>

/** The health of the Mintlake server at `url`; a sentence where there is none. */
export async function askHealth(url: string): Promise<ServerHealth | string> {
  try {
    const answer = await askServer(url, { method: 'GET', path: '/health', timeoutMs: HEALTH_TIMEOUT_MS })
    const health = safeParse(healthSchema, answer)
    return health.success ? health.data : `${url} answers in an unknown form`
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
}

export async function checkPort(
  host: string,
  port: number,
  health: ServerHealth | string,
): Promise<CheckResult> {
  const place = `port ${port} on ${host}`
  const code = await whyNotListening(host, port)
  if (code === null) return ok(`${place} is free`)
  if (code === 'EADDRINUSE' && typeof health !== 'string') return ok(`${place}: a Mintlake server answers`)
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
    return isNamed ? fail(health, 'start the server, or correct --url') : ok(`no server runs at ${url}`)
  const { status, reasons, simulated } = health
  const down = health.feeds.filter(({ state }) => !['running', 'finished', 'stopped'].includes(state))
  const market = simulated ? ', its market is simulated' : ''
  if (reasons.length > 0)
    return fail(
      `the server at ${url} is ${status}: ${reasons.join('; ')}`,
      'see src/store/README.md, what happens when',
    )
  if (status !== 'ready')
    return warn(`the server at ${url} is ${status}`, 'ask again in a moment; /readyz says what it waits for')
  if (down.length === 0) return ok(`the server at ${url} is ready${market}`)
  const states = down.map(({ feed, state }) => `${feed} is ${state}`).join(', ')
  return warn(`the server at ${url} is ready, but ${states}`, '/health has the latest error of each feed')
}
