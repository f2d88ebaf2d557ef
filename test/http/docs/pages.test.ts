// What a browser opens, and links of documents under whatever name a client reaches the server.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawSocket } from '../../support/raw-socket.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasBrowser, openBrowser } from '../../web/browser.ts'

const BROWSER_MS_MAX = 60_000

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())
const get = (path: string, headers?: Record<string, string>) => server.client.get(path, headers)

describe('/docs', () => {
  it('is a page that may load and ask nothing but this server', async () => {
    const { text, headers } = await get('/docs')
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe/)
    for (const [, address] of text.matchAll(/(?:src|href)="([^"]+)"/g)) {
      expect(address).toMatch(/^\//)
      expect((await get(address)).status, address).toBe(200)
    }
  })

  it.each([
    ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8'],
    ['/docs/LICENSE', 'text/plain; charset=utf-8'],
    ['/docs/NOTICE', 'text/plain; charset=utf-8'],
    ['/docs/swagger-ui-bundle.js.LICENSE.txt', 'text/plain; charset=utf-8'],
    ['/docs/page.js', 'text/javascript; charset=utf-8'],
    ['/favicon.ico', 'image/x-icon'],
  ])('serves %s with its type and version', async (path, type) => {
    const { headers, text } = await get(path, { 'Accept-Encoding': 'gzip' })
    expect(headers.get('content-type')).toBe(type)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-encoding')).toBe(text.length > 1_024 ? 'gzip' : null)
    const etag = headers.get('etag')!
    expect((await get(path, { 'If-None-Match': etag })).status).toBe(304)
  })

  it.runIf(hasBrowser)(
    'renders every operation in a browser and tries one, without a fault or a request elsewhere (skipped without Chromium)',
    { tags: 'drill', timeout: BROWSER_MS_MAX },
    async () => {
      const browser = await openBrowser()
      try {
        const page = await browser.newPage()
        const faults: string[] = []
        const elsewhere: string[] = []
        page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
        page.on('pageerror', (error) => faults.push(error.message))
        page.on('request', (request) => {
          const { protocol, origin } = new URL(request.url())
          if (protocol !== 'data:' && origin !== server.url) elsewhere.push(request.url())
        })
        await page.goto(`${server.url}/docs`)
        await page.waitForSelector('.opblock', { timeout: BROWSER_MS_MAX / 2 })
        const { paths } = (await get('/openapi.json')).body
        const operations = Object.values<object>(paths).flatMap((methods) => Object.keys(methods)).length
        expect(await page.locator('.opblock').count()).toBe(operations)
        const xp = page.locator('#operations-analysis-getXpTable')
        await xp.locator('.opblock-summary-control').click()
        await xp.locator('button.execute').click()
        const answer = xp.locator('.live-responses-table .response-col_status').first()
        await answer.waitFor({ timeout: BROWSER_MS_MAX / 3 })
        expect(await xp.locator('.live-responses-table').innerText()).toContain('firstBonus')
        expect(elsewhere).toEqual([])
        expect(faults).toEqual([])
      } finally {
        await browser.close()
      }
    },
  )
})

describe('links of documents', () => {
  /** The document as it is told to a client that sends these headers. */
  async function told(at: TestServer, ...headers: string[]): Promise<string> {
    const lines = ['GET /llms.txt HTTP/1.1', ...headers, 'Connection: close', '', '']
    const socket = new RawSocket(at.url)
    await socket.write(lines.join('\r\n'))
    await socket.until(() => false)
    return socket.text
  }
  const link = '[How an agent takes part]'

  it('name the host that the client asked for', async () => {
    expect(await told(server, 'Host: market.example:8080')).toContain(
      `${link}(http://market.example:8080/skill.md)`,
    )
    expect(await told(server, 'Host: [::1]:8080')).toContain(`${link}(http://[::1]:8080/skill.md)`)
  })

  it.each([
    'evil.example/path',
    'a b',
    '"><script>',
    'x'.repeat(300),
    'evil.example)](',
    'a@evil.example',
    '-',
  ])('are relative where the Host header is %s', async (host) => {
    const text = await told(server, `Host: ${host}`)
    expect(text).toContain(`${link}(/skill.md)`)
    expect(text).not.toContain('evil')
  })

  it('begin with https only where a trusted proxy says so', async () => {
    const headers = ['Host: market.example', 'X-Forwarded-Proto: https']
    expect(await told(server, ...headers)).toContain(`${link}(http://market.example/skill.md)`)
    const behindProxy = await openTestServer({ 'trusted-proxies': '127.0.0.1' })
    try {
      expect(await told(behindProxy, ...headers)).toContain(`${link}(https://market.example/skill.md)`)
      const odd = ['Host: market.example', 'X-Forwarded-Proto: javascript']
      expect(await told(behindProxy, ...odd)).toContain(`${link}(http://market.example/skill.md)`)
    } finally {
      await behindProxy.remove()
    }
  })

  it('are those of --public-url where it is set', { tags: 'drill' }, async () => {
    const named = await openTestServer({ 'public-url': 'https://mintlake.example/' })
    try {
      expect(await told(named, 'Host: other.example')).toContain(`${link}(https://mintlake.example/skill.md)`)
    } finally {
      await named.remove()
    }
    await expect(openTestServer({ 'public-url': 'https://mintlake.example/path' })).rejects.toThrow(
      'public-url',
    )
  })
})
