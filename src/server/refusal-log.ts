// Log lines of what clients are refused: submissions, limits, bans. One line of a kind in REFUSAL_LOG_MS at most, since anybody can
// cause as many as they like; the next one says how many were left out.
import type { Refusal } from '../http/pipeline.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { LogThrottle } from '../lib/log-throttle.ts'
import type { ErrorCode } from '../schema/errors.ts'

/** How often a line of one kind is written. */
export const REFUSAL_LOG_MS = 10_000
const SUBMIT_PATH = '/api/v1/analysis/submit'

const LIMITS: ReadonlySet<ErrorCode> = new Set([
  ...(['submit_rate_limited', 'read_rate_limited', 'register_rate_limited', 'overloaded'] as const),
  ...(['payload_too_large', 'query_too_costly'] as const),
])

/** @returns what is to be told of each refusal */
export function refusalLog(log: Log, clock: Clock): (refusal: Refusal) => void {
  const throttle = new LogThrottle(REFUSAL_LOG_MS, clock)
  const write = (level: 'debug' | 'info' | 'warn', kind: string, fields: object, sentence: string) => {
    const suppressed = throttle.due(kind)
    if (suppressed !== null) log[level]({ ...fields, ...(suppressed > 0 && { suppressed }) }, sentence)
  }
  return ({ error, path, agentId, address, requestId }) => {
    const { code, message, extra } = error
    const by = { ...(agentId === null ? { address } : { agentId }), requestId }
    if (code === 'agent_banned' && extra.strikes !== undefined) {
      const { strikes, bannedUntil = null } = extra
      write('warn', 'suspended', { ...by, strikes, bannedUntil }, 'an agent was suspended from submitting')
    } else if (LIMITS.has(code))
      write('info', code, { code, path, ...by, reason: message }, 'a limit was reached')
    else if (path === SUBMIT_PATH && error.status < 500) {
      // A cooldown is met in passing: it says nothing of who meets it.
      const level = code === 'mint_cooldown' ? 'debug' : 'info'
      write(level, code, { code, ...by, reason: message }, 'a submission was refused')
    }
  }
}
