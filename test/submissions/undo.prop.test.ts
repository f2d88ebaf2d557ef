// Submissions, bans, rotations and profile changes race while the store accepts some commits and refuses others. Afterwards
// the state of the service is exactly that of a restart from the durable rows.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Row, TableName } from '../../src/schema/tables.ts'
import { SUBMIT_LIMITS } from '../../src/submissions/limits.ts'
import type { Caller } from '../../src/submissions/types.ts'
import { xpBreakdown, xpEarned } from '../../src/submissions/xp/xp.ts'
import { SteppedClock } from '../support/clock.ts'
import { type MemorySubmissions, openMemorySubmissions } from '../support/memory-submissions.ts'
import { newMint, submission, VALUES } from '../support/submission.ts'

const START_MS = 1_795_000_000_000
const AGENTS = 3
const MINTS = Array.from({ length: 4 }, () => newMint())

const OTHERS = ['ban', 'unban', 'rotate', 'revokeAll', 'set website', 'set handle'] as const
const CHANGES = { good: {}, poor: { liquidity: 7_000 }, fabricated: { liquidity: 1 } }

type Action =
  | { do: 'submit'; agent: number; mint: number; kind: keyof typeof CHANGES }
  | { do: 'decide'; isDurable: boolean }
  | { do: (typeof OTHERS)[number]; agent: number }
  | { do: 'pass'; ms: number }

const agent = fc.nat(AGENTS - 1)
const submits = fc.record({
  do: fc.constant('submit' as const),
  agent,
  mint: fc.nat(MINTS.length - 1),
  kind: fc.constantFrom('good' as const, 'good' as const, 'poor' as const, 'fabricated' as const),
})
const others = fc.constantFrom(...OTHERS)
const actions: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: submits },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('decide' as const), isDurable: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: others, agent }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1_000, 30_000, 3_600_000) }),
  },
)

/** Lets requests that were notified go on until all wait for the store. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** The visible state of the service. */
function seen({ submissions, agents }: MemorySubmissions, callers: readonly Caller[]) {
  return {
    leaderboard: submissions.leaderboard(10),
    agentLeaderboard: submissions.agentLeaderboard(10),
    agents: agents.list(),
    profiles: callers.map((caller) => agents.profile(caller)),
    suspensions: callers.map(({ agent: { agentId } }) => agents.bans(agentId).suspendedAtMs.length),
  }
}

/** Every bonus and every strike in the rows follows from the rows before it. */
function expectEarned(rowsOf: (table: TableName) => Row[]): void {
  const counts = new Map<string, number>()
  const earned = rowsOf('training').map(({ analysis_id, mint, outcome }) => {
    const before = counts.get(mint as string) ?? 0
    counts.set(mint as string, before + 1)
    return [analysis_id, xpEarned(xpBreakdown(outcome as 'validated', before))]
  })
  expect(rowsOf('xp_ledger').map(({ analysis_id, xp }) => [analysis_id, xp])).toEqual(earned)
  const strikes = new Map<string, number>()
  for (const { agent_id, strikes: told } of rowsOf('rejections')) {
    strikes.set(agent_id as string, (strikes.get(agent_id as string) ?? 0) + 1)
    expect(told).toBe(strikes.get(agent_id as string))
  }
  const suspended = rowsOf('agent_events').filter(({ kind }) => kind === 'suspended')
  for (const { agent_id } of suspended)
    expect(strikes.get(agent_id as string)).toBeGreaterThanOrEqual(SUBMIT_LIMITS.strikes)
}

async function run(plan: readonly Action[]): Promise<void> {
  const clock = new SteppedClock(START_MS)
  const settings = { limits: { rate: 0, cooldownMs: 20_000 } }
  const service = openMemorySubmissions(clock, settings)
  const callers: Caller[] = []
  for (let count = 0; count < AGENTS; count++) callers.push(await service.register(`agent ${count}`))
  const { agents, store } = service
  store.isReady = false
  const underWay: Promise<unknown>[] = []
  const act = (action: Exclude<Action, { do: 'decide' | 'pass' }>): Promise<unknown> => {
    const caller = callers[action.agent]
    const { agentId } = caller.agent
    if (action.do === 'ban') return agents.ban(agentId, null, 'a test')
    if (action.do === 'rotate') return agents.rotate(caller)
    if (action.do === 'revokeAll') return agents.revokeKeys(agentId, null)
    if (action.do === 'set website') return agents.setProfile(caller, { website: 'https://example.org' })
    if (action.do === 'set handle') return agents.setProfile(caller, { twitterHandle: '@agent' })
    if (action.do !== 'submit') return agents.unban(agentId)
    const snapshot = { ...VALUES, ...CHANGES[action.kind], snapshotAt: clock.wallMs }
    return service.send(caller, submission(MINTS[action.mint], { snapshot }))
  }
  for (const action of plan) {
    if (action.do === 'pass') clock.pass(action.ms)
    else if (action.do === 'decide') store.decide(action.isDurable)
    else underWay.push(act(action).catch(() => {}))
    await settled()
  }
  while (store.waiting > 0) {
    store.decide(true)
    await settled()
  }
  await Promise.all(underWay)
  const again = openMemorySubmissions(clock, { ...settings, rows: store.rows })
  expect(seen(service, callers)).toEqual(seen(again, callers))
  expectEarned((table) => store.rows.filter((write) => write.table === table).map(({ row }) => row))
}

it('a refused commit releases what it reserved and nothing that others did', async () => {
  await fc.assert(fc.asyncProperty(fc.array(actions, { minLength: 20, maxLength: 80 }), run), {
    numRuns: Number(process.env.MINTLAKE_TEST_RUNS ?? 60),
  })
}, 60_000)
