// Requests that race while the store is writing. A refused one releases what it reserved, and nothing that others did. The
// store is in memory, and the test decides each commit.
import { beforeEach, describe, expect, it } from 'vitest'
import { SubmissionError } from '../../src/submissions/errors.ts'
import type { Caller, SubmitResult } from '../../src/submissions/types.ts'
import { SteppedClock } from '../support/clock.ts'
import { codeOf, type MemorySubmissions, openMemorySubmissions } from '../support/memory-submissions.ts'
import { newMint, submission, VALUES } from '../support/submission.ts'

const START_MS = 1_795_000_000_000
const DAY_MS = 86_400_000
const COOLDOWN_MS = 1_000

let clock: SteppedClock
let service: MemorySubmissions
const restarted = () =>
  openMemorySubmissions(clock, { limits: { cooldownMs: COOLDOWN_MS }, rows: service.store.rows })
const settled = () => new Promise((resolve) => setImmediate(resolve))
const fabricated = (mint: string) =>
  submission(mint, { snapshot: { ...VALUES, liquidity: 1, snapshotAt: clock.wallMs } })

beforeEach(() => {
  clock = new SteppedClock(START_MS)
  service = openMemorySubmissions(clock, { limits: { cooldownMs: COOLDOWN_MS } })
})

/** From here on commits wait. */
function hold(): void {
  service.store.isReady = false
}

/** The oldest commits become durable or are refused, in this order, and the requests that waited for them go on. */
async function decide(...fates: boolean[]): Promise<void> {
  await settled()
  for (const isDurable of fates) {
    service.store.decide(isDurable)
    await settled()
  }
}

const earnedXp = (answer: unknown) => (answer as SubmitResult).receipt.xpEarned

describe('when the store refuses a submission', () => {
  it('a racing submission earns the first bonus instead', async () => {
    const [one, other, third] = [await service.register(), await service.register(), await service.register()]
    const mint = newMint()
    hold()
    const [first, second] = [service.send(one, submission(mint)), service.send(other, submission(mint))]
    await decide(false, true)
    expect(codeOf(await first)).toBe('store_unavailable')
    expect(earnedXp(await second)).toBe(50)
    const last = service.send(third, submission(mint))
    await decide(true)
    expect(earnedXp(await last)).toBe(25)
  })

  it('the leaderboard keeps the labels of the accepted one', async () => {
    const [one, other] = [await service.register(), await service.register()]
    const mint = newMint()
    await service.send(await service.register(), submission(mint))
    hold()
    const accepted = service.send(one, submission(mint, { sentiment: 'bearish', score: 10 }))
    const refused = service.send(other, submission(mint, { sentiment: 'neutral', score: 50 }))
    await decide(true, false)
    await Promise.all([accepted, refused])
    expect(service.submissions.leaderboard(1).leaderboard).toMatchObject([
      { mint, count: 2, lastSentiment: 'bearish', lastScore: 10 },
    ])
  })

  it('the cooldown of a later submission of the same mint stays', async () => {
    const caller = await service.register()
    const mint = newMint()
    hold()
    const first = service.send(caller, submission(mint))
    clock.pass(COOLDOWN_MS)
    const second = service.send(caller, submission(mint))
    await decide(false)
    expect(codeOf(await first)).toBe('store_unavailable')
    const third = service.send(caller, submission(mint))
    await decide(true, true)
    expect(codeOf(await second)).toBe('accepted')
    expect(codeOf(await third)).toBe('mint_cooldown')
  })

  it('its rate is released if the attempt could not be written either', async () => {
    const caller = await service.register()
    hold()
    const answers = Array.from({ length: 10 }, () => service.send(caller, {}))
    await decide(...Array(10).fill(false))
    for (const answer of answers) expect(codeOf(await answer)).toBe('store_unavailable')
    const next = service.send(caller, {})
    await decide(true)
    expect(codeOf(await next)).toBe('validation_failed')
  })
})

describe('when the store refuses a rejection', () => {
  it('the strike of a racing rejection stays', async () => {
    const caller = await service.register()
    hold()
    const [first, second] = [
      service.send(caller, fabricated(newMint())),
      service.send(caller, fabricated(newMint())),
    ]
    await decide(false, true)
    expect(codeOf(await first)).toBe('store_unavailable')
    expect(((await second) as SubmissionError).details.strikes).toBe(1)
    const third = service.send(caller, fabricated(newMint()))
    await decide(true)
    expect(((await third) as SubmissionError).details.strikes).toBe(2)
  })

  it('the operator’s ban stays, though the rejection would have suspended', async () => {
    const caller = await service.register()
    for (let strike = 1; strike < 3; strike++) await service.send(caller, fabricated(newMint()))
    hold()
    const third = service.send(caller, fabricated(newMint()))
    await settled()
    const banned = service.agents.ban(caller.agent.agentId, null, 'spam')
    expect(codeOf(await service.send(caller, submission(newMint())))).toBe('agent_banned')
    await decide(false, true)
    await banned
    expect(codeOf(await third)).toBe('store_unavailable')
    const refused = (await service.send(caller, submission(newMint()))) as SubmissionError
    expect(refused.details.bannedUntil).toBeNull()
  })
})

it.each(['first', 'last'])(
  'an operator’s ban holds if it is written %s of a ban and an automatic suspension',
  async (place) => {
    const caller = await service.register()
    for (let strike = 1; strike < 3; strike++) await service.send(caller, fabricated(newMint()))
    hold()
    const ban = (): Promise<unknown> => service.agents.ban(caller.agent.agentId, null, 'spam')
    const reject = (): Promise<unknown> => service.send(caller, fabricated(newMint()))
    const both = place === 'first' ? [ban()] : [reject()]
    await settled()
    both.push(place === 'first' ? reject() : ban())
    await decide(true, true)
    await Promise.all(both)
    for (const each of [service, restarted()]) {
      clock.pass(2 * DAY_MS)
      const refused = (await each.send(caller, submission(newMint()))) as SubmissionError
      expect(codeOf(refused)).toBe('agent_banned')
      expect(refused.details.bannedUntil).toBeNull()
    }
  },
)

it('requests with an Idempotency-Key whose first answer has expired are told apart as with a new one', async () => {
  const caller = await service.register()
  await service.send(caller, submission(newMint()), 'key')
  clock.pass(DAY_MS)
  hold()
  const body = submission(newMint())
  const first = service.send(caller, body, 'key')
  const racing = [service.send(caller, body, 'key'), service.send(caller, submission(newMint()), 'key')]
  await decide(true, true, true)
  expect((await Promise.all(racing)).map(codeOf)).toEqual(['idempotency_in_flight', 'idempotency_mismatch'])
  const { receipt } = (await first) as SubmitResult
  expect(await service.send(caller, body, 'key')).toMatchObject({ receipt, isReplay: true })
})

describe('racing rotations', () => {
  const rotate = (caller: Caller) =>
    service.agents.rotate(caller).then(
      () => 'rotated',
      (error: SubmissionError) => error.code,
    )

  it('make one key, and a refused rotation does not count', async () => {
    let caller = await service.register()
    clock.pass(2 * DAY_MS)
    hold()
    const race = async (...isDurable: boolean[]) => {
      const racing = Promise.allSettled(Array.from({ length: 9 }, () => service.agents.rotate(caller)))
      await decide(...isDurable)
      return racing
    }
    for (let count = 0; count < 10; count++) {
      for (const outcome of await race(false)) expect(outcome.status).toBe('rejected')
      const outcomes = await race(true)
      const [rotated, ...others] = outcomes.filter((outcome) => outcome.status === 'fulfilled')
      expect(others).toEqual([])
      expect(service.agents.list()[0].keys).toHaveLength(count + 2)
      if (rotated !== undefined) caller = service.agents.authenticate(rotated.value.key)
      // That it was used.
      await decide(true)
    }
    expect(await rotate(caller)).toBe('register_rate_limited')
    service = restarted()
    expect(await rotate(caller)).toBe('register_rate_limited')
  })

  it('leave no valid key if all keys are revoked meanwhile', async () => {
    const caller = await service.register()
    hold()
    const rotated = service.agents.rotate(caller)
    const revoked = service.agents.revokeKeys(caller.agent.agentId, null)
    await decide(true, true)
    const { key } = await rotated
    expect(await revoked).toBe(2)
    for (const { agents } of [service, restarted()])
      expect(() => agents.authenticate(key)).toThrow(SubmissionError)
  })

  it.each([
    ['all keys', ({ agent }: Caller) => service.agents.revokeKeys(agent.agentId, null)],
    ['its own key', (caller: Caller) => service.agents.revoke(caller)],
  ])('are refused while a revocation of %s is under way, unless that fails', async (_, revoke) => {
    const caller = await service.register()
    const change = () => service.agents.setProfile(caller, { website: 'https://example.org' })
    const expectRefused = async () => {
      expect(await rotate(caller)).toBe('key_not_allowed')
      await expect(change()).rejects.toMatchObject({ code: 'key_not_allowed' })
    }
    hold()
    const failing = Promise.allSettled([revoke(caller), revoke(caller)])
    await expectRefused()
    await decide(false)
    await expectRefused()
    await decide(false)
    expect((await failing).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    const changed = change()
    await decide(true)
    await changed
    const revoked = revoke(caller)
    await expectRefused()
    await decide(true)
    await revoked
    const { keys } = service.agents.account(caller.agent.agentId)!
    expect(keys.map(({ endsInMs }) => endsInMs)).toEqual([0])
  })
})

it('two racing changes of a profile both take effect', async () => {
  const caller = await service.register()
  hold()
  const changes = [
    service.agents.setProfile(caller, { website: 'https://example.org' }),
    service.agents.setProfile(caller, { twitterHandle: '@agent' }),
  ]
  await decide(true, true)
  await Promise.all(changes)
  for (const { agents } of [service, restarted()])
    expect(agents.profile(caller)).toMatchObject({ website: 'https://example.org', twitterHandle: '@agent' })
})
