// @module-tag drill
// Lists of analyses while they change, in a real browser: all rows that are shown stay current.
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seedToken, submission, submit, VALUES } from '../support/submission.ts'
import { openTestServer } from '../support/test-server.ts'
import { closeBrowser, hasBrowser, openBrowser, openPage, skipped } from './browser.ts'

describe.skipIf(!hasBrowser)(`lists of analyses${skipped}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => closeBrowser(browser))

  test('half a point of XP is shown wherever XP is', async () => {
    const server = await openTestServer()
    const { client } = server
    const mint = await seedToken(client, Date.now())
    await submit(client, await client.register('first'), submission(mint))
    const snapshot = { priceUsd: VALUES.priceUsd * 1.3, snapshotAt: Date.now() }
    const { body } = await submit(client, await client.register('halved'), submission(mint, { snapshot }))
    expect(body).toMatchObject({ outcome: 'unvalidated', xpEarned: 12.5 })
    const { page } = await openPage(browser, server.url, '#/submissions')
    const row = page.getByRole('row').filter({ hasText: 'halved' })
    await row.getByText('12.5', { exact: true }).waitFor()
    await page.goto(`${server.url}/#/agents`)
    // The XP, and the XP each.
    await expect.poll(() => row.getByText('12.5', { exact: true }).count()).toBe(2)
    await row.getByRole('link').click()
    await page.getByText('rank 2 · 12.5 XP · 1 analyses').waitFor()
    await server.remove()
  })
})
