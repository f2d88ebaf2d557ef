// @module-tag drill
// The console's view of the server: a plain sentence for whatever is wrong, and rates that move.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HealthAnswer } from '../../src/schema/api/status.ts'
import { seedToken, submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { changeAnswers, describeInBrowser, openPage } from './browser.ts'

const HOUR_MS = 3_600_000

describeInBrowser('the system’s view in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await openTestServer()
  })
  afterAll(() => server.remove())

  const problems = (page: Page) => page.locator('.problems').getByRole('listitem')

  /** The view, with members of the server's answer replaced: such states cannot be made quickly. */
  async function openWith(more: (health: HealthAnswer) => Partial<HealthAnswer>): Promise<Page> {
    const { page } = await openPage('about:blank')
    await changeAnswers(page, '**/health', (health) => ({ ...health, ...more(health) }))
    await page.goto(`${server.url}/#/system`)
    return page
  }

  test('no price of SOL is told by a server that has none, and is gone with the first one', async () => {
    const { page, faults } = await openPage(server.url, '#/system')
    await problems(page)
      .filter({
        hasText:
          'No SOL price is known: trades priced in SOL alone are refused. Set --sol-price or a Birdeye key.',
      })
      .waitFor()
    await page.getByText('none is known', { exact: true }).waitFor()
    await server.client.push({ type: 'solPrice', ts: Date.now(), usd: 150 })
    await page.getByText('Nothing is wrong.').waitFor()
    await page.getByText(/^\$150.* from push, \d+s ago$/).waitFor()
    expect(faults).toEqual([])
  })

  test('an old price of SOL is told with its age', async () => {
    const solPrice = {
      ...{ usd: 140, source: 'birdeye', atMs: Date.now() - 30 * HOUR_MS, ageMs: 30 * HOUR_MS },
      ...{ maxAgeMs: 24 * HOUR_MS, isStale: true },
    }
    const page = await openWith(() => ({ solPrice }))
    await problems(page)
      .filter({ hasText: /^The price of SOL is .+ old: trades priced in SOL alone are refused\.$/ })
      .waitFor()
  })

  test('PumpPortal without a key is told with the setting that is missing', async () => {
    const feed = {
      ...{ feed: 'pumpportal', state: 'running' as const, stateSinceMs: Date.now(), simulated: false },
      ...{ accepted: 3, rejected: {}, withTrades: false },
      refusals: {
        isTooMuch: false,
        share: 0,
        refused: 0,
        received: 3,
        windowMs: null,
        reasons: {},
        samples: [],
      },
    }
    const page = await openWith(() => ({ feeds: [feed] }))
    await problems(page)
      .filter({
        hasText: 'PumpPortal sends launches but no trades without a key: set MINTLAKE_PUMPPORTAL_KEY.',
      })
      .waitFor()
  })

  test('a nearly full disk is told in a sentence, and that submissions are not stored', async () => {
    const reason = 'the disk is nearly full: commits are refused until there is room'
    const page = await openWith(({ store }) => ({
      status: 'degraded',
      reasons: [reason],
      store: { ...store, healthy: false, reasons: [reason] },
    }))
    await problems(page)
      .filter({ hasText: 'The disk is nearly full: commits are refused until there is room.' })
      .waitFor()
    await page.getByRole('status').filter({ hasText: 'degraded' }).waitFor()
    const stored = page.getByRole('term').filter({ hasText: 'Submissions are stored' })
    expect(await stored.locator('..').getByRole('definition').textContent()).toBe('no')
  })

  test('submissions a second rise while an agent submits', async () => {
    const key = await server.client.register('busy')
    const { page } = await openPage(server.url, '#/system')
    const term = page.getByRole('term').filter({ hasText: 'Submissions a second' })
    const rate = () => term.locator('..').getByRole('definition').textContent()
    await expect.poll(rate, { timeout: 10_000 }).toBe('0')
    const mint = await seedToken(server.client, Date.now())
    const answer = await submit(server.client, key, submission(mint))
    expect(answer.status, answer.text).toBe(201)
    await expect.poll(async () => Number(await rate()), { timeout: 10_000 }).toBeGreaterThan(0)
    await page.route('**/metrics', (route) => route.abort())
    await page.getByRole('alert').getByText('Rates were true').waitFor()
    await page.locator('.card.old').filter({ has: term }).waitFor()
  }, 30_000)

  test('one click leads to the API’s documents', async () => {
    const { page, faults } = await openPage(server.url)
    await page.getByRole('link', { name: 'API', exact: true }).click()
    await page.waitForURL('**/docs**')
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    expect(faults).toEqual([])
  })
})
