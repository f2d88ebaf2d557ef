// @module-tag drill
// The market's table, in a real browser, on a market that is larger than any page of it.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { gridMove } from '../../src/web/views/market/grid-keys.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { changeAnswers, describeInBrowser, openPage, overflowPx } from './browser.ts'

const TOKENS = 6_000
/** The one with a long name. */
const LONG = {
  at: 2_222,
  symbol: 'QUOKKA',
  name: 'Chubby Quokka of the Far Southern Lights, the Second of Its Name',
}
const FIRST_ROWS_BYTES_MAX = 100_000
const BYTES_A_SECOND_MAX = 30_000
const TRADES_A_SECOND = 300
/** The headings that are clicked, and the sort that each asks for. */
const COLUMNS = [
  ...([
    'Token · hot hot',
    'Price price',
    '5m change_5m',
    '1h change_1h',
    '6h change_6h',
    '24h change_24h',
  ] as const),
  ...(['Vol 24h volume_24h', 'Buys buys_24h', 'Sells sells_24h', 'Mkt cap market_cap'] as const),
  ...(['Liquidity liquidity', 'Holders holders', 'Age created_timestamp', 'Analyses analyses'] as const),
].map((text) => ({
  label: text.slice(0, text.lastIndexOf(' ')),
  sort: text.slice(text.lastIndexOf(' ') + 1),
}))
/** The first of those that were traded a day ago too, with 24h changes of −25 %, 43 200 %, 0.0 % and −100 %. */
const MOVED_FIRST = 20
/** In the page: cells whose text does not lie in them, whichever side it leaves at; what lies over a neighbour cannot be read. */
const CUT = `[...document.querySelectorAll('.row .cell:not(.token)')].flatMap((cell) => {
  const [texts, room] = [document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), cell.getBoundingClientRect()]
  while (texts.nextNode()) {
    if (room.width === 0 || texts.currentNode.data.trim() === '') continue
    const range = document.createRange()
    range.selectNodeContents(texts.currentNode)
    const { left, right } = range.getBoundingClientRect()
    const gap = cell.closest('.head') ? -1 : 3
    if (left < room.left + gap || right > room.right + 1) return [cell.className + ' ' + cell.textContent.trim()]
  }
  return []
})`
const mintAt = (at: number): string => mintOfSymbol(`market ${at}`)

describeInBrowser('the market’s table', () => {
  let server: TestServer
  const trade = (at: number, more = {}) => ({
    ...{ type: 'trade', mint: mintAt(at), ts: Date.now(), side: at % 3 === 0 ? 'sell' : 'buy' },
    ...{ tokenAmount: 1_000, priceUsd: 0.001 + Math.random() / 1_000, ...more },
  })

  beforeAll(async () => {
    server = await openTestServer({ 'tokens-max': '8000' })
    // A day ago, so that their changes are known: small, large, and none that one digit tells.
    const dayAgoMs = Date.now() - 25 * 3_600_000
    const moved = [0.000_231_4, 0.000_000_4, 0.000_173_21, 1.2]
    for (const [at, priceUsd] of moved.entries())
      await server.client.push(trade(MOVED_FIRST + at, { ts: dayAgoMs, priceUsd }))
    for (let first = 0; first < TOKENS; first += 1_000) {
      const records: object[] = []
      for (let at = first; at < first + 1_000; at++) {
        const { name, symbol } = at === LONG.at ? LONG : { name: `Token number ${at}`, symbol: `T${at}` }
        records.push({ type: 'token', mint: mintAt(at), ts: Date.now(), name, symbol }, trade(at))
        // The largest are those that nobody trades any more: the last of the hottest.
        const fields = {
          marketCap: at < 5 ? 1e9 - at * 1e6 : 1_000 + at,
          ...(at === LONG.at && { isLive: true }),
        }
        records.push({ type: 'patch', mint: mintAt(at), ts: Date.now(), fields })
      }
      await server.client.push(...records)
    }
  }, 60_000)
  afterAll(() => server.remove())

  const rows = (page: Page) => page.locator('.rows .row')
  const symbols = (page: Page) => page.locator('.rows .row .names b').allTextContents()

  test('sorts, searches and filters the whole market, and scrolls to its end', async () => {
    const { page, faults } = await openPage(server.url)
    await page.getByText('6,000 tokens', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Mkt cap' }).click()
    await expect.poll(async () => (await symbols(page)).slice(0, 5)).toEqual(['T0', 'T1', 'T2', 'T3', 'T4'])
    await page.getByLabel('Search tokens').fill(mintAt(4_321))
    await page.getByText('1 token', { exact: true }).waitFor()
    expect(await symbols(page)).toEqual(['T4321'])
    expect(page.url()).toContain(`search=${mintAt(4_321)}`)
    await page.getByLabel('Search tokens').fill('')
    await page.getByText('6,000 tokens', { exact: true }).waitFor()
    await page.getByLabel('Least volume').selectOption('$1M+')
    await page.getByRole('heading', { name: 'No token matches' }).waitFor()
    expect(page.url()).toContain('volume=1000000')
    await page.getByLabel('Least volume').selectOption('any')
    await page.getByText('6,000 tokens', { exact: true }).waitFor()
    // Of five thousand and more rows those in sight are there, whichever they are.
    await page.evaluate(`document.querySelector('.table').scrollTop = 1e9`)
    await expect.poll(async () => (await symbols(page)).at(-1)).toBe('T5')
    expect(await rows(page).count()).toBeLessThan(60)
    expect(faults).toEqual([])
  }, 60_000)

  test('a search that is refused says so in place of the list before, and the next one is shown', async () => {
    const { page, faults } = await openPage(server.url, '#/market?search=quokka')
    await page.getByText('1 token', { exact: true }).waitFor()
    for (const refused of ['$', '"!"']) {
      await page.getByLabel('Search tokens').fill(refused)
      await page.getByRole('heading', { name: 'The list is not there' }).waitFor()
      await page.getByText(/^Search .*\.$/).waitFor()
      expect([await rows(page).count(), await page.locator('.toolbar .status').textContent()]).toEqual([
        0,
        '',
      ])
      await page.getByLabel('Search tokens').fill('no such token')
      await page.getByRole('heading', { name: 'No token matches' }).waitFor()
    }
    await page.getByLabel('Search tokens').fill('')
    await page.getByText('6,000 tokens', { exact: true }).waitFor()
    expect(await page.getByRole('heading', { name: 'The list is not there' }).count()).toBe(0)
    expect(faults).toEqual([])
  }, 60_000)

  test('a list that may be read no further stays, and says that it stands still', async () => {
    const { page } = await openPage('about:blank')
    let isRefused = false
    await page.routeWebSocket(/\/stream$/, (socket) => {
      const upstream = socket.connectToServer()
      socket.onMessage((text) => {
        const { op, id, topic } = JSON.parse(`${text}`)
        if (!isRefused || op !== 'subscribe' || topic !== 'window') return upstream.send(text)
        const error = 'The limit of reads is used up.'
        socket.send(JSON.stringify({ event: 'error', id, code: 'read_rate_limited', error }))
      })
    })
    await page.goto(server.url)
    await rows(page).nth(5).waitFor()
    isRefused = true
    await page.evaluate(`document.querySelector('.table').scrollTop = 1_500`)
    const banner = page.getByRole('alert')
    await banner.getByText('The limit of reads is used up. The list is not renewed meanwhile.').waitFor()
    await page.getByText('6,000 tokens', { exact: true }).waitFor()
    expect(await rows(page).count()).toBeGreaterThan(0)
    isRefused = false
    await page.evaluate(`document.querySelector('.table').scrollTop = 0`)
    await banner.waitFor({ state: 'detached' })
  }, 60_000)

  test('a search of two words may be typed with a pause between them', async () => {
    const { page, faults } = await openPage(server.url)
    const search = page.getByLabel('Search tokens')
    await page.getByText('6,000 tokens', { exact: true }).waitFor()
    await search.pressSequentially('Chubby ')
    await page.getByText('1 token', { exact: true }).waitFor()
    await search.pressSequentially('Quokka')
    await expect.poll(() => page.url()).toContain('Quokka')
    expect(await search.inputValue()).toBe('Chubby Quokka')
    expect(await symbols(page)).toEqual([LONG.symbol])
    expect(faults).toEqual([])
  }, 60_000)

  test('a search that was just typed goes along to another tab', async () => {
    const { page } = await openPage(server.url)
    await page.getByText('6,000 tokens', { exact: true }).waitFor()
    // As soon as the page is drawn, before the pause after which the list is asked for.
    await page.evaluate(`new Promise((drawn) => {
      const search = document.querySelector('#search')
      search.value = 'Chubby'
      search.dispatchEvent(new Event('input', { bubbles: true }))
      requestAnimationFrame(() => requestAnimationFrame(drawn))
    }).then(() => document.querySelector('nav.tabs a[href*="tab=new"]').click())`)
    await expect.poll(() => page.url()).toMatch(/tab=new.*search=Chubby/)
    expect(await page.getByLabel('Search tokens').inputValue()).toBe('Chubby')
  }, 60_000)

  test('every column sorts, in both directions', async () => {
    const { page, faults } = await openPage(server.url, '', {
      viewport: { width: 1400, height: 800 },
    })
    await rows(page).first().waitFor()
    for (const { label, sort } of COLUMNS) {
      const heading = page.getByRole('columnheader', { name: label, exact: true })
      const isSorted = (await heading.getAttribute('aria-sort')) !== 'none'
      await heading.getByRole('button').click()
      const first = isSorted ? 'ascending' : 'descending'
      await expect.poll(() => heading.getAttribute('aria-sort')).toBe(first)
      if (sort !== 'hot') expect(page.url()).toContain(`sort=${sort}`)
      await heading.getByRole('button').click()
      await expect.poll(() => heading.getAttribute('aria-sort')).not.toBe(first)
    }
    await page.getByRole('button', { name: 'Price' }).click()
    const top = async () => (await rows(page).first().locator('.cell.price').textContent())?.trim()
    const { body } = await server.client.get('/api/v1/market?sort=price&limit=1')
    const wanted = body.data[0].priceUsd.toPrecision(4).replace(/0+$/, '')
    await expect.poll(top).toContain(wanted.slice(0, 5))
    expect(faults).toEqual([])
  }, 60_000)

  test('the frame is there before any data; first rows and a busy market take few bytes', async () => {
    const { page } = await openPage('about:blank')
    const received = { bytes: 0, firstRows: 0 }
    page.on('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => {
        received.bytes += Buffer.byteLength(payload)
        if (received.firstRows === 0 && `${payload}`.includes('"order"')) received.firstRows = received.bytes
      }),
    )
    const { promise: isHeld, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/api/v1/session', async (route) => {
      await isHeld
      await route.continue()
    })
    await page.goto(server.url)
    await page.getByRole('columnheader', { name: 'Price' }).waitFor()
    await page.getByText('Volume 24h').waitFor()
    expect(received.bytes).toBe(0)
    release()
    await rows(page).nth(5).waitFor()
    expect(received.firstRows).toBeGreaterThan(1_000)
    expect(received.firstRows).toBeLessThan(FIRST_ROWS_BYTES_MAX)
    const [startBytes, startMs] = [received.bytes, Date.now()]
    // All of it among the hottest, so that every row in sight changes each second.
    for (let second = 0; second < 5; second++) {
      await server.client.push(...Array.from({ length: TRADES_A_SECOND }, (_, at) => trade(100 + (at % 60))))
      await page.waitForTimeout(1_000)
    }
    const bytesASecond = ((received.bytes - startBytes) * 1_000) / (Date.now() - startMs)
    expect(bytesASecond).toBeGreaterThan(1_000)
    expect(bytesASecond).toBeLessThan(BYTES_A_SECOND_MAX)
  }, 60_000)

  test('totals stand above, and a dense mode shows more rows and is remembered', async () => {
    const { page, faults } = await openPage(server.url)
    await page.locator('.totals').getByText('6,000').first().waitFor()
    await page.locator('.totals').getByText('Launches 24h').waitFor()
    const heightPx = async () => (await rows(page).first().boundingBox())?.height
    expect(await heightPx()).toBe(48)
    const before = await rows(page).count()
    await page.getByLabel('dense').check()
    await expect.poll(heightPx).toBe(30)
    await expect.poll(() => rows(page).count()).toBeGreaterThan(before)
    // Where the list was scrolled to it stays.
    const topPx = (px: number | null) =>
      page.evaluate<number>(
        `(({ table }) => { if (${px} !== null) table.scrollTop = ${px}; return table.scrollTop })({ table: document.querySelector('.table') })`,
      )
    await topPx(30 * 5_000)
    await rows(page).and(page.locator('[data-index="5000"]')).waitFor()
    await page.getByLabel('dense').uncheck()
    await expect.poll(() => topPx(null)).toBe(48 * 5_000)
    await page.getByLabel('dense').check()
    await page.reload()
    await expect.poll(heightPx).toBe(30)
    expect(faults).toEqual([])
  })

  test('a list that becomes shorter under the pointer keeps its rows until the pointer leaves', async () => {
    const liquid = (at: number, liquidity: number) =>
      server.client.push({ type: 'patch', mint: mintAt(at), ts: Date.now(), fields: { liquidity } })
    for (const at of [3_000, 3_001, 3_002]) await liquid(at, 5_000)
    const { page } = await openPage(server.url, '#/market?liquidity=1000')
    await page.getByText('3 tokens', { exact: true }).waitFor()
    const before = await symbols(page)
    await rows(page).first().hover()
    await liquid(Number(before[0]?.slice(1)), 1)
    await page.getByText(/^2 tokens/).waitFor()
    expect(await symbols(page)).toEqual(before)
    expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe('4')
    await page.mouse.move(2, 2)
    await expect.poll(() => symbols(page)).toEqual(before.slice(1))
    expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe('3')
  })

  test('where one of many trades is a sale, not all of them are buys', async () => {
    const { page } = await openPage('about:blank')
    await changeAnswers(page, '**/api/v1/market/totals', (answer) => ({
      ...answer,
      data: { ...answer.data, buys_24h: 9_999, sells_24h: 1 },
    }))
    await page.goto(server.url)
    const share = page.locator('.totals .up')
    await share.waitFor()
    expect(await share.textContent()).toBe('99%')
  })

  test.each([1_440, 1_181, 1_024, 961, 768, 721, 390, 360])(
    'at %d px nothing is cut and nothing scrolls sideways',
    async (width) => {
      const { page } = await openPage(server.url, '', { viewport: { width, height: 800 } })
      await server.client.push(trade(7, { priceUsd: 4_000_000 }), trade(7, { priceUsd: 0.000_000_000_123 }))
      for (const [at, symbol] of [0, 1, 2, 3].map((at) => [at, `T${MOVED_FIRST + at}`] as const)) {
        const tokenAmount = 1e9 - at
        await server.client.push(trade(MOVED_FIRST + at, { priceUsd: 0.000_173_2, tokenAmount }))
        await rows(page).locator('.names b').getByText(symbol, { exact: true }).waitFor()
      }
      await page.getByText('$0.0001732').nth(3).waitFor()
      expect(await overflowPx(page)).toBe(0)
      expect(
        await page.evaluate<number>(
          `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.table'))`,
        ),
      ).toBe(0)
      for (const filter of ['Least volume', 'Least liquidity'])
        expect(await page.getByLabel(filter).isVisible()).toBe(true)
      // Names may be cut, figures and headings not.
      expect(await page.evaluate<string[]>(CUT)).toEqual([])
      // What stands in a column stands below one another, however long its figures are.
      const lefts = await page.evaluate<number[]>(
        `[...document.querySelectorAll('.rows .spark-cell')].map((cell) => Math.round(cell.getBoundingClientRect().left))`,
      )
      expect(new Set(lefts).size).toBe(1)
      // A change that one digit does not tell has no direction.
      const still = rows(page).filter({ has: page.getByText(`T${MOVED_FIRST + 2}`, { exact: true }) })
      if (width > 720) expect(await still.locator('.c24h').innerText()).toBe('0.0%')
    },
  )

  test.each([1_440, 1_024, 390])(
    'at %d px a dense row cuts names, not symbols, and its marks are in line',
    async (width) => {
      const options = { viewport: { width, height: 800 } }
      const { page } = await openPage(server.url, '#/market?search=quokka', options)
      await page.getByLabel('dense').check()
      const row = rows(page).filter({ hasText: 'QUOKKA' })
      await row.waitFor()
      const shown = await page.evaluate<{
        isSymbolCut: boolean
        isNameCut: boolean
        offLinePx: number
      }>(`(() => {
        const cell = document.querySelector('.rows .row .cell.token')
        const isCut = (name) => (({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)(cell.querySelector(name))
        const middle = (name) => (({ y, height }) => y + height / 2)(cell.querySelector(name).getBoundingClientRect())
        const offLinePx = Math.abs(middle('.live-mark') - middle('.names'))
        return { isSymbolCut: isCut('.names b'), isNameCut: isCut('.names small'), offLinePx }
      })()`)
      expect(shown.isSymbolCut).toBe(false)
      // A phone shows neither names nor marks.
      if (width > 720) expect(shown).toMatchObject({ isNameCut: true })
      if (width > 720) expect(shown.offLinePx).toBeLessThan(2)
      // Each of the totals has a line for its name and one for its figure on a phone, and one line for both elsewhere.
      const heights = await page.evaluate<number[]>(
        `[...document.querySelectorAll('.totals > div')].map(({ clientHeight }) => clientHeight)`,
      )
      expect(Math.max(...heights)).toBeLessThan(width > 720 ? 24 : 44)
    },
  )

  test('one grid: Tab leads in and out, arrows and j/k go about, Enter sorts and opens', async () => {
    const { page, faults } = await openPage(server.url)
    await rows(page).nth(5).waitFor()
    const focused = () =>
      page.evaluate<string>(
        `document.activeElement?.closest('.row')?.dataset.index ?? document.activeElement?.textContent.trim()`,
      )
    await page.getByLabel('dense').focus()
    await page.keyboard.press('Tab')
    await expect.poll(focused).toBe('0')
    for (const key of ['j', 'ArrowDown', 'k', 'j', 'j']) await page.keyboard.press(key)
    await expect.poll(focused).toBe('3')
    // Faster than rows can come: no key is lost while none of them has the focus.
    await page.evaluate(
      `document.querySelector('.table').addEventListener('keydown', (event) => (window.keys = (window.keys ?? 0) + 1))`,
    )
    for (let pages = 0; pages < 40; pages++) await page.keyboard.press('PageDown')
    await expect
      .poll(async () => [Number(await focused()) > 400, await page.evaluate('window.keys')])
      .toEqual([true, 40])
    await page.keyboard.press('Home')
    await expect.poll(focused).toBe('0')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowRight')
    await expect.poll(focused).toBe('Price')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toContain('sort=price')
    await page.keyboard.press('ArrowDown')
    await expect.poll(focused).toBe('0')
    // Faster than the list that was asked for: the row that has the focus meanwhile goes when it comes, and the place keeps the focus.
    await page.keyboard.press('ArrowUp')
    await expect.poll(focused).toBe('↓Price')
    const before = await symbols(page)
    await page.evaluate(`(() => {
      const heading = document.activeElement
      heading.click()
      heading.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true, cancelable: true }))
    })()`)
    await expect.poll(() => symbols(page)).not.toEqual(before)
    await expect.poll(focused).toBe('0')
    await page.keyboard.press('ArrowDown')
    await expect.poll(focused).toBe('1')
    await page.keyboard.press('Home')
    await expect.poll(focused).toBe('0')
    await page.keyboard.press('Tab')
    expect(await page.evaluate<boolean>(`document.activeElement?.closest('.table') === null`)).toBe(true)
    await page.keyboard.press('Shift+Tab')
    await expect.poll(focused).toBe('0')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toContain('#/token/')
    expect(faults).toEqual([])
  }, 60_000)

  test('the order is held from row to row while the keyboard is in the list', async () => {
    const { page, faults } = await openPage(server.url, '#/market?sort=market_cap')
    const first = async () => (await symbols(page)).slice(0, 3)
    await expect.poll(first).toEqual(['T0', 'T1', 'T2'])
    await page.getByLabel('dense').focus()
    await page.keyboard.press('Tab')
    const patch = (marketCap: number) =>
      server.client.push({ type: 'patch', mint: mintAt(3), ts: Date.now(), fields: { marketCap } })
    await patch(2e9)
    const isHeld = page.getByText(/order held, \d+ moved/)
    await isHeld.waitFor()
    for (const key of ['j', 'ArrowDown']) {
      await page.keyboard.press(key)
      await page.evaluate(
        'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
      )
      expect(await first()).toEqual(['T0', 'T1', 'T2'])
      expect(await isHeld.isVisible()).toBe(true)
    }
    await page.getByLabel('dense').focus()
    await expect.poll(first).toEqual(['T3', 'T0', 'T1'])
    await patch(1e9 - 3e6)
    expect(faults).toEqual([])
  })

  test('a row that leaves its place while the order is held looks old, until the order goes on', async () => {
    const { page, faults } = await openPage(server.url, '#/market?sort=market_cap')
    const first = async () => (await symbols(page)).slice(0, 2)
    await expect.poll(first).toEqual(['T0', 'T1'])
    await page.locator('.table').hover()
    const patch = (marketCap: number) =>
      server.client.push({ type: 'patch', mint: mintAt(0), ts: Date.now(), fields: { marketCap } })
    await patch(1)
    const old = page.locator('.rows .row.old')
    await expect.poll(() => old.locator('.names b').allTextContents()).toEqual(['T0'])
    expect(await old.getAttribute('title')).toMatch(/^No longer here in the list/)
    await page.mouse.move(0, 0)
    await expect.poll(first).toEqual(['T1', 'T2'])
    expect(await old.count()).toBe(0)
    await patch(1e9)
    expect(faults).toEqual([])
  })
})

test('keys that are none of the grid’s are left alone, and its edges hold', () => {
  const size = { rows: 3, columns: 4, pageRows: 2 }
  expect(gridMove('a', { row: 0, column: 0 }, size)).toBe(null)
  expect(gridMove('ArrowLeft', { row: 1, column: 0 }, size)).toBe(null)
  expect(gridMove('ArrowUp', { row: -1, column: 2 }, size)).toEqual({ row: -1, column: 2 })
  expect(gridMove('j', { row: 2, column: 2 }, size)).toEqual({ row: 2, column: 2 })
  expect(gridMove('End', { row: -1, column: 0 }, size)).toEqual({ row: -1, column: 3 })
  expect(gridMove('PageUp', { row: 1, column: 0 }, size)).toEqual({ row: 0, column: 0 })
})
