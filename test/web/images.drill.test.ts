// @module-tag drill
// Images of tokens in the console: none by default, and then only those of the hosts that the operator names.
import { expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer, type Settings, type TestServer } from '../support/test-server.ts'
import { describeInBrowser, openPage, type WatchedPage } from './browser.ts'

const HOST = 'images.example'
/** One red pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
)

/** Addresses that must not be asked for, whatever the list of hosts is. */
const HOSTILE = [
  `http://${HOST}/plain.png`,
  'https://tracker.example/a.png',
  `https://${HOST}.evil.example/a.png`,
  `https://evil.example/?https://${HOST}/a.png`,
  `https://${HOST}@evil.example/a.png`,
  `https://user:secret@${HOST}/a.png`,
  `https://${HOST}:444/a.png`,
  `//${HOST}/a.png`,
  '/api/v1/keys/current',
  'javascript:alert(1)',
  'data:image/svg+xml,<svg onload="alert(1)"/>',
  'ipfs://bafy/1.png',
  'https://"><img src=x onerror=alert(1)>',
  'nonsense',
]
const GOOD = `https://${HOST}/good.png?a=1&b="2"`
const BROKEN = `https://${HOST}/broken.png`

const mintOf = (at: number): string => mintOfSymbol(`image ${at}`)
const ALL = [GOOD, BROKEN, ...HOSTILE]

describeInBrowser('images in the console', () => {
  async function openServer(settings: Settings): Promise<TestServer> {
    const server = await openTestServer(settings)
    await server.client.push(
      ...ALL.map((image_uri, at) => ({
        type: 'token',
        mint: mintOf(at),
        ts: Date.now(),
        name: `Token ${at}`,
        symbol: `T${at}`,
        image_uri,
      })),
    )
    return server
  }

  /** Opens a view. Requests to other servers are answered here, and listed with their referrer. */
  async function openWatched(server: TestServer, hash: string): Promise<WatchedPage & { asked: string[] }> {
    const asked: string[] = []
    const watched = await openPage('about:blank')
    await watched.page.context().route(
      (url) => url.origin !== server.url,
      async (route) => {
        const { referer = 'no referrer' } = await route.request().allHeaders()
        asked.push(`${route.request().url()} ${referer}`)
        await (route.request().url() === BROKEN
          ? route.fulfill({ status: 404, body: 'gone' })
          : route.fulfill({ contentType: 'image/png', body: PIXEL }))
      },
    )
    await watched.page.goto(`${server.url}/${hash}`)
    return { ...watched, asked }
  }

  test('are asked for nowhere by default', async () => {
    const server = await openServer({})
    const { page, asked } = await openWatched(server, '')
    await page.getByText(`${ALL.length} tokens`).waitFor()
    await page.goto(`${server.url}/#/token/${mintOf(0)}`)
    await page.getByRole('heading', { name: 'T0' }).waitFor()
    await page.waitForLoadState('networkidle')
    expect(asked).toEqual([])
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.locator('svg.mark').count()).toBe(1)
    const policy = (await server.client.get('/')).headers.get('content-security-policy')
    expect(policy).not.toContain('img-src')
    await server.remove()
  })

  test('are those of the hosts that are named, over https, without a referrer', async () => {
    const server = await openServer({ 'image-hosts': `${HOST},other.example` })
    const policy = (await server.client.get('/')).headers.get('content-security-policy')
    expect(policy).toContain(`img-src 'self' https://${HOST} https://other.example;`)
    const { page, asked } = await openWatched(server, '')
    const picture = (symbol: string) =>
      page
        .getByRole('row')
        .filter({ hasText: `${symbol}Token` })
        .locator('.picture img')
    await picture('T1').and(page.locator('.broken')).waitFor({ state: 'attached' })
    const width = `document.querySelector('.picture img:not(.broken)').naturalWidth`
    await expect.poll(() => page.evaluate<number>(width)).toBe(1)
    expect(await page.locator('img').count()).toBe(2)
    // The mark is behind each, and is seen where the image fails.
    expect(await page.locator('svg.mark').count()).toBe(ALL.length)
    expect(await picture('T1').isVisible()).toBe(false)
    expect(await picture('T0').boundingBox()).toMatchObject({ width: 28, height: 28 })
    expect(await picture('T0').getAttribute('loading')).toBe('lazy')
    await page.goto(`${server.url}/#/token/${mintOf(0)}`)
    await page.locator('.token-head .picture img').waitFor()
    expect([...new Set(asked)].toSorted()).toEqual(
      [`${BROKEN} no referrer`, `${new URL(GOOD).href} no referrer`].toSorted(),
    )
    await server.remove()
  })

  test('of another host are refused by the page’s policy even where a script asks for them', async () => {
    const server = await openServer({ 'image-hosts': HOST })
    const { page, asked } = await openWatched(server, '#/agents')
    const blocked = await page.evaluate<string>(`new Promise((resolve) => {
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => resolve(effectiveDirective))
      new Image().src = 'https://tracker.example/a.png'
    })`)
    expect(blocked).toBe('img-src')
    expect(asked).toEqual([])
    await server.remove()
  })
})
