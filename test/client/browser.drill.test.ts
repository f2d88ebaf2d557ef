// @module-tag drill
// The client in Chromium, on a page of another origin than the server's.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { stripTypeScriptTypes } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { submission } from '../support/submission.ts'
import { openTestServer } from '../support/test-server.ts'
import { hasBrowser, openBrowser, skipped } from '../web/browser.ts'
import type { PageResult } from './browser-page.ts'

const ROOT = new URL('../../', import.meta.url).pathname

const page = (baseUrl: string, body: object) => `<!doctype html><script type="module">
  import { useClient } from '/test/client/browser-page.ts'
  const following = () => { globalThis.isFollowing = true }
  globalThis.result = useClient(${JSON.stringify(baseUrl)}, ${JSON.stringify(body)}, following)
</script>`

/** Serves a page, and the files of this project as JavaScript. */
async function serve(html: string) {
  const server = createServer(async (req, res) => {
    const path = normalize(req.url ?? '/')
    if (!path.endsWith('.ts')) return void res.writeHead(200, { 'Content-Type': 'text/html' }).end(html)
    const code = stripTypeScriptTypes(await readFile(join(ROOT, path), 'utf8'))
    res.writeHead(200, { 'Content-Type': 'text/javascript' }).end(code)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

test.skipIf(!hasBrowser)(`the client runs in Chromium${skipped}`, async () => {
  const lake = await openTestServer()
  const mint = mintOfSymbol('browser')
  const token = { type: 'token', mint, ts: Date.now(), name: 'Seed', symbol: 'SEED' }
  await lake.client.push(token, { type: 'patch', mint, ts: Date.now(), fields: { priceUsd: 1 } })
  const { origin, server } = await serve(page(lake.url, submission(mint)))
  const browser = await openBrowser()
  try {
    const tab = await browser.newPage()
    const faults: string[] = []
    tab.on('pageerror', (error) => void faults.push(error.message))
    await tab.goto(origin)
    await tab.waitForFunction('globalThis.isFollowing')
    await lake.client.push({ ...token, name: 'Renamed' })
    const result: PageResult = await tab.evaluate('globalThis.result')
    expect(result).toMatchObject({
      symbols: ['SEED'],
      outcome: 'validated',
      xpEarned: 50,
      refusal: { code: 'mint_cooldown', retryAfterMs: expect.any(Number) },
    })
    expect(result.followed.at(-1)).toBe('Renamed')
    expect(faults).toEqual([])
  } finally {
    await browser.close()
    server.close()
    await lake.remove()
  }
})
