// The stream of submissions tells where it has forgotten some that a client was not sent.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SUBMISSIONS_STREAMED_MAX } from '../../../src/http/limits.ts'
import { SubmissionLog } from '../../../src/http/stream/submission-log.ts'
import { SubmissionsChannel } from '../../../src/http/stream/submissions-channel.ts'
import type { Market } from '../../../src/market/market.ts'
import type { EvaluatedSubmission } from '../../../src/submissions/types.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { seedToken, submission } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const AT_ONCE = 50

let server: TestServer
beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0,strikes=0' })
})
afterAll(() => server.remove())

it('a position after which more came than are kept is answered with resync', async () => {
  const key = await server.client.register()
  const since = server.market.seq
  const mint = await seedToken(server.client, Date.now())
  const submit = async () => {
    const answer = await server.client.post('/api/v1/analysis/submit', submission(mint), key)
    expect(answer.status, answer.text).toBe(201)
  }
  const follow = async () => {
    const reader = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`)
    await reader.send({ op: 'subscribe', topic: 'submissions', since })
    const events = [await reader.next(), await reader.next()]
    reader.close()
    return events.map(({ event, seq }) => [event, seq])
  }
  for (let sent = 0; sent < SUBMISSIONS_STREAMED_MAX; sent += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, submit))
  const { seq } = server.market
  expect(await follow()).toEqual([
    ['subscribed', since],
    ['changes', seq],
  ])
  await submit()
  expect(await follow()).toEqual([
    ['subscribed', undefined],
    ['resync', undefined],
  ])
})

it('a follower that was not served while more came than are kept has lost some', () => {
  const log = new SubmissionLog({ profile: () => null }, (agentId) => agentId)
  const channel = new SubmissionsChannel({ firstSeq: 0, seq: 7 } as Market, log)
  const add = () => log.add({} as EvaluatedSubmission, 7)
  add()
  const position = { seq: 7, barMs: 0, state: '1' }
  for (let count = 0; count < SUBMISSIONS_STREAMED_MAX; count++) add()
  expect(channel.isLost(position)).toBe(false)
  add()
  expect(channel.isLost(position)).toBe(true)
})
