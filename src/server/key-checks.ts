import { timingSafeEqual } from 'node:crypto'
import { ServiceError } from '../schema/errors.ts'
import type { Agents, Caller } from '../submissions/types.ts'

export interface OperatorKeys {
  /** '' where no feed may push. */
  feedKey: string
  /** '' where the admin endpoints are off. */
  adminKey: string
}

/** Checks the keys of feeds, operators and researchers. Keys are compared in constant time. */
export class KeyChecks {
  readonly #feedKey: string
  readonly #adminKey: string
  readonly #agents: Pick<Agents, 'authenticate'>

  constructor({ feedKey, adminKey }: OperatorKeys, agents: Pick<Agents, 'authenticate'>) {
    this.#feedKey = feedKey
    this.#adminKey = adminKey
    this.#agents = agents
  }

  /** @throws ServiceError `not_found` where the server has no such key, `missing_key`, `invalid_key`. */
  checkOperator(access: 'feed' | 'admin', sent: string): void {
    const expected = access === 'feed' ? this.#feedKey : this.#adminKey
    if (expected === '')
      throw new ServiceError('not_found', `This server has no ${access} key: the endpoint is off.`)
    const headers = { 'WWW-Authenticate': 'Bearer' }
    if (sent === '') throw new ServiceError('missing_key', `The ${access} key is required.`, {}, headers)
    if (!isEqual(expected, sent))
      throw new ServiceError('invalid_key', `The ${access} key is wrong.`, {}, headers)
  }

  /** Accepts the feed key, the admin key and the key of any agent. @throws ServiceError 401. */
  checkAnyKey(sent: string): void {
    const isOperator = [this.#feedKey, this.#adminKey].some((key) => key !== '' && isEqual(key, sent))
    if (!isOperator) this.#agents.authenticate(sent)
  }

  /** The researcher whose key it is, or null for the admin key. @throws ServiceError 401, or 403 for an agent's key. */
  admitResearcher(sent: string): Caller | null {
    if (this.#adminKey !== '' && isEqual(this.#adminKey, sent)) return null
    const caller = this.#agents.authenticate(sent)
    if (caller.agent.type === 'researcher') return caller
    throw new ServiceError('key_not_allowed', 'This needs the key of a researcher: ask the operator for one.')
  }
}

function isEqual(expected: string, sent: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(sent)]
  return a.length === b.length && timingSafeEqual(a, b)
}
