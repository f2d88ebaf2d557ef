import { timingSafeEqual } from 'node:crypto'
import { ServiceError } from '../schema/errors.ts'
import type { AgentRegistry } from '../submissions/accounts/agent-registry.ts'
import type { Caller } from '../submissions/types.ts'
import { isLoopback } from './request/addresses.ts'

interface KeySettings {
  /** Empty: the server has none. */
  feedKey: string
  adminKey: string
  host: string
  trustedProxies: readonly string[]
  publicUrl: string
}

type KnownAgents = Pick<AgentRegistry, 'authenticate' | 'hasResearcher'>

/** How keys for the lake are made. */
const RESEARCHERS_KEY = 'npx mintlake keys make lab --type researcher makes a researcher’s'
const OPERATORS_KEY = 'MINTLAKE_ADMIN_KEY=<secret> npm start gives the server the operator’s'

/** Checks the keys of feeds, operators and researchers. Keys are compared in constant time. */
export class KeyChecks {
  readonly #settings: KeySettings
  readonly #agents: KnownAgents

  constructor(settings: KeySettings, agents: KnownAgents) {
    this.#settings = settings
    this.#agents = agents
  }

  /** @throws ServiceError `not_found` where the server has no such key, `missing_key`, `invalid_key`. */
  checkOperator(access: 'feed' | 'admin', sent: string): void {
    const expected = access === 'feed' ? this.#settings.feedKey : this.#settings.adminKey
    if (expected === '')
      throw new ServiceError('not_found', `This server has no ${access} key: the endpoint is off.`)
    if (sent === '') throw new ServiceError('missing_key', `The ${access} key is required.`)
    if (!isKey(expected, sent)) throw new ServiceError('invalid_key', `The ${access} key is wrong.`)
  }

  /** Whether it is the operator's key. */
  isAdmin(sent: string): boolean {
    return isKey(this.#settings.adminKey, sent)
  }

  /** Accepts the feed key, the admin key and the key of any agent. @throws ServiceError 401. */
  checkAnyKey(sent: string): void {
    if (!this.isAdmin(sent) && !isKey(this.#settings.feedKey, sent)) this.#agents.authenticate(sent)
  }

  /** Whether programs of this computer may query the lake without a key: nobody has one, and nobody else is served. */
  isQueryOpen(): boolean {
    const { adminKey, host, trustedProxies, publicUrl } = this.#settings
    const isPrivate = isLoopback(host) && trustedProxies.length === 0 && publicUrl === ''
    return isPrivate && adminKey === '' && !this.#agents.hasResearcher()
  }

  /** The researcher whose key it is, or null for the admin key. @throws ServiceError 401, or 403 for an agent's key. */
  admitResearcher(sent: string): Caller | null {
    if (this.isAdmin(sent)) return null
    if (sent === '')
      throw new ServiceError(
        'missing_key',
        `A researcher’s key or the operator’s is required: ${OPERATORS_KEY}, and ${RESEARCHERS_KEY}.`,
      )
    const caller = this.#agents.authenticate(sent)
    if (caller.agent.type === 'researcher') return caller
    throw new ServiceError(
      'key_not_allowed',
      `This is an agent’s key, and this needs a researcher’s or the operator’s: ${RESEARCHERS_KEY}.`,
    )
  }
}

/** @param expected empty: there is no such key */
function isKey(expected: string, sent: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(sent)]
  return expected !== '' && a.length === b.length && timingSafeEqual(a, b)
}
