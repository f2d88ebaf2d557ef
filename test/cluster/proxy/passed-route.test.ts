// How long a node that passes a request on waits for the answer of the writer, and what it does when its client leaves.
import { expect, it } from 'vitest'
import { REPAIR_TIMEOUT_MS } from '../../../src/cli/limits.ts'
import type { PassedRequest } from '../../../src/cluster/proxy/node-http.ts'
import { passedRoute } from '../../../src/cluster/proxy/passed-route.ts'
import type { PassingOn } from '../../../src/cluster/proxy/passing-on.ts'
import type { Context } from '../../../src/http/context.ts'
import { routesOf } from './support.ts'

/** What the writer is asked for a request to a path. @returns it, and what says that its client has left */
async function passedOn(path: string): Promise<{ request: PassedRequest; leave(): void }> {
  const asked: PassedRequest[] = []
  let leave = () => {}
  const toWriter = async (request: PassedRequest) => {
    asked.push(request)
    return { status: 200, headers: {}, body: Buffer.alloc(0) }
  }
  const [route] = routesOf('nats://127.0.0.1:9').filter(
    (each) => each.path === path && each.method === 'POST',
  )
  const context = {
    ...{ method: 'POST', path, queryText: '', query: new URLSearchParams(), headers: {}, requestId: 'r' },
    ...{ body: Buffer.alloc(0), ip: () => '127.0.0.1', onGone: (gone: () => void) => (leave = gone) },
  } as unknown as Context
  await passedRoute(route, () => ({ toWriter }) as unknown as PassingOn).handle(context)
  return { request: asked[0], leave: () => leave() }
}

it('a copy and a check of the whole store may take as long as a command waits for them', async () => {
  for (const path of ['/api/v1/admin/backup', '/api/v1/admin/lake/repair'])
    expect((await passedOn(path)).request.answerMsMax).toBe(REPAIR_TIMEOUT_MS)
  expect((await passedOn('/api/v1/admin/ban')).request.answerMsMax).toBe(10_000)
})

it('a copy is given up once its client has left, a check is not', async () => {
  const [copy, check] = [await passedOn('/api/v1/admin/backup'), await passedOn('/api/v1/admin/lake/repair')]
  copy.leave()
  check.leave()
  expect(copy.request.signal?.aborted).toBe(true)
  expect(check.request.signal).toBeUndefined()
})
