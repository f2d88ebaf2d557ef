// Limits, strikes and bans against an oracle that scans all that was committed. They last exactly as long as they should,
// however the wall clock is set meanwhile. After a restart they last as long as the stored wall times say, and never longer
// than their length.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  STRIKE_WINDOW_MS,
  SUBMIT_LIMITS,
  SUSPENSION_MS,
  SUSPENSION_WINDOW_MS,
} from '../../src/submissions/limits.ts'
import type { Caller } from '../../src/submissions/types.ts'
import { SteppedClock } from '../support/clock.ts'
import { codeOf, type MemorySubmissions, openMemorySubmissions } from '../support/memory-submissions.ts'
import { newMint, submission, VALUES } from '../support/submission.ts'

const START_MS = 1_795_000_000_000
const MINUTE_MS = 60_000
/** So long an attempt counts: a tenth of a second is left to jitter. */
const COUNTED_MS = MINUTE_MS - 100
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const RATE_MAX = 4
const COOLDOWN_MS = 20 * MINUTE_MS
const MINTS = [newMint(), newMint()]

type Step =
  | { do: 'pass'; ms: number }
  | { do: 'step'; ms: number }
  | { do: 'ban'; ms: number }
  | { do: 'restart' }
  | { do: 'unban' }
  | { do: 'submit'; mint: number; isHonest: boolean }

const lengths = [
  1,
  999,
  6_000,
  COUNTED_MS - 1,
  COUNTED_MS,
  MINUTE_MS,
  COOLDOWN_MS,
  HOUR_MS,
  DAY_MS - 1,
  DAY_MS,
]
const lengthOf = <Kind extends 'pass' | 'step' | 'ban'>(kind: Kind, ...ms: number[]) =>
  fc.record({ do: fc.constant(kind), ms: fc.constantFrom(...ms) })
const submits = fc.record({ do: fc.constant('submit' as const), mint: fc.nat(1), isHonest: fc.boolean() })
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: submits },
  { weight: 4, arbitrary: lengthOf('pass', ...lengths) },
  { weight: 3, arbitrary: lengthOf('step', -40 * DAY_MS, -HOUR_MS, -1, 1, HOUR_MS, 40 * DAY_MS) },
  { weight: 1, arbitrary: lengthOf('ban', HOUR_MS, DAY_MS) },
  { weight: 1, arbitrary: fc.constantFrom({ do: 'unban' as const }, { do: 'restart' as const }) },
)

/** The time of one event, by each clock. */
interface Moment {
  wallMs: number
  atMs: number
}

/** The rules in their simplest form: every list is scanned, and nothing is dropped. */
class Oracle {
  attempts: Moment[] = []
  starts: (Moment & { mint: number })[] = []
  strikes: Moment[] = []
  suspensions: (Moment & { lengthMs: number })[] = []
  ban: (Moment & { lengthMs: number }) | null = null
  readonly #clock: SteppedClock

  constructor(clock: SteppedClock) {
    this.#clock = clock
  }

  #now(): Moment {
    return { wallMs: this.#clock.wallMs, atMs: this.#clock.elapsedMs }
  }

  /** A new process knows wall times alone. A time in the future counts as now. */
  restart(): void {
    const { wallMs, atMs } = this.#now()
    const lists = [
      this.attempts,
      this.starts,
      this.strikes,
      this.suspensions,
      this.ban === null ? [] : [this.ban],
    ]
    for (const moment of lists.flat()) moment.atMs = atMs - Math.max(0, wallMs - moment.wallMs)
  }

  banFor(lengthMs: number): void {
    this.ban = { ...this.#now(), lengthMs }
  }

  unban(): void {
    this.ban = null
    this.suspensions = []
  }

  submit(mint: number, isHonest: boolean): string | number {
    const now = this.#now()
    const within = (list: readonly Moment[], ms: number) =>
      list.filter(({ atMs }) => atMs > now.atMs - ms).length
    const bans = this.ban === null ? this.suspensions : [...this.suspensions, this.ban]
    if (bans.some(({ atMs, lengthMs }) => now.atMs < atMs + lengthMs)) return 'agent_banned'
    if (within(this.attempts, COUNTED_MS) >= RATE_MAX) return 'submit_rate_limited'
    this.attempts.push(now)
    const last = this.starts.filter((start) => start.mint === mint).at(-1)
    if (last !== undefined && now.atMs < last.atMs + COOLDOWN_MS) return 'mint_cooldown'
    this.starts.push({ ...now, mint })
    if (isHonest) return 'accepted'
    this.strikes.push({ ...now })
    if (within(this.strikes, STRIKE_WINDOW_MS) < SUBMIT_LIMITS.strikes) return 'snapshot_rejected'
    const earlier = within(this.suspensions, SUSPENSION_WINDOW_MS)
    const isForGood = earlier + 1 >= SUBMIT_LIMITS.suspensions
    this.suspensions.push({
      ...now,
      lengthMs: isForGood ? Number.POSITIVE_INFINITY : SUSPENSION_MS,
    })
    return 'agent_banned'
  }
}

async function run(plan: readonly Step[]): Promise<void> {
  const clock = new SteppedClock(START_MS)
  const oracle = new Oracle(clock)
  const open = (before?: MemorySubmissions) =>
    openMemorySubmissions(clock, {
      ...(before !== undefined && { rows: before.store.rows }),
      limits: { rate: RATE_MAX, cooldownMs: COOLDOWN_MS },
    })
  let service = open()
  const caller: Caller = await service.register()
  const { agentId } = caller.agent
  for (const step of plan) {
    if (step.do === 'pass') clock.pass(step.ms)
    else if (step.do === 'step') clock.step(step.ms)
    else if (step.do === 'ban') {
      await service.agents.ban(agentId, clock.wallMs + step.ms, 'a test')
      oracle.banFor(step.ms)
    } else if (step.do === 'unban') {
      await service.agents.unban(agentId)
      oracle.unban()
    } else if (step.do === 'restart') {
      service = open(service)
      oracle.restart()
    } else {
      const snapshot = { ...VALUES, liquidity: 1, snapshotAt: clock.wallMs }
      const body = submission(MINTS[step.mint], step.isHonest ? {} : { snapshot })
      expect(codeOf(await service.send(caller, body))).toBe(oracle.submit(step.mint, step.isHonest))
    }
  }
}

it('limits, strikes and bans last exactly as long as they should, however the wall clock is set meanwhile', async () => {
  await fc.assert(fc.asyncProperty(fc.array(steps, { minLength: 20, maxLength: 80 }), run), {
    numRuns: Number(process.env.MINTLAKE_TEST_RUNS ?? 60),
  })
})
