// @module-tag drill
// The console on a replay that is faster than its market was: a file of a week ago, in a real browser.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer, temporaryFolder } from '../support/test-server.ts'
import { describeInBrowser, openPage } from './browser.ts'

const MINT = mintOfSymbol('replayed')
const SECOND_MS = 1_000
const TRADES = 600
const SPEED = 100

describeInBrowser('the console on a replay', () => {
  const folder = temporaryFolder()
  const beginMs = Date.now() - 7 * 86_400 * SECOND_MS
  let server: TestServer

  beforeAll(async () => {
    const path = join(folder, 'trades.csv')
    const trades = Array.from({ length: TRADES }, (_, at) => `${beginMs + at * SECOND_MS},${MINT},buy,1,10`)
    writeFileSync(path, ['ts,mint,side,price,size', ...trades].join('\n'))
    server = await openTestServer({
      feed: 'replay',
      replay: `file=${path},speed=${SPEED}`,
      'labels-delay-ms': '600000',
    })
  })
  afterAll(async () => {
    await server.remove()
    rmSync(folder, { recursive: true })
  })

  test('ages are those of the market while it runs and once it stands, and its day is named', async () => {
    const { page } = await openPage(server.url, `#/token/${MINT}`)
    const ages = () => page.locator('.trades-room tr td:last-child').allTextContents()
    const oldest = async () => Number.parseInt((await ages()).at(-1) ?? '0', 10)
    await expect.poll(oldest, { timeout: 20_000 }).toBeGreaterThan(5)
    const day = new Date(server.market.timeMs).toLocaleDateString('sv')
    await page.locator('.badges').getByText(day, { exact: true }).waitFor()
    // A trade a second: once the market stands, each is as old as its place in the list says.
    const areExact = async () => (await ages()).every((age, at) => age === `${at}s`)
    await expect.poll(areExact, { timeout: 30_000 }).toBe(true)
    await page.getByText('as of 0s ago').waitFor()
    // Labels are withheld by the clock on the wall.
    const answer = await submit(server.client, await server.client.register('replayer'), submission(MINT))
    expect(answer.status, answer.text).toBe(201)
    await page.reload()
    await page.getByText(/^shown in (9|10)m$/).waitFor()
  }, 60_000)
})
