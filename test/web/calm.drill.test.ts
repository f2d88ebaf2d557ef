// @module-tag drill
// The console lives within the reads of an anonymous reader, and says what it is. That nothing shifts: late-answers.drill.test.ts.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { describeInBrowser, openPage } from './browser.ts'

const MINTS = Array.from({ length: 12 }, (_, at) => mintOfSymbol(`calm ${at}`))
const READS_MAX = 30

describeInBrowser('the calm of the console', () => {
  let server: TestServer
  const trade = (at: number, priceUsd: number) => ({
    ...{ type: 'trade', mint: MINTS[at], ts: Date.now(), side: 'buy' },
    ...{ tokenAmount: 1_000 / (at + 1), priceUsd },
  })

  beforeAll(async () => {
    server = await openTestServer({ 'read-limit-anonymous': `${READS_MAX}` })
    const token = (mint: string, at: number) => ({
      ...{ type: 'token', mint, ts: Date.now() },
      ...{ name: `Calm ${at}`, symbol: `CALM${at}` },
    })
    await server.client.push(...MINTS.map(token), ...MINTS.map((_, at) => trade(at, 0.5)))
  })
  afterAll(() => server.remove())

  test('every view and several tokens within a minute take no more reads than anybody has', async () => {
    const { page, faults } = await openPage(server.url)
    const statuses: number[] = []
    page.on('response', (response) => {
      if (new URL(response.url()).pathname.startsWith('/api/')) statuses.push(response.status())
    })
    const tokens = MINTS.slice(0, 5).map((mint) => `token/${mint}`)
    for (const view of [
      'submissions',
      'agents',
      'calibration',
      'system',
      'query',
      'try',
      ...tokens,
      'market',
    ]) {
      const [kind, mint] = view.split('/')
      // The next view is chosen once this one is there: a token asks for its bars.
      const isAnswered =
        mint === undefined ? null : page.waitForResponse((response) => response.url().includes(mint))
      await page.goto(`${server.url}/#/${view}`)
      await isAnswered
      if (mint === undefined) await page.locator(`.menu a[aria-current="page"][href="#/${kind}"]`).waitFor()
      await page.locator('#view-title').waitFor()
      await page.waitForLoadState('networkidle')
    }
    await page.getByRole('row').filter({ hasText: 'CALM0' }).waitFor()
    expect(statuses.length).toBeGreaterThan(tokens.length)
    expect(statuses.length).toBeLessThan(READS_MAX)
    expect(statuses).not.toContain(429)
    expect(faults).toEqual([])
  })

  test('each view has a title of its own, the page an icon', async () => {
    const { page } = await openPage(server.url, '#/system')
    await expect.poll(() => page.title()).toBe('System · Mintlake')
    await page.goto(`${server.url}/#/query`)
    await expect.poll(() => page.title()).toBe('Query · Mintlake')
    await page.goto(`${server.url}/#/token/${MINTS[9]}`)
    await expect.poll(() => page.title()).toBe('\u2068CALM9\u2069 $0.5000 · Mintlake')
    // Nobody looks at the page, and its title is in sight.
    await page.evaluate(`Object.defineProperty(document, 'hidden', { value: true })`)
    await server.client.push(trade(9, 0.75))
    await expect.poll(() => page.title()).toBe('\u2068CALM9\u2069 $0.7500 · Mintlake')
    const icon = await page.locator('link[rel=icon]').getAttribute('href')
    expect((await fetch(new URL(`${icon}`, server.url))).status).toBe(200)
  })

  test('where the browser keeps no data of sites, the page is there, and keeps what was chosen itself', async () => {
    const { page, faults } = await openPage('about:blank')
    await page.addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(window, name, { get() { throw new DOMException('Access is denied', 'SecurityError') } })`)
    await page.goto(server.url)
    await page.getByRole('row').filter({ hasText: 'CALM0' }).waitFor()
    const zone = page.getByRole('button', { name: /^Time zone/ })
    await page.getByRole('checkbox', { name: 'dense' }).check()
    await page.evaluate(`location.hash = '#/query'`)
    await page.getByRole('heading', { name: 'Query the lake' }).waitFor()
    await page.goBack()
    expect(await page.getByRole('checkbox', { name: 'dense' }).isChecked()).toBe(true)
    await zone.click()
    await expect.poll(() => zone.textContent()).toBe('UTC')
    expect(faults.filter((fault) => !fault.startsWith('asked'))).toEqual([])
  })

  test('data that is made up is marked in every view', async () => {
    const simulated = await openTestServer({ feed: 'simulator', simulator: 'tokens=20' })
    for (const view of ['market', 'agents']) {
      const { page } = await openPage(simulated.url, `#/${view}`)
      await page.getByText('SIMULATED', { exact: true }).waitFor()
    }
    await simulated.remove()
  })
})
