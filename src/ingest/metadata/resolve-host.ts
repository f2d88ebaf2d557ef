// The addresses of names that strangers have written. Their name servers may never answer, so they are asked without the system's
// look-up: that keeps one of the few threads of all look-ups of the process for half a minute, and cannot be given up.

import { Resolver } from 'node:dns/promises'
import { RESOLVE_MS, RESOLVE_TRIES } from './limits.ts'

export interface HostAddress {
  address: string
  family: number
}

/**
 * All addresses of a name, as the machine's name servers tell them; its file of hosts, which names its own network, is not read.
 * @param servers other name servers, as `address:port`
 */
export async function resolveHost(
  host: string,
  signal: AbortSignal,
  servers: readonly string[] | null = null,
): Promise<HostAddress[]> {
  signal.throwIfAborted()
  // One for each look-up: that of another is not given up with it.
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES })
  if (servers !== null) resolver.setServers(servers)
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel)
  try {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    // Most names have addresses of one kind alone.
    const [failed] = answers.filter(({ status }) => status === 'rejected')
    const addresses = answers.flatMap((answer, index) =>
      answer.status === 'rejected'
        ? []
        : answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 })),
    )
    if (addresses.length === 0 && failed?.status === 'rejected') throw failed.reason
    return addresses
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
