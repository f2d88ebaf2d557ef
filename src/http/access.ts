import type { Caller } from '../submissions/types.ts'
import type { Route } from './route.ts'

/** The checks that a request passes before its route runs. Each throws a ServiceError to refuse it. */
export interface AccessChecks {
  /** 503 while the server is warming up or shutting down. */
  admit(route: Route): void
  /** The agent of a key, or 401. */
  authenticate(key: string): Caller
  /** 401 unless it is the feed key or the operator's key. */
  checkOperator(access: 'feed' | 'admin', key: string): void
  /** 401 unless it is a key of this server, of any kind. */
  checkAnyKey(key: string): void
  /** The researcher of a key, or null for the operator's; 401, or 403 for the key of another agent. */
  admitResearcher(key: string): Caller | null
}

/**
 * Checks whether the server takes requests, then the key that the route's access asks for.
 * @param key empty if none was sent.
 * @returns the agent of the key, or null if the key belongs to no agent or none is needed.
 */
export function authorize(checks: AccessChecks, route: Route, key: string): Caller | null {
  checks.admit(route)
  switch (route.access) {
    case 'read':
    case 'personal':
      return key === '' ? null : checks.authenticate(key)
    case 'agent':
      return checks.authenticate(key)
    case 'researcher':
      return checks.admitResearcher(key)
    case 'feed':
    case 'admin':
      checks.checkOperator(route.access, key)
      return null
    case 'forwarded':
      return null
    case 'open':
      if (key !== '') checks.checkAnyKey(key)
      return null
  }
}
