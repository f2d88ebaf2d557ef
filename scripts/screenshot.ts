// node --no-warnings scripts/screenshot.ts
// Takes README's picture of the console: a server of its own on the seeded simulator, in Chromium (CHROMIUM_PATH).
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { startApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'

const PICTURE = new URL('../src/web/screenshot.png', import.meta.url).pathname
/** Every sparkline and many moves of prices are there by then. */
const SETTLE_MS = 60_000
const TOKENS = 1_000

const dataDir = mkdtempSync(join(tmpdir(), 'mintlake-screenshot-'))
const app = await startApp(
  readConfig(
    ['--port', '0', '--log-level', 'warn', '--data-dir', dataDir, '--simulator', `tokens=${TOKENS}`],
    {},
  ),
)
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
})
try {
  await app.ready
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: 'light' })
  await page.goto(app.url)
  await page.getByRole('row').nth(8).waitFor()
  await page.waitForTimeout(SETTLE_MS)
  await page.screenshot({ path: PICTURE })
  console.log(PICTURE)
} finally {
  await browser.close()
  await app.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
