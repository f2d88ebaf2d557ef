// @module-tag drill
// What a browser that comes for the first time has to load before it shows the market.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { describeInBrowser, openPage } from './browser.ts'

const FIRST_LOAD_BYTES_MAX = 295_000

describeInBrowser('the console’s first load', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await openTestServer()
    await server.client.push({
      ...{ type: 'token', mint: mintOfSymbol('first'), ts: Date.now() },
      ...{ name: 'First', symbol: 'FIRST' },
    })
  })
  afterAll(() => server.remove())

  test('the market takes at most 295 KB, and a token’s chart is within them too', async () => {
    const { page } = await openPage('about:blank')
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    const paths = new Map<string, string>()
    const bytesOf = new Map<string, number>()
    session.on('Network.requestWillBeSent', ({ requestId, request }) => {
      paths.set(requestId, new URL(request.url).pathname)
    })
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      const path = paths.get(requestId) ?? requestId
      bytesOf.set(path, (bytesOf.get(path) ?? 0) + encodedDataLength)
    })
    const total = () => [...bytesOf.values()].reduce((sum, bytes) => sum + bytes, 0)
    await page.goto(`${server.url}/`)
    await page.getByRole('row').filter({ hasText: 'First' }).waitFor()
    await page.waitForLoadState('networkidle')
    const loaded = [...bytesOf.keys()]
    expect(loaded).toContain('/console/web/main.js')
    expect(loaded.filter((path) => path.includes('lightweight-charts'))).toEqual([])
    expect(total()).toBeGreaterThan(20_000)
    expect(total()).toBeLessThan(FIRST_LOAD_BYTES_MAX)
    await page.getByRole('link', { name: /FIRST/ }).click()
    await page.locator('.chart canvas').first().waitFor()
    expect(total()).toBeLessThan(FIRST_LOAD_BYTES_MAX)
  })

  test('the page names every module of its first view, so that none is found late', async () => {
    const { page } = await openPage(server.url)
    await page.getByRole('row').filter({ hasText: 'First' }).waitFor()
    const late = await page.evaluate<string[]>(`performance.getEntriesByType('resource')
      .map(({ name }) => new URL(name).pathname)
      .filter((path) => path.endsWith('.js') && path !== '/console/web/main.js')
      .filter((path) => document.querySelector('link[rel=modulepreload][href="' + path + '"]') === null)`)
    expect(late).toEqual([])
  })
})
