// SubmissionService with a store that the test controls: what is reserved before the wait is released when the store refuses.
import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { ENRICHED_FIELDS, type SnapshotValues, type SourcedEnriched } from '../../src/schema/datapoint.ts'
import type { Write } from '../../src/schema/tables.ts'
import { AgentRegistry } from '../../src/submissions/accounts/agent-registry.ts'
import { SubmissionError } from '../../src/submissions/errors.ts'
import { SubmissionService } from '../../src/submissions/submission-service.ts'
import type { Caller, SubmitResult } from '../../src/submissions/types.ts'
import { clockOf } from '../support/clock.ts'
import { codeOf } from '../support/memory-submissions.ts'
import { newMint, submission, VALUES } from '../support/submission.ts'

const START_MS = 1_795_000_000_000
let nowMs: number
let committed: Write[]
/** How the store handles the next commits. */
let commit: (writes: readonly Write[]) => Promise<void>
let values: Map<string, SnapshotValues>
let submissions: SubmissionService
let agents: AgentRegistry
let caller: Caller
let accepted: [string, number][]

const NOTHING_ENRICHED = Object.fromEntries(
  [...ENRICHED_FIELDS, 'enriched_at', 'enriched_source'].map((field) => [field, null]),
) as SourcedEnriched
const unavailable = () => Promise.reject(new SubmissionError('store_unavailable', 'the disk is full'))
const send = (body: unknown, idempotencyKey: string | null = null): Promise<SubmitResult | SubmissionError> =>
  submissions
    .submit(caller, { body: Buffer.from(JSON.stringify(body)), idempotencyKey })
    .catch((error) => error)

beforeEach(async () => {
  nowMs = START_MS
  committed = []
  accepted = []
  values = new Map()
  commit = async (writes) => {
    committed.push(...writes)
  }
  const store = {
    commit: (writes: readonly Write[]) => commit(writes),
    analysis: async () => null,
    submissions: async () => ({ submissions: [], next: null, searchedToMs: null }),
  }
  const clock = clockOf(() => nowMs)
  const empty = { agents: [], agentKeys: [], agentEvents: [] }
  agents = new AgentRegistry({
    recovered: empty,
    store,
    clock,
    random: Math.random,
    randomBytes,
    registrationOpen: true,
  })
  const snapshot = (mint: string) => values.get(mint) ?? null
  submissions = new SubmissionService({
    market: {
      snapshot,
      versionsAt: (mint) => [values.get(mint) ?? []].flat(),
      enriched: () => NOTHING_ENRICHED,
      datapoint: () => null,
    },
    store,
    agents,
    clock,
    random: Math.random,
    marketMs: () => nowMs,
    recovered: {
      submitAttempts: [],
      idempotency: [],
      cooldowns: [],
      strikes: [],
      xpTotals: [],
      coverage: [],
      recentLabels: [],
      outcomeCounts: [],
    },
    onAccepted: (mint, count) => accepted.push([mint, count]),
  })
  const { key } = await agents.register({ name: 'agent' })
  caller = agents.authenticate(key)
  committed = []
})

function token(): string {
  const mint = newMint()
  values.set(mint, { ...VALUES })
  return mint
}

const fabricated = (mint: string) =>
  submission(mint, { snapshot: { ...VALUES, liquidity: 1, snapshotAt: nowMs } })

describe('when the store refuses', () => {
  it('an accepted submission changes nothing: rate, cooldown, XP, coverage and first bonus are as before', async () => {
    const mint = token()
    commit = unavailable
    for (let count = 0; count < 12; count++)
      expect(codeOf(await send(submission(mint)))).toBe('store_unavailable')
    expect(submissions.leaderboard(10)).toMatchObject({ totalAnalyses: 0, uniqueTokens: 0 })
    expect(accepted).toEqual([])
    commit = async (writes) => {
      committed.push(...writes)
    }
    const result = await send(submission(mint))
    expect(result).toMatchObject({ receipt: { xpEarned: 50, xpTotal: 50 }, quota: { remaining: 9 } })
    expect(committed.map(({ table }) => table)).toEqual(['training', 'xp_ledger', 'submit_attempts'])
    expect(accepted).toEqual([[mint, 1]])
  })

  it('a rejection causes no strike and no suspension', async () => {
    for (let count = 0; count < 2; count++)
      expect(codeOf(await send(fabricated(token())))).toBe('snapshot_rejected')
    const working = commit
    commit = unavailable
    for (let count = 0; count < 3; count++)
      expect(codeOf(await send(fabricated(token())))).toBe('store_unavailable')
    commit = working
    expect(codeOf(await send(submission(token())))).toBe('accepted')
    expect(codeOf(await send(fabricated(token())))).toBe('agent_banned')
    expect(codeOf(await send(submission(token())))).toBe('agent_banned')
  })

  it('the Idempotency-Key can be used again', async () => {
    const mint = token()
    const working = commit
    commit = unavailable
    expect(codeOf(await send(submission(mint), 'key'))).toBe('store_unavailable')
    commit = working
    expect(codeOf(await send(submission(mint), 'key'))).toBe('accepted')
  })
})

describe('while the store is writing', () => {
  it('nothing is returned, and rate, cooldown and Idempotency-Key are reserved', async () => {
    const mint = token()
    let finish = () => {}
    commit = () =>
      new Promise((resolve) => {
        finish = resolve
      })
    const first = send(submission(mint), 'key')
    const racing = await Promise.race([first, Promise.resolve('nothing yet')])
    expect(racing).toBe('nothing yet')
    expect(codeOf(await send(submission(mint), 'key'))).toBe('idempotency_in_flight')
    commit = async () => {}
    expect(codeOf(await send(submission(mint)))).toBe('mint_cooldown')
    expect(accepted).toEqual([])
    finish()
    expect(codeOf(await first)).toBe('accepted')
    expect(accepted).toEqual([[mint, 1]])
  })
})

describe('who is banned since, and sends the same again under its Idempotency-Key', () => {
  it('gets the first answer, and nothing new is taken', async () => {
    const body = submission(token())
    const first = (await send(body, 'key')) as SubmitResult
    await agents.ban(caller.agent.agentId, null, 'spam')
    expect(await send(body, 'key')).toMatchObject({ receipt: first.receipt, isReplay: true })
    expect(codeOf(await send(body, 'another key'))).toBe('agent_banned')
    expect(codeOf(await send(body))).toBe('agent_banned')
    expect(accepted).toHaveLength(1)
  })

  it('also where that answer is the strike which has suspended it', async () => {
    for (let strike = 1; strike < 3; strike++) await send(fabricated(token()))
    const body = fabricated(token())
    const [first, again] = [await send(body, 'key'), await send(body, 'key')] as SubmissionError[]
    expect(first?.details).toMatchObject({ outcome: 'rejected', strikes: 3 })
    expect(again?.details).toMatchObject(first!.details)
  })
})

it('an invalid body is recorded as an attempt before the error is thrown', async () => {
  expect(codeOf(await send({}))).toBe('validation_failed')
  expect(committed).toEqual([
    { table: 'submit_attempts', row: { agent_id: caller.agent.agentId, at: START_MS } },
  ])
})
