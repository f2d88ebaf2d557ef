// The limits of submissions, as the contract has them: each answer is compared with what was sent before. Where it is not known
// whether, or when, something counted, both possibilities are allowed.

import { COOLDOWN_MS, RATE_MAX, RATE_WINDOW_MS } from '../settings.ts'
import { check, type World } from '../world.ts'
import type { Agent, Attempt, Sending } from './agents.ts'

/** Stored times are whole milliseconds, and a turn takes a moment. */
const SLACK_MS = 10
const STRIKES_MAX = 3
/** So long a strike counts, and a suspension lasts. */
const STRIKE_MS = 86_400_000

/** Answers that say for certain that a submission counted against the rate. */
const COUNTED = new Set([
  'accepted',
  'snapshot_rejected',
  'validation_failed',
  'mint_cooldown',
  'token_not_found',
  'dry run',
])
/** Answers that say that it was not looked at. */
const NOT_EVALUATED = new Set([
  'agent_banned',
  'submit_rate_limited',
  'warming_up',
  'draining',
  'store_unavailable',
])

/** A reader tries again after a pause of so much, ms. */
const TRIED_AGAIN_AFTER_MS = 200
/** What a reader tries again counts each time where it comes to the writer and makes no record: so often at most. */
const TRIES_MAX = 5

const sendingsOf = (agent: Agent): Sending[] => agent.attempts.flatMap(({ sendings }) => sendings)

/** Compares an answer with the limits. */
export function checkLimits(world: World, sending: Sending): void {
  const { attempt, code, isReplay } = sending
  if (code === null || isReplay || sending.isToLeft || world.hadWrongClock || world.hasDamagedLog) return
  checkRate(world, sending, code)
  checkCooldown(world, sending, attempt, code)
  checkBan(world, sending, attempt.agent, code)
}

function checkRate(world: World, sending: Sending, code: string): void {
  const { attempt, sentMs, endedMs } = sending
  const others = sendingsOf(attempt.agent).filter((each) => each !== sending)
  if (code === 'submit_rate_limited') {
    const possible = others.filter(
      (each) =>
        each.endedMs > sentMs - RATE_WINDOW_MS - SLACK_MS && each.sentMs <= endedMs && !isNeverCounted(each),
    )
    check(
      world,
      'the rate limit refuses nobody wrongly',
      possible.reduce((sum, each) => sum + (mayBeTriedAgain(each) ? TRIES_MAX : 1), 0) >= RATE_MAX,
      () => `number ${attempt.id}: ${possible.length} of ${RATE_MAX} before it`,
    )
  } else if (!NOT_EVALUATED.has(code)) {
    const certain = others.filter(
      (each) =>
        each.sentMs > endedMs - RATE_WINDOW_MS + SLACK_MS &&
        each.endedMs < sentMs &&
        COUNTED.has(each.code ?? '') &&
        !each.isReplay &&
        !each.isToLeft,
    )
    check(
      world,
      'the rate limit is not exceeded',
      certain.length < RATE_MAX,
      () => `number ${attempt.id} (${code}): ${certain.length} of ${RATE_MAX} before it`,
    )
  }
}

/** Whether its answer may be that of a second try: of the first one it tells nothing. */
const mayBeTriedAgain = ({ reader, sentMs, endedMs }: Sending): boolean =>
  reader !== null && endedMs - sentMs >= TRIED_AGAIN_AFTER_MS

/** Refused before it counted, or answered from what is remembered. */
const isNeverCounted = (sending: Sending): boolean =>
  !mayBeTriedAgain(sending) &&
  (sending.isReplay ||
    sending.code === 'agent_banned' ||
    sending.code === 'submit_rate_limited' ||
    sending.code === 'warming_up' ||
    sending.code === 'draining')

/** Answers after which a cooldown may have started. */
const STARTING = new Set([
  'accepted',
  'snapshot_rejected',
  'store_unavailable',
  'idempotency_in_flight',
  'internal',
])
/** Whether it may have started a cooldown. */
const mayHaveStarted = (sending: Sending): boolean =>
  mayBeTriedAgain(sending) || (!sending.isReplay && (sending.code === null || STARTING.has(sending.code)))
/** It waited for a strike that suspended its agent: until then it held its mint. */
const hasHeld = ({ code, endedMs }: Sending, sentMs: number): boolean =>
  code === 'agent_banned' && endedMs >= sentMs
const hasStarted = ({ code, isReplay }: Sending): boolean =>
  !isReplay && (code === 'accepted' || code === 'snapshot_rejected')

function checkCooldown(world: World, sending: Sending, attempt: Attempt, code: string): void {
  const { sentMs, endedMs } = sending
  const others = sendingsOf(attempt.agent).filter(
    (each) => each !== sending && each.attempt.mint === attempt.mint,
  )
  if (code === 'mint_cooldown')
    check(
      world,
      'a cooldown refuses nobody wrongly',
      others.some(
        (each) =>
          each.sentMs <= endedMs &&
          ((mayHaveStarted(each) && each.endedMs > sentMs - COOLDOWN_MS - SLACK_MS) || hasHeld(each, sentMs)),
      ),
      () => `number ${attempt.id}: nothing started it`,
    )
  else if (hasStarted(sending)) {
    const early = others.find(
      (each) => hasStarted(each) && each.endedMs < sentMs && endedMs - each.sentMs < COOLDOWN_MS - SLACK_MS,
    )
    check(
      world,
      'a cooldown is kept',
      early === undefined,
      () =>
        `number ${attempt.id} comes ${endedMs - (early?.sentMs ?? 0)} ms after number ${early?.attempt.id}`,
    )
  }
}

function checkBan(world: World, sending: Sending, agent: Agent, code: string): void {
  const { sentMs, endedMs, attempt } = sending
  const rejections = sendingsOf(agent).filter(
    ({ code, isReplay }) => code === 'snapshot_rejected' && !isReplay,
  )
  const before = rejections.filter(
    (each) => each.endedMs < sentMs && each.sentMs > endedMs - STRIKE_MS + SLACK_MS,
  )
  const isBanned = agent.ban === 'banned' && agent.banSinceMs < sentMs
  if (code === 'agent_banned') {
    const possible = sendingsOf(agent).filter((each) => each.sentMs < endedMs && mayHaveStarted(each))
    check(
      world,
      'nobody is banned wrongly',
      agent.ban !== 'none' || possible.length >= STRIKES_MAX - 1,
      () => `number ${attempt.id} of ${agent.name}: ${rejections.length} strikes`,
    )
  } else if (hasStarted(sending))
    check(
      world,
      'a ban holds',
      !isBanned && before.length < STRIKES_MAX,
      () => `number ${attempt.id} of ${agent.name}: ${before.length} strikes, ${agent.ban}`,
    )
}
