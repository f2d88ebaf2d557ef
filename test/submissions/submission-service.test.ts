// The submission service against a store that the test holds: what is reserved before the wait is taken back when the store refuses.
import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { ENRICHED_FIELDS, type Enriched, type SnapshotValues } from '../../src/schema/datapoint.ts'
import { ServiceError } from '../../src/schema/errors.ts'
import type { Write } from '../../src/schema/tables.ts'
import { createAgentRegistry } from '../../src/submissions/accounts/agent-registry.ts'
import { createSubmissionService } from '../../src/submissions/submission-service.ts'
import type { Answer, Caller, SubmissionService } from '../../src/submissions/types.ts'
import { clockOf } from '../support/clock.ts'
import { newMint, submission, VALUES } from '../support/submission.ts'

const START_MS = 1_795_000_000_000
let nowMs: number
let committed: Write[]
/** What the store does with the next commits. */
let commit: (writes: readonly Write[]) => Promise<void>
let values: Map<string, SnapshotValues>
let submissions: SubmissionService
let caller: Caller
let accepted: [string, number][]

const NOTHING_ENRICHED = Object.fromEntries(ENRICHED_FIELDS.map((field) => [field, null])) as Enriched
const unavailable = () => Promise.reject(new ServiceError('store_unavailable', 'the disk is full'))
const send = (body: unknown, idempotencyKey: string | null = null): Promise<Answer | ServiceError> =>
  submissions
    .submit(caller, { body: Buffer.from(JSON.stringify(body)), idempotencyKey })
    .catch((error) => error)
const codeOf = (answer: Answer | ServiceError) =>
  answer instanceof ServiceError ? answer.code : answer.status

beforeEach(async () => {
  nowMs = START_MS
  committed = []
  accepted = []
  values = new Map()
  commit = async (writes) => {
    committed.push(...writes)
  }
  const store = { commit: (writes: readonly Write[]) => commit(writes), analysis: async () => null }
  const clock = clockOf(() => nowMs)
  const empty = { agents: [], agentKeys: [], agentEvents: [] }
  const agents = createAgentRegistry({ recovered: empty, store, clock, randomBytes, registrationOpen: true })
  const snapshot = (mint: string) => values.get(mint) ?? null
  submissions = createSubmissionService({
    market: {
      has: (mint) => values.has(mint),
      snapshot,
      asOf: snapshot,
      enriched: () => NOTHING_ENRICHED,
      datapoint: () => null,
    },
    store,
    agents,
    clock,
    marketMs: () => nowMs,
    recovered: {
      submitAttempts: [],
      idempotency: [],
      cooldowns: [],
      strikes: [],
      xpTotals: [],
      coverage: [],
    },
    onAccepted: (mint, count) => accepted.push([mint, count]),
  })
  const { data } = (await agents.register({ name: 'agent' })).body as { data: { key: string } }
  caller = agents.authenticate(data.key)
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
  it('an acceptance leaves no trace: rate, cooldown, XP, coverage and first bonus are as before', async () => {
    const mint = token()
    commit = unavailable
    for (let count = 0; count < 12; count++)
      expect(codeOf(await send(submission(mint)))).toBe('store_unavailable')
    expect(submissions.leaderboard(10)).toMatchObject({ totalAnalyses: 0, uniqueTokens: 0 })
    expect(accepted).toEqual([])
    commit = async (writes) => {
      committed.push(...writes)
    }
    const answer = (await send(submission(mint))) as Answer
    expect(answer.body).toMatchObject({ xpEarned: 50, xpTotal: 50 })
    expect(answer.headers?.['X-RateLimit-Remaining']).toBe('9')
    expect(committed.map(({ table }) => table)).toEqual(['training', 'xp_ledger', 'submit_attempts'])
    expect(accepted).toEqual([[mint, 1]])
  })

  it('a rejection leaves no strike, and no suspension', async () => {
    for (let count = 0; count < 2; count++)
      expect(codeOf(await send(fabricated(token())))).toBe('snapshot_rejected')
    const working = commit
    commit = unavailable
    for (let count = 0; count < 3; count++)
      expect(codeOf(await send(fabricated(token())))).toBe('store_unavailable')
    commit = working
    expect(codeOf(await send(submission(token())))).toBe(201)
    expect(codeOf(await send(fabricated(token())))).toBe('agent_banned')
    expect(codeOf(await send(submission(token())))).toBe('agent_banned')
  })

  it('an Idempotency-Key is free again', async () => {
    const mint = token()
    const working = commit
    commit = unavailable
    expect(codeOf(await send(submission(mint), 'key'))).toBe('store_unavailable')
    commit = working
    expect(codeOf(await send(submission(mint), 'key'))).toBe(201)
  })
})

describe('while the store is writing', () => {
  it('nothing is answered, and what is reserved holds', async () => {
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
    expect(codeOf(await first)).toBe(201)
    expect(accepted).toEqual([[mint, 1]])
  })
})

it('a body that is refused is on record as an attempt before it is answered', async () => {
  expect(codeOf(await send({}))).toBe('validation_failed')
  expect(committed).toEqual([
    { table: 'submit_attempts', row: { agent_id: caller.agent.agentId, at: START_MS } },
  ])
})
