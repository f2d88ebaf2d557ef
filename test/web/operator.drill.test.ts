// @module-tag drill
// The console as an operator meets it: reads of its own, a server that stops, limits that are near, documents, queries.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { freePort } from '../support/free-port.ts'
import { openTestServer } from '../support/test-server.ts'
import { closeSession, describeInBrowser, openPage } from './browser.ts'

const MINT = mintOfSymbol('operator')
const token = () => ({ type: 'token', mint: MINT, ts: Date.now(), name: 'Operator', symbol: 'OPER' })
/** In the page: there is no stream at the address that the first connection asks for. */
const FIRST_IS_REFUSED = `{
  const { WebSocket } = globalThis
  globalThis.WebSocket = class extends WebSocket {
    constructor(url) {
      super(url + '/nowhere')
      globalThis.WebSocket = WebSocket
    }
  }
}`

describeInBrowser('the console of an operator', () => {
  test('a script of the same address does not blank it', async () => {
    const server = await openTestServer({ 'read-limit-anonymous': '2', 'read-limit-keyed': '60' })
    await server.client.push(token())
    for (let reads = 0; reads < 3; reads++) await server.client.get('/api/v1/market')
    expect((await server.client.get('/api/v1/market')).status).toBe(429)
    const { page, faults } = await openPage(server.url)
    await page.getByRole('row').filter({ hasText: 'OPER' }).waitFor()
    await page.goto(`${server.url}/#/token/${MINT}`)
    await page.getByRole('heading', { name: 'OPER' }).waitFor()
    await page.goto(`${server.url}/#/agents`)
    await page.getByRole('heading', { name: 'No agent has XP yet' }).waitFor()
    expect(faults).toEqual([])
    await server.remove()
  })

  test('where its own reads are used up it says where a key comes from', async () => {
    const server = await openTestServer({ 'read-limit-anonymous': '1', 'read-limit-keyed': '1' })
    const { key } = (await server.client.post('/api/v1/session', undefined)).body.data
    await server.client.get('/api/v1/market', { Authorization: `Bearer ${key}` })
    const { page } = await openPage(server.url, '#/agents')
    await page.getByRole('heading', { name: 'Too many reads' }).waitFor()
    await page.getByText('POST /api/v1/keys/register').waitFor()
    await page.getByText(`curl ${server.url}/api/v1/keys/register`).waitFor()
    await server.remove()
  })

  test('a server that stops dims the page, which says how old it is, and comes back', async () => {
    let server = await openTestServer({ port: `${await freePort()}` })
    await server.client.push(token())
    const { page } = await openPage(server.url)
    await page.getByRole('row').filter({ hasText: 'OPER' }).waitFor()
    await server.stop()
    await page
      .getByRole('alert')
      .getByText(/^The server cannot be reached\. What you see was true \d+s ago/)
      .waitFor()
    const opacity = () =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('main > section')).opacity`)
    expect(Number(await opacity())).toBeLessThan(1)
    await page.getByRole('row').filter({ hasText: 'OPER' }).waitFor()
    server = await server.restart()
    await page.locator('.connection.live').waitFor({ timeout: 30_000 })
    await page.getByRole('alert').waitFor({ state: 'detached' })
    expect(await opacity()).toBe('1')
    await server.remove()
  }, 60_000)

  test('a server that falls silent counts as away at once, though its connection stays open', async () => {
    const server = await openTestServer()
    await server.client.push(token())
    const { port } = new URL(server.url)
    // What lies between, and passes nothing on any more: neither the end of a connection.
    const sockets: Socket[] = []
    const between = createServer((socket) => {
      const onward = connect(Number(port), '127.0.0.1')
      for (const each of [socket, onward]) sockets.push(each.on('error', () => {}))
      socket.pipe(onward).pipe(socket)
    })
    await once(between.listen(0, '127.0.0.1'), 'listening')
    const { page } = await openPage('about:blank')
    await page.clock.install()
    await page.goto(`http://127.0.0.1:${(between.address() as AddressInfo).port}`)
    await page.getByRole('row').filter({ hasText: 'OPER' }).waitFor()
    for (const socket of sockets) socket.unpipe().pause()
    await page.clock.fastForward(45_000)
    await page.getByRole('alert').getByText('The server cannot be reached.').waitFor({ timeout: 10_000 })
    await closeSession(page.context())
    for (const socket of sockets) socket.destroy()
    between.close()
    await server.remove()
  })

  test('a page that is connected again while it asks why it was refused stays so', async () => {
    const server = await openTestServer()
    const { page } = await openPage('about:blank')
    await page.addInitScript(FIRST_IS_REFUSED)
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/api/v1/stream', async (route) => {
      await isReleased
      await route.fulfill({ status: 503, json: { ok: false, code: 'warming_up' } })
    })
    const asked = page.waitForRequest('**/api/v1/stream')
    await page.goto(server.url)
    await asked
    await page.evaluate(`dispatchEvent(new Event('online'))`)
    await page.locator('.connection.live').waitFor()
    release()
    await (await asked).response()
    await page.evaluate(`new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve), 100))`)
    expect(await page.locator('.connection.live').count()).toBe(1)
    await server.remove()
  })

  test('the last hour is drawn as lines, and what is near its limit is marked', async () => {
    const server = await openTestServer()
    const { page, faults } = await openPage('about:blank')
    await page.route('**/health/history?*', (route) => {
      const everyMs = 10_000
      const timesMs = Array.from({ length: 300 }, (_, at) => Date.now() - (300 - at) * everyMs)
      const line = (name: string, top: number) => ({
        ...{ name, unit: 'count', limit: 100, limitIs: 'most' },
        values: timesMs.map((_, at) => (at / 300) * top),
      })
      return route.fulfill({
        json: { ok: true, data: { everyMs, timesMs, series: [line('tokens', 95), line('followers', 10)] } },
      })
    })
    await page.goto(`${server.url}/#/system`)
    await page.locator('.line.near').getByText('⚠ Tokens').waitFor()
    expect(await page.locator('.line').count()).toBe(2)
    expect(await page.locator('.line.near').count()).toBe(1)
    expect((await page.locator('.line path').first().getAttribute('d'))?.length).toBeGreaterThan(1_000)
    await page.locator('.line svg').first().hover()
    await page.getByRole('heading', { name: /^The last hour at/ }).waitFor()
    // The real server's own lines.
    await page.unroute('**/health/history?*')
    await page.reload()
    await page.locator('.line').filter({ hasText: 'Memory' }).waitFor()
    expect(faults.filter((fault) => !fault.startsWith('asked'))).toEqual([])
    await server.remove()
  })

  test('/docs follows the theme of the console, and leads back', async () => {
    const server = await openTestServer()
    const { page, faults } = await openPage(server.url, '', { colorScheme: 'light' })
    const isDark = () => page.evaluate<boolean>(`document.documentElement.classList.contains('dark-mode')`)
    await page.goto(`${server.url}/docs`)
    expect(await isDark()).toBe(false)
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(isDark).toBe(true)
    await page.goto(server.url)
    await page.getByRole('button', { name: 'Switch between light and dark' }).click()
    await page.goto(`${server.url}/docs`)
    expect(await isDark()).toBe(false)
    await page.getByRole('link', { name: /Mintlake/ }).click()
    await page.getByRole('heading', { name: 'Market' }).waitFor()
    expect(faults).toEqual([])
    await server.remove()
  })

  test('queries need no key on this computer where there is none; elsewhere two lines say how one is made', async () => {
    const open = await openTestServer({}, {}, undefined, { MINTLAKE_ADMIN_KEY: '' })
    const { page, faults } = await openPage(open.url, '#/query')
    await page.getByText('Open to programs of this computer').waitFor()
    await page.getByRole('button', { name: 'Run' }).click()
    await page.getByText(/^\d+ rows? in \d+ ms$/).waitFor()
    expect(faults).toEqual([])
    await open.remove()
    const closed = await openTestServer()
    const other = (await openPage(closed.url, '#/query')).page
    await other.getByLabel(/^Key of/).fill('wrong')
    await other.getByRole('button', { name: 'Run' }).click()
    await other.getByText('MINTLAKE_ADMIN_KEY=<secret> npm start', { exact: true }).waitFor()
    await other
      .getByText('MINTLAKE_ADMIN_KEY=<secret> npx mintlake keys make lab --type researcher')
      .waitFor()
    await closed.remove()
  })
})
