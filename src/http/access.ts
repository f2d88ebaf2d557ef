import type { Caller } from '../submissions/types.ts'
import type { ConsoleSessions } from './console-sessions.ts'
import type { KeyChecks } from './key-checks.ts'
import { isLoopbackName } from './request/addresses.ts'
import type { RequestHead } from './request/request-head.ts'
import type { Route } from './route.ts'

/** A page of the console, by its session key. It may do what a reader without a key may, and its reads are counted apart. */
export const CONSOLE_READER = 'console'

/** Who reads: an agent or a researcher by its key, a page of the console by its session, or null: nobody that is known. */
export type Reader = Caller | typeof CONSOLE_READER | null

/** The agent or researcher whose key it was; null for all others. */
export const callerOf = (reader: Reader): Caller | null => (reader === CONSOLE_READER ? null : reader)

/** Who checks a request before its route runs. Each throws a ServiceError to refuse it. */
export interface AccessChecks {
  health: {
    /** 503 while the server is warming up or shutting down. */
    admit(route: Route): void
    /** Why the market does not have all yet that it begins with; null: it does. */
    warmingUp(): string | null
  }
  agents: {
    /** The agent of a key, or 401. */
    authenticate(key: string): Caller
  }
  sessions: Pick<ConsoleSessions, 'check'>
  keys: Pick<KeyChecks, keyof KeyChecks>
}

/**
 * Checks whether the server takes requests, then the key that the route's access asks for.
 * @param key empty if none was sent. @param isFromHere whether it is local, where the route opens to such requests.
 * @returns who reads; null if the key belongs to nobody that is known, or none is needed.
 */
export function authorize(checks: AccessChecks, route: Route, key: string, isFromHere = false): Reader {
  const { health, agents, keys, sessions } = checks
  health.admit(route)
  switch (route.access) {
    case 'read':
    case 'personal':
      return key === '' ? null : readerOfKey(checks, key)
    case 'agent':
      return agents.authenticate(key)
    case 'researcher':
      return key === '' && isFromHere && keys.isQueryOpen() ? null : keys.admitResearcher(key)
    case 'feed':
    case 'admin':
      keys.checkOperator(route.access, key)
      return null
    case 'forwarded':
      return null
    case 'open':
      if (key !== '' && sessions.check(key) === 'no') keys.checkAnyKey(key)
      return null
  }
}

/** A session that has ended gives nothing: its page counts as a reader without a key until it has asked for another. So does the operator. */
function readerOfKey({ agents, keys, sessions }: AccessChecks, key: string): Reader {
  switch (sessions.check(key)) {
    case 'open':
      return CONSOLE_READER
    case 'unknown':
      return null
    case 'no':
      return keys.isAdmin(key) ? null : agents.authenticate(key)
  }
}

/** Headers that proxies add to what they pass on, and no program or page of this computer needs to send. */
const OF_PROXIES = new Set([
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-original-for',
  'x-original-host',
  'x-original-proto',
  'x-original-forwarded-for',
  'x-url-scheme',
  'x-scheme',
  'front-end-https',
  'proxy-connection',
  'x-proxyuser-ip',
  'x-envoy-external-address',
  'x-envoy-internal',
  'x-amzn-trace-id',
  'x-azure-clientip',
  'fly-client-ip',
  'true-client-ip',
  'fastly-client-ip',
  'cf-connecting-ip',
  'cf-ray',
  'cdn-loop',
  'x-mintlake-relay',
])

/** All that begin with this are of proxies as well: X-Forwarded-For, -Host, -Proto, -Port, -Server and the like. */
const OF_PROXIES_PREFIX = 'x-forwarded'

/**
 * Whether a request to a server that listens on loopback is one of this computer's own programs: not passed on by a proxy, and not
 * of a page that another site has sent to a browser here (its Origin tells), by whatever name it calls this server. A proxy on this
 * computer that adds no header, and passes on a name of this computer as Host, cannot be told from them.
 */
export function isLocal(head: RequestHead): boolean {
  const { host, origin } = head.sent
  if (!isLoopbackName(host.replace(/:\d+$/, ''))) return false
  if (origin !== '' && origin !== `http://${host}`) return false
  return !head.names().some((name) => OF_PROXIES.has(name) || name.startsWith(OF_PROXIES_PREFIX))
}
