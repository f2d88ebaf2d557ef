// What a reader needs of the accounts on the bus.
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Caller } from '../../submissions/types.ts'
import type { Bus } from '../bus.ts'

export interface ReaderAccounts {
  /** Whether all accounts were known once. */
  readonly isReady: boolean
  /** Throws missing_key, invalid_key or revoked_key. */
  authenticate(key: string): Caller
  /** The agent's name, or its id where that is not known. */
  name(agentId: string): string
  /** Resolves when the accounts are those of that revision or of a later one, and after `msMax` in any case. */
  until(revision: number, msMax: number): Promise<void>
  stop(): Promise<void>
}

export interface AccountsOptions {
  bus: Bus
  clock: Clock
  log: Log
}

export type OpenAccounts = (options: AccountsOptions) => ReaderAccounts
