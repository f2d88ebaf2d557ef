// @module-tag drill
// The console's view of SQL on the lake, in a real browser.
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_KEY, openTestServer, type TestServer } from '../support/test-server.ts'
import { accessibilityFaults, describeInBrowser, openPage, overflowPx, type WatchedPage } from './browser.ts'

const ENDLESS = 'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r'

describeInBrowser('the console’s queries', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await openTestServer()
  })
  afterAll(() => server.remove())

  const open = (sql: string, options = {}): Promise<WatchedPage> =>
    openPage(server.url, `#/query?${new URLSearchParams({ sql })}`, options)

  /** Writes the key and runs what the page shows. */
  async function run(page: Page, key = ADMIN_KEY): Promise<void> {
    await page.getByLabel(/^Key of/).fill(key)
    await page.getByLabel('SQL', { exact: true }).press('Control+Enter')
  }

  test('the command for a terminal names the folder of this server', async () => {
    const open = await openTestServer({}, {}, undefined, { MINTLAKE_ADMIN_KEY: '' })
    const { page } = await openPage(open.url, '#/query')
    await page.getByText(`npx mintlake sql --data-dir ${open.dataDir} "SHOW TABLES"`).waitFor()
    await open.remove()
    // Who needs a key here may be anywhere: the folder is nobody's business.
    const { page: other } = await openPage(server.url, '#/query')
    await other.getByText('npx mintlake sql "SHOW TABLES"').waitFor()
  })

  test('an address shows its query and runs nothing; the keyboard runs it', async () => {
    const sql = `SELECT 'from a link' AS said, 41 + 1 AS n, NULL AS nothing`
    const { page, faults } = await open(sql)
    const asked: string[] = []
    page.on('request', (request) => void asked.push(new URL(request.url()).pathname))
    expect(await page.getByLabel('SQL', { exact: true }).inputValue()).toBe(sql)
    await page.waitForLoadState('networkidle')
    expect(asked).not.toContain('/api/v1/query')
    await run(page)
    await page.getByRole('row', { name: 'from a link 42 NULL' }).waitFor()
    await page.getByText(/^1 row in \d+ ms$/).waitFor()
    // An address that somebody has written holds what it asks as it is.
    await page.evaluate(`location.hash = "#/query?sql=SELECT 'what?' AS asked"`)
    await expect
      .poll(() => page.getByLabel('SQL', { exact: true }).inputValue())
      .toBe("SELECT 'what?' AS asked")
    expect(faults).toEqual([])
  })

  test('an example is chosen and run by the keyboard, and stands in the address', async () => {
    const { page, faults } = await openPage(server.url, '#/query')
    await page.getByText('No query has run yet').waitFor()
    await page.getByRole('button', { name: 'Columns of training' }).press('Enter')
    await run(page)
    await page.getByRole('row').filter({ hasText: 'analysis_id' }).waitFor()
    expect(new URL(page.url()).hash).toContain('sql=DESCRIBE+training')
    await page.reload()
    expect(await page.getByLabel('SQL', { exact: true }).inputValue()).toBe('DESCRIBE training')
    expect(faults).toEqual([])
  })

  test('texts of strangers stay texts, and a spreadsheet runs none of them', async () => {
    const { page, faults } = await open(
      `SELECT '<img src=x onerror=alert(1)>' AS a, '=1+1' AS b, '-5' AS c, 'say "x"' AS d, -5 AS e, [1, 2] AS f`,
    )
    await run(page)
    await page.getByText('<img src=x onerror=alert(1)>', { exact: true }).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('mintlake-query.csv')
    expect(readFileSync(await download.path(), 'utf8')).toBe(
      `a,b,c,d,e,f\n<img src=x onerror=alert(1)>,'=1+1,-5,"say ""x""",-5,"[1,2]"\n`,
    )
    expect(faults).toEqual([])
  })

  test('what is wrong is told: the SQL, the key, the truncation', async () => {
    const { page } = await open('SELEC 1')
    const howToGetKey = page.getByText('npx mintlake keys make lab --type researcher')
    expect(await howToGetKey.isVisible()).toBe(false)
    await page.getByText('How a key is made').click()
    await howToGetKey.waitFor()
    await run(page)
    await page.getByRole('alert').getByText('syntax error at or near "SELEC"').waitFor()
    await run(page, 'wrong')
    await howToGetKey.waitFor()
    await page.getByLabel('SQL', { exact: true }).fill('FROM range(5000)')
    await run(page)
    await page.getByText(/^1,000 rows in .*there are more/).waitFor()
    await page.getByRole('button', { name: 'Save these 1,000 rows as CSV' }).waitFor()
    // Rows of 400 kB, of which an answer has fewer.
    await page.getByLabel('SQL', { exact: true }).fill(`SELECT repeat('x', 400000) AS x FROM range(50)`)
    await run(page)
    await page.getByText(/^\d+ rows in .*there are more/).waitFor()
    await page.getByRole('button', { name: /^Save these \d+ rows as CSV$/ }).waitFor()
    await run(page, 'ключ')
    await page.getByRole('alert').getByText('A key has no such characters.').waitFor()
  })

  test('a query is canceled, on the server too', async () => {
    const { page } = await open(ENDLESS)
    await run(page)
    await expect.poll(() => server.queries.running).toBe(1)
    await page.getByText(/^running, \d+ s$/).waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('canceled', { exact: true }).waitFor()
    await expect.poll(() => server.queries.running).toBe(0)
  })

  test('has no accessibility fault with a result or an error, and no sideways scroll on a phone', async () => {
    const wide = `SELECT ${Array.from({ length: 30 }, (_, at) => `'a long text in a column' AS column_${at}`).join()}`
    const { page } = await open(wide, { bypassCSP: true, viewport: { width: 360, height: 740 } })
    await run(page)
    await page.getByRole('columnheader', { name: 'column_29' }).waitFor()
    expect(await overflowPx(page)).toBe(0)
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByLabel('SQL', { exact: true }).fill('SELEC')
    await run(page)
    await page.getByRole('alert').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
  })
})
