// @module-tag drill
// Whichever answer comes last, and whatever it says, nothing that is already there moves.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { changeAnswers, closeSession, describeInBrowser, openPage } from './browser.ts'
import { visibleShifts, WATCH_SHIFTS } from './shifts.ts'

const MINT = mintOfSymbol('late')
const HOUR_MS = 3_600_000
/** Very long and very short ones, and changes of −100 % and more than a million percent. */
const PRICES_USD = [0.000_000_012_3, 12_345, 0.5, 1_234_567]
/** The page draws data five times a second. */
const DRAWN_SCRIPT = `new Promise((resolve) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(resolve)), 250))`

/** What may come late, by the end of its path; those without a slash are channels of the stream. What `/health` says of feeds
 *  is shown in the frame of every view. */
const VIEWS: readonly { view: string; answers: readonly string[]; pricesUsd?: readonly number[] }[] = [
  {
    view: `token/${MINT}`,
    answers: ['token:', 'ohlc:', '/analysis', '/health', '/token-chart.js', '/stream'],
    pricesUsd: PRICES_USD,
  },
  { view: 'market', answers: ['window:', '/totals', '/batch', '/health', '/stream'], pricesUsd: PRICES_USD },
  { view: 'submissions', answers: ['submissions'] },
  { view: 'agents', answers: ['/leaderboard'] },
  { view: 'agents/AGENT', answers: ['/leaderboard', '/analysis'] },
  { view: 'system', answers: ['/health', '/metrics'] },
  { view: 'calibration', answers: ['/calibration'] },
]
const PHONE = { viewport: { width: 375, height: 760 } }
/** Holds an answer back. @returns how often it was held, and a function that lets it and all later ones come. */
async function holdBack(page: Page, answer: string) {
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  const held = { count: 0, release }
  const isAnswer = (url: URL) => url.pathname.endsWith(answer)
  await page.route(isAnswer, async (route) => {
    held.count++
    await isReleased
    await route.fallback()
  })
  await page.routeWebSocket(/\/stream$/, async (socket) => {
    if (answer === '/stream') {
      held.count++
      await isReleased
    }
    const server = socket.connectToServer()
    server.onMessage(async (message) => {
      if (`${message}`.includes(`"channel":"${answer}`) && !`${message}`.includes('"event":"subscribed"')) {
        held.count++
        await isReleased
      }
      socket.send(message)
    })
  })
  return held
}

describeInBrowser('answers that come late', () => {
  let server: TestServer
  let agentId: string

  const trade = (priceUsd: number, ts = Date.now()) => ({
    ...{ type: 'trade', mint: MINT, ts, side: 'buy', wallet: 'wallet of a trader' },
    ...{ tokenAmount: 1_000, priceUsd },
  })

  beforeAll(async () => {
    server = await openTestServer()
    const sinceMs = Date.now() - 2 * HOUR_MS
    await server.client.push({ type: 'token', mint: MINT, ts: sinceMs, name: 'Late', symbol: 'LATE' })
    await server.client.push(trade(0.5, sinceMs), trade(0.5))
    const answer = await submit(server.client, await server.client.register('late agent'), submission(MINT))
    expect(answer.status, answer.text).toBe(201)
    const leaders = await server.client.get('/api/v1/agents/leaderboard')
    agentId = leaders.body.data[0].agentId
  })
  afterAll(() => server.remove())

  /** A server that is simulated and has lost a feed: all that the frame and the chart can tell. */
  function tellGap(health: object): object {
    const open = [{ from: Date.now() - 5_000, to: null, reason: 'disconnect', feed: 'pumpportal' }]
    return { ...health, simulated: true, gaps: { open, recent: [] } }
  }

  async function openHeld(view: string, answer: string) {
    const { page } = await openPage('about:blank', '', PHONE)
    await page.addInitScript(WATCH_SHIFTS)
    await changeAnswers(page, '**/health', tellGap)
    const held = await holdBack(page, answer)
    await page.goto(`${server.url}/#/${view.replace('AGENT', agentId)}`)
    await page.locator('#view-title').waitFor()
    await expect
      .poll(() => held.count, { message: `${view} asks for ${answer}`, timeout: 10_000 })
      .toBeGreaterThan(0)
    await drawn(page)
    return { page, answer, held }
  }

  const drawn = (page: Page) => page.evaluate(DRAWN_SCRIPT)
  async function pushEach(pages: readonly Page[], pricesUsd: readonly number[]): Promise<void> {
    for (const priceUsd of pricesUsd) {
      await server.client.push(trade(priceUsd))
      await Promise.all(pages.map(drawn))
    }
  }

  test('move nothing', { timeout: 180_000 }, async () => {
    for (const { view, answers, pricesUsd = [] } of VIEWS) {
      const opened = await Promise.all(answers.map((answer) => openHeld(view, answer)))
      const pages = opened.map(({ page }) => page)
      await pushEach(pages, pricesUsd.slice(0, 2))
      for (const { held } of opened) held.release()
      await Promise.all(pages.map((page) => page.waitForLoadState('networkidle')))
      await Promise.all(pages.map(drawn))
      await pushEach(pages, pricesUsd.slice(2))
      for (const { page, answer } of opened) {
        const shifts = await visibleShifts(page)
        expect.soft(shifts, `${view}, ${answer} late: ${JSON.stringify(shifts)}`).toEqual([])
        await closeSession(page.context())
      }
    }
  })

  test('that fail are told over the page, without moving it', async () => {
    const { page, held } = await openHeld('system', '/health')
    held.release()
    await page.getByText('Tables of the lake').waitFor()
    await page.route('**/health', (route) => route.abort())
    await page.getByRole('alert').filter({ hasText: 'The server cannot be reached' }).waitFor()
    // As a proxy answers.
    await page.route('**/health', (route) => route.fulfill({ status: 502, body: '<html></html>' }))
    await page.getByRole('alert').filter({ hasText: 'The server answered 502.' }).waitFor()
    await drawn(page)
    expect(await visibleShifts(page)).toEqual([])
    await closeSession(page.context())
  })

  test('bars that are refused, and a token that the market has dropped, are told over the page, without moving it', async () => {
    const { page } = await openPage('about:blank', '', PHONE)
    await page.addInitScript(WATCH_SHIFTS)
    let tell = (_message: object): void => {}
    await page.routeWebSocket(/\/stream$/, (socket) => {
      const server = socket.connectToServer()
      tell = (message) => socket.send(JSON.stringify(message))
      socket.onMessage((message) => {
        const { id, tf } = JSON.parse(`${message}`)
        if (tf !== '5m') server.send(message)
        else tell({ event: 'error', id, code: 'read_rate_limited', error: 'too many reads' })
      })
    })
    await page.goto(`${server.url}/#/token/${MINT}`)
    await page.locator('.chart canvas').first().waitFor()
    await page.getByRole('link', { name: '5m', exact: true }).click()
    await page.locator('.chart-room').getByText('Too many reads.').waitFor()
    tell({ event: 'left', channel: `token:${MINT}`, mint: MINT })
    await page.getByText('The market holds this token no longer').waitFor()
    await drawn(page)
    expect(await visibleShifts(page)).toEqual([])
    await closeSession(page.context())
  })
})
