// @module-tag drill
// Lists of analyses while they change, in a real browser: all rows that are shown stay current.
import type { Page, Request } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { freePort } from '../support/free-port.ts'
import { seedToken, submission, submit, VALUES } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { changeAnswers, describeInBrowser, openPage } from './browser.ts'

const MINTS = Array.from({ length: 80 }, (_, at) => mintOfSymbol(`listed ${at}`))
const EVERY_MS = 30_000
const MINUTE_MS = 60_000
const rows = (page: Page) => page.locator('table.analyses tbody tr')
const saying = (page: Page, text: string) => rows(page).filter({ hasText: text }).count()

/** A page whose clock can be put forward, and the addresses of the lists that it reads. */
async function openList({ url }: TestServer, hash: string) {
  const { page, faults } = await openPage('about:blank')
  const reads: string[] = []
  const isOfList = (url: string) => new URL(url).pathname === '/api/v1/analysis'
  page.on('response', (response) => {
    if (isOfList(response.url())) reads.push(new URL(response.url()).search)
  })
  let pending = 0
  page.on('request', (request) => {
    if (isOfList(request.url())) pending++
  })
  const end = (request: Request) => {
    if (isOfList(request.url())) pending--
  }
  page.on('requestfinished', end)
  page.on('requestfailed', end)
  /** Resolves when the list is not being read: a page asks for more as soon as it has an answer. */
  const isRead = async () => {
    do await page.evaluate(() => fetch('/readyz'))
    while (pending > 0)
  }
  await page.clock.install()
  await page.goto(`${url}/${hash}`)
  await rows(page).first().waitFor()
  return { page, faults, reads, isRead }
}

/** Puts the page's clock forward to where it reads its list again. @returns once the pages below the top have been read too */
async function readAgain({ page, reads, isRead }: Awaited<ReturnType<typeof openList>>): Promise<void> {
  const before = reads.length
  await page.clock.fastForward(EVERY_MS)
  await expect.poll(() => reads.length).toBeGreaterThan(before)
  await isRead()
}

describeInBrowser('lists of analyses', () => {
  test('half a point of XP is shown wherever XP is', async () => {
    const server = await openTestServer()
    const { client } = server
    const mint = await seedToken(client, Date.now())
    await submit(client, await client.register('first'), submission(mint))
    const snapshot = { priceUsd: VALUES.priceUsd * 1.3, snapshotAt: Date.now() }
    const { body } = await submit(client, await client.register('halved'), submission(mint, { snapshot }))
    expect(body).toMatchObject({ outcome: 'unvalidated', xpEarned: 12.5 })
    const { page } = await openPage(server.url, '#/submissions')
    const row = page.getByRole('row').filter({ hasText: 'halved' })
    await row.getByText('12.5', { exact: true }).waitFor()
    await page.goto(`${server.url}/#/agents`)
    // The XP, and the XP each.
    await expect.poll(() => row.getByText('12.5', { exact: true }).count()).toBe(2)
    await row.getByRole('link').click()
    await page.getByText('rank 2 · 12.5 XP · 1 analyses').waitFor()
    await server.remove()
  })

  describe('of 80 analyses', () => {
    let server: TestServer
    let key: string
    let agentId: string

    beforeEach(async () => {
      server = await openTestServer({
        'labels-delay-ms': '4000',
        'submit-limits': 'rate=0,cooldown-ms=0',
      })
      const token = (mint: string, at: number) => ({
        ...{ type: 'token', mint, ts: Date.now() },
        ...{ name: `Listed ${at}`, symbol: `L${at}` },
      })
      await server.client.push(...MINTS.map(token))
      key = await server.client.register('busy')
      await submitOn(MINTS.slice(0, 1))
      agentId = (await server.client.get('/api/v1/agents/leaderboard')).body.data[0].agentId
    })
    afterEach(() => server.remove())

    async function submitOn(mints: readonly string[]): Promise<void> {
      for (const mint of mints) {
        const answer = await submit(server.client, key, submission(mint))
        expect(answer.status, answer.text).toBe(201)
      }
    }
    async function labelsAreShown(): Promise<void> {
      const { client } = server
      const withheld = async () => {
        const { data } = (await client.get('/api/v1/analysis?latest=1&limit=200')).body
        return data.filter(({ sentiment }: { sentiment: string | null }) => sentiment === null).length
      }
      await expect.poll(withheld, { timeout: 15_000 }).toBe(0)
    }

    test.each([
      ['submissions', '#/submissions'],
      ['an agent’s page', '#/agents/AGENT'],
    ])(
      '%s has the label and the return of each, and reads no more than it needs',
      async (_, hash) => {
        const list = await openList(server, hash.replace('AGENT', agentId))
        const { page, faults, reads } = list
        await submitOn(MINTS.slice(1))
        await labelsAreShown()
        await readAgain(list)
        await expect.poll(() => saying(page, 'bullish')).toBe(MINTS.length)
        expect(await rows(page).count()).toBe(MINTS.length)
        // Nothing more is to come yet: the newest page tells whether there are new ones.
        reads.length = 0
        await readAgain(list)
        expect(reads).toHaveLength(1)
        await changeAnswers(page, '**/api/v1/analysis?*', (answer) => {
          for (const { outcomes } of answer.data) outcomes.fwd_ret_5m = 0.04
          return answer
        })
        await list.isRead()
        // The server's clock stays: the page goes on without being told of it.
        await page.evaluate(() => {
          const { send } = WebSocket.prototype
          WebSocket.prototype.send = function (message) {
            if (!String(message).includes('"ping"')) send.call(this, message)
          }
        })
        reads.length = 0
        await page.clock.fastForward(6 * MINUTE_MS)
        await expect.poll(() => saying(page, '▲ 4.00%')).toBe(MINTS.length)
        expect(reads).toHaveLength(2)
        expect(faults.filter((fault) => !fault.startsWith('asked'))).toEqual([])
      },
      60_000,
    )

    test('once the oldest is shown, nothing older is offered', async () => {
      await submitOn(MINTS.slice(1))
      const list = await openList(server, '#/submissions')
      const { page } = list
      const older = page.getByRole('button', { name: 'Older' })
      await page.route('**/api/v1/analysis?*cursor=*', (route) => route.abort())
      await older.click()
      await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
      await page.unrouteAll()
      await older.click()
      await page.getByRole('alert').waitFor({ state: 'detached' })
      await page.getByText('80 shown', { exact: true }).waitFor()
      await readAgain(list)
      await page.getByText('80 shown', { exact: true }).waitFor()
      expect(await older.count()).toBe(0)
    }, 60_000)

    test('after a restart on other data the list has that data alone', async () => {
      await server.remove()
      const settings = { port: `${await freePort()}` }
      server = await openTestServer(settings)
      await submit(
        server.client,
        await server.client.register('gone'),
        submission(await seedToken(server.client, Date.now())),
      )
      const { page } = await openList(server, '#/submissions')
      await server.remove()
      await page.locator('.connection.waiting').waitFor()
      server = await openTestServer(settings)
      await page.locator('.connection.live').waitFor({ timeout: 30_000 })
      await page.clock.fastForward(EVERY_MS)
      await page.getByRole('heading', { name: 'Nothing was submitted yet' }).waitFor()
    }, 60_000)

    test('whoever comes back to the page has it read then', async () => {
      const list = await openList(server, '#/submissions')
      const { page, reads } = list
      const show = (isHidden: boolean) =>
        page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
          document.dispatchEvent(new Event('visibilitychange'))`)
      await show(true)
      await page.clock.fastForward(EVERY_MS - 5_000)
      const before = reads.length
      await show(false)
      await page.clock.runFor(1_000)
      await expect.poll(() => reads.length).toBe(before + 1)
    })

    test('where too many are new to read them at once, the list ends above the gap', async () => {
      const list = await openList(server, `#/agents/${agentId}`)
      const { page } = list
      // Pages are shorter here.
      await page.route('**/api/v1/analysis?*', (route) => {
        const url = new URL(route.request().url())
        url.searchParams.set('limit', '10')
        return route.continue({ url: url.href })
      })
      await submitOn(MINTS.slice(1))
      await readAgain(list)
      await expect.poll(() => rows(page).count()).toBe(30)
      expect(await saying(page, 'L0')).toBe(0)
      for (let shown = 40; shown <= 80; shown += 10) {
        await page.getByRole('button', { name: 'Older' }).click()
        await expect.poll(() => rows(page).count()).toBe(shown)
      }
      expect(await saying(page, 'L0')).toBe(1)
    }, 60_000)
  })
})

/** Imported where it is run alone: its types are those of a browser. */
const LIST = '../../src/web/views/analysis-list.ts'
const { AnalysisList } = await import(LIST)

interface PageQuery {
  cursor: string | undefined
  limit: number
}

test('rows that could not be read on the way down to what was known are no hole: the list ends above them', async () => {
  vi.useFakeTimers()
  vi.stubGlobal('document', { hidden: false, addEventListener: () => {}, removeEventListener: () => {} })
  onTestFinished(() => void vi.useRealTimers().unstubAllGlobals())
  let newest = 100
  let failing = ''
  const list = new AnalysisList(
    async ({ cursor, limit }: PageQuery): Promise<unknown> => {
      if (failing !== '' && cursor !== undefined) throw new Error(failing)
      const first = cursor === undefined ? newest : Number(cursor)
      const last = Math.max(0, first - limit)
      const data = Array.from({ length: first - last }, (_, at) => ({
        analysisId: `an_${first - at}`,
        createdAt: first - at,
        outcome: 'rejected',
      }))
      return { data, meta: { nextCursor: last === 0 ? null : `${last}` } }
    },
    () => Date.now(),
    () => {},
  )
  const shown = (): number[] => list.rows.map(({ createdAt }: { createdAt: number }) => createdAt)
  const from = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, at) => first - at)
  await vi.advanceTimersByTimeAsync(0)
  expect(shown()).toEqual(from(100, 50))
  newest = 300
  failing = 'too many reads'
  await vi.advanceTimersByTimeAsync(EVERY_MS)
  expect(shown()).toEqual(from(300, 50))
  expect(list.latest.error).toBe(failing)
  failing = ''
  await vi.advanceTimersByTimeAsync(EVERY_MS)
  expect(shown()).toEqual(from(300, 50))
  expect(list.hasOlder).toBe(true)
  list.stop()
})
