// @module-tag drill
// The key of a tab and the form to submit by hand, in a real browser.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SUMMARY, seedToken, submission, submit, VALUES } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { describeInBrowser, openPage } from './browser.ts'

const COMPLETE_TEXT = 'if you submit this now'

describeInBrowser('trying it by hand', () => {
  let server: TestServer
  let mint: string

  beforeAll(async () => {
    server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0' })
    mint = await seedToken(server.client, Date.now())
  })
  afterAll(() => server.remove())

  const open = async (hash: string): Promise<Page> => (await openPage(server.url, hash)).page
  async function enterKey(page: Page, key: string): Promise<void> {
    const field = page.getByLabel('or one that you have')
    await field.fill(key)
    await field.blur()
  }
  const keptKey = (page: Page) => page.evaluate<string | null>(`sessionStorage.getItem('mintlake-key')`)

  test('a key that is mistyped is told when it is entered, and not taken', async () => {
    const page = await open('#/try')
    for (const [key, text] of [
      [`ps_${'a'.repeat(48)}`, 'The API key is mistyped'],
      ['schlüssel ✓', 'A key has no such characters'],
    ] as const) {
      await enterKey(page, key)
      await page.getByRole('alert').getByText(text).waitFor()
      expect(await keptKey(page)).toBe(null)
    }
    const key = await server.client.register('exact')
    await enterKey(page, ` ${key} `)
    await page.getByText('Your key').waitFor()
    expect(await keptKey(page)).toBe(key)
  })

  test('a key that is refused later names the remedy in every view that reads with it', async () => {
    const key = await server.client.register('revoked')
    const page = await open('#/try')
    await enterKey(page, key)
    await page.getByText('Your key').waitFor()
    const gone = await fetch(`${server.url}/api/v1/keys/current`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${key}` },
    })
    expect(gone.status).toBe(200)
    for (const view of ['calibration', 'submissions', 'agents', `token/${mint}`]) {
      await page.evaluate(`location.hash = '#/${view}'`)
      await page.getByRole('link', { name: 'Forget the key in “Try it”' }).waitFor()
      expect(await page.getByText('tries again by itself').count()).toBe(0)
    }
    await page.getByRole('link', { name: 'Forget the key in “Try it”' }).click()
    await page.getByRole('alert').getByText('Forget it, and take another.').waitFor()
    await page.getByRole('button', { name: 'Forget it' }).click()
    await page.evaluate(`location.hash = '#/submissions'`)
    await page.getByRole('heading', { name: 'Nothing was submitted yet' }).waitFor()
  })

  test('strikes stand beside the key, and how long it is suspended', async () => {
    const key = await server.client.register('crook')
    const reject = async () =>
      submit(
        server.client,
        key,
        submission(mint, { snapshot: { priceUsd: VALUES.priceUsd * 3, snapshotAt: Date.now() } }),
      )
    await reject()
    await reject()
    const page = await open('#/try')
    await enterKey(page, key)
    const strikes = page.locator('dl > div').filter({ hasText: 'Strikes' }).locator('dd')
    await expect.poll(() => strikes.textContent()).toBe('2')
    expect(await page.getByText('suspended').count()).toBe(0)
    expect((await reject()).body.code).toBe('agent_banned')
    await page.reload()
    await page
      .getByRole('alert')
      .getByText(/^This agent is suspended until .*\d\d:\d\d/)
      .waitFor()
  })

  async function fillIn(page: Page): Promise<void> {
    await page.getByLabel('bonding_curve_risk').check()
    await page.getByLabel(/^Summary/).fill(SUMMARY)
  }

  test('a verdict goes with the form that it is of, also where it comes late', async () => {
    const page = await open(`#/try/${mint}`)
    await enterKey(page, await server.client.register('reviser'))
    await fillIn(page)
    await page.getByText(COMPLETE_TEXT).waitFor()
    await page.getByLabel(/^Summary/).fill('short')
    await page.getByText('Shown as soon as the form is complete').waitFor()
    expect(await page.getByText(COMPLETE_TEXT).count()).toBe(0)
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/api/v1/analysis/submit?*', async (route) => {
      held()
      await isReleased
      await route.continue()
    })
    await page.getByLabel(/^Summary/).fill(SUMMARY)
    await isHeld
    await page.getByLabel(/^Summary/).fill('short')
    const isAnswered = page.waitForResponse(/\/analysis\/submit/)
    release()
    await (await isAnswered).finished()
    await page.getByRole('button', { name: 'Submit', disabled: false }).waitFor()
    expect(await page.getByText(COMPLETE_TEXT).count()).toBe(0)
  })

  test('a submission whose answer is lost is told, and stored once; while one is under way there is no other', async () => {
    const page = await open(`#/try/${mint}`)
    await enterKey(page, await server.client.register('unlucky'))
    const keys: (string | undefined)[] = []
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/api/v1/analysis/submit', async (route) => {
      const count = keys.push(route.request().headers()['idempotency-key'])
      if (count === 1) await route.fetch()
      if (count === 3) held()
      if (count === 3) await isReleased
      return count === 1 ? route.abort() : route.continue()
    })
    const button = page.getByRole('button', { name: 'Submit' })
    await fillIn(page)
    await page.getByText(COMPLETE_TEXT).waitFor()
    await button.click()
    await page.getByRole('alert').getByText('may have been stored: press Submit again').waitFor()
    // Somebody looks for it among the submissions first.
    await page.evaluate(`location.hash = '#/submissions'`)
    await page.getByRole('heading', { name: 'Submissions' }).waitFor()
    await page.goBack()
    await button.click()
    await page.getByText('✓ validated submitted').waitFor()
    expect(keys[1]).toBe(keys[0])
    await button.click()
    await isHeld
    await page.getByLabel('low_liquidity').check()
    // What a dry run of it brings is no end of the submission.
    await page.getByText(COMPLETE_TEXT).waitFor()
    expect(await button.isDisabled()).toBe(true)
    release()
    await page.getByText('✓ validated submitted').waitFor()
    expect(new Set(keys).size).toBe(2)
    expect(await button.isDisabled()).toBe(false)
  })

  test('what was filled in is there when one comes back with a mint', async () => {
    const page = await open('#/try')
    await fillIn(page)
    await page.getByRole('link', { name: 'choose one from the market' }).click()
    await page.getByRole('heading', { name: 'Market' }).waitFor()
    await page.goBack()
    await expect.poll(() => page.getByLabel(/^Summary/).inputValue()).toBe(SUMMARY)
    await page.evaluate(`location.hash = '#/try/${mint}'`)
    await expect.poll(() => page.getByLabel(/^Mint/).inputValue()).toBe(mint)
    expect(await page.getByLabel(/^Summary/).inputValue()).toBe(SUMMARY)
    expect(await page.getByLabel('bonding_curve_risk').isChecked()).toBe(true)
  })

  test('where a browser gives no clipboard, the whole key is selected', async () => {
    const page = await open('#/try')
    // As it is for pages over plain http from another computer.
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
    await page.getByLabel("Your agent's name").fill('plain')
    await page.getByRole('button', { name: 'Get a key' }).click()
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Selected' }).waitFor()
    const key = await keptKey(page)
    expect(key).toMatch(/^ps_\w{48}$/)
    expect(await page.evaluate<string>('String(getSelection())')).toBe(key)
  })
})
