// A restart with the feed of PumpPortal: the trades of tokens that the market has go on, as it names each token whose trades it sends.
import { expect, it, onTestFinished } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer } from '../support/test-server.ts'
import { createFrame, PumpPortalServer } from '../support/upstreams/pumpportal-server.ts'

it('subscribes to the trades of the tokens that it had, those traded last at the end', async () => {
  const upstream = await PumpPortalServer.start()
  onTestFinished(() => upstream.close())
  const settings = {
    feed: 'pumpportal',
    'sol-price': '150',
    providers: `pumpportal-url=${upstream.url}`,
  }
  const mints = ['first', 'second', 'third'].map((name) => mintOfSymbol(name))
  let server = await openTestServer(settings, {}, undefined, { MINTLAKE_PUMPPORTAL_KEY: 'key' })
  onTestFinished(() => server.remove())
  for (const [index, mint] of mints.entries()) {
    await expect.poll(() => upstream.peers.size).toBe(1)
    upstream.send(createFrame(mint))
    await expect.poll(() => server.market.stats().tokens).toBe(index + 1)
  }
  upstream.messages.length = 0
  server = await server.restart()
  await expect
    .poll(() => upstream.messages)
    .toContainEqual({ method: 'subscribeTokenTrade', keys: [...mints] })
})
