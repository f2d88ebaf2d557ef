// @module-tag drill
// A client that anybody may generate from the API description, without a cast and under the strictest checks.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import openapiTS, { astToString } from 'openapi-typescript'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { seedToken } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const MODULES = new URL('../../../node_modules', import.meta.url).pathname
const run = promisify(execFile)
const STEP_MS_MAX = 60_000

const PROGRAM = `import createClient from 'openapi-fetch'
import type { paths } from './api.ts'

const [baseUrl = '', mint = ''] = process.argv.slice(2)
const client = createClient<paths, 'application/json' | 'application/problem+json'>({ baseUrl })

const registered = await client.POST('/api/v1/keys/register', { body: { name: 'generated' } })
if (registered.error) throw new Error(registered.error.error)
const headers = { Authorization: 'Bearer ' + registered.data.data.key }

const bars = await client.GET('/api/v1/ohlc', { params: { query: { mint, tf: '1m', limit: 5 } } })
if (bars.error) throw new Error(bars.error.code)
const [bar] = bars.data.data
const close: number | undefined = bar === undefined ? undefined : 'c' in bar ? bar.c : bar.close

const point = await client.GET('/api/v1/datapoint', { params: { query: { mint } } })
if (point.error) throw new Error(point.error.code)
// Not there where \`fields\` asks for others.
const priceUsd: number | null | undefined = point.data.data.priceUsd

const profile = await client.POST('/api/v1/agent/profile', { headers, body: { website: 'https://example.org' } })
if (profile.error) throw new Error(profile.error.code)
const website: string | null = profile.data.profile.website

const refused = await client.POST('/api/v1/agent/profile', { body: {} })
const code: 'missing_key' | string | undefined = refused.error?.code
console.log(JSON.stringify({ close, priceUsd, website, code, name: profile.data.profile.name }))
`

let server: TestServer
let folder: string
beforeAll(async () => {
  server = await openTestServer()
  folder = mkdtempSync(join(tmpdir(), 'mintlake-generated-'))
  symlinkSync(MODULES, join(folder, 'node_modules'))
  const config = {
    compilerOptions: {
      target: 'es2024',
      module: 'nodenext',
      types: ['node'],
      strict: true,
      noUncheckedIndexedAccess: true,
      exactOptionalPropertyTypes: true,
      allowImportingTsExtensions: true,
      erasableSyntaxOnly: true,
      verbatimModuleSyntax: true,
      noEmit: true,
    },
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await server.remove()
})

const check = () =>
  run(process.execPath, [join(MODULES, 'typescript-7/bin/tsc'), '-p', folder], { timeout: STEP_MS_MAX })

it('registers, reads bars and a DataPoint, and writes a profile', { timeout: 3 * STEP_MS_MAX }, async () => {
  const nowMs = Date.now()
  const mint = await seedToken(server.client, nowMs)
  await server.client.push({ type: 'trade', mint, ts: nowMs, side: 'buy', tokenAmount: 5, priceUsd: 0.25 })
  const description = (await server.client.get('/openapi.json')).body
  writeFileSync(join(folder, 'api.ts'), astToString(await openapiTS(description)))
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
  await check()
  const args = ['--no-warnings', join(folder, 'program.ts'), server.url, mint]
  const { stdout } = await run(process.execPath, args, { timeout: STEP_MS_MAX })
  expect(JSON.parse(stdout)).toEqual({
    close: 0.25,
    priceUsd: 0.25,
    website: 'https://example.org',
    code: 'missing_key',
    name: 'generated',
  })
  // A field that does not exist is an error of the types.
  writeFileSync(
    join(folder, 'program.ts'),
    PROGRAM.replace('point.data.data.priceUsd', 'point.data.data.priceEur'),
  )
  await expect(check()).rejects.toMatchObject({ stdout: expect.stringContaining('priceEur') })
})
