// The client's types, as a strict program sees them that has the browser's globals and none of Node's.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const ENTRY = new URL('../../src/client/index.ts', import.meta.url).pathname
const COMPILER = join(dirname(createRequire(import.meta.url).resolve('typescript-7/package.json')), 'bin/tsc')
const FLAGS =
  '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --skipLibCheck --allowImportingTsExtensions ' +
  '--target es2022 --lib es2023,dom,dom.iterable,dom.asynciterable --module esnext --moduleResolution bundler --pretty false'

const PROGRAM = `
import { createClient, MintlakeError, type Submission } from '${ENTRY}'

function same<T>(value: T): T { return value }
const client = createClient({ baseUrl: location.origin, key: 'ps_…', fetch: globalThis.fetch })
const { data, meta } = await client.market({ tab: 'live', maxAnalyses: 4 })
same<string | undefined>(data[0]?.symbol)
same<string | null>(meta.nextCursor)
for await (const item of client.follow({ tab: 'new' }, { signal: AbortSignal.timeout(1) })) {
  switch (item.type) {
    case 'row':
      same<number | null>(item.row.priceUsd)
      break
    case 'left':
      same<string>(item.mint)
      break
    case 'gap':
      same<'resync' | 'restart'>(item.reason)
      break
    default:
      same<never>(item)
  }
}
const submission: Submission = {
  mint: 'm',
  sentiment: 'bullish',
  score: 1,
  summary: '',
  quant: {
    riskLevel: 'low',
    riskFactors: ['copy_token'],
    buyPressure: 1,
    volatilityScore: 1,
    liquidityDepth: 'dry',
    holderConcentration: 'moderate',
    trendDirection: 'up',
    volumeProfile: 'dead',
  },
}
same<string>((await client.submit(submission)).analysisId)
same<true>((await client.submit(submission, { dryRun: true })).dryRun)
same<number | null>((await client.standing()).rank)
try {
  await client.datapoint('m')
} catch (error) {
  if (error instanceof MintlakeError && error.code === 'token_not_found') same<number | null>(error.retryAfterMs)
}
`
/** Each is refused. */
const WRONG = `
import { createClient, MintlakeError } from '${ENTRY}'
const client = createClient({ baseUrl: '' })
await client.market({ tab: 'dead' })
await client.market({ max_analyses: 4 })
await client.bars({ tf: '1m' })
await client.bars({ mint: 'm', tf: '2m' })
same((await client.datapoint('m')).priceEur)
await client.submit({ mint: 'm' })
if (new MintlakeError('timeout', '').code === 'time_out') same(0)
same((await client.submit({} as never, { dryRun: true })).analysisId?.length)
function same(value: unknown): void { value }
`

/** Errors in both programs and in the client. Code of the schemas' folder, of which only types are used, may need Node's. */
function compile(): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-types-'))
  try {
    const programs = Object.entries({ 'correct.mts': PROGRAM, 'wrong.mts': WRONG })
    for (const [name, text] of programs) writeFileSync(join(folder, name), text)
    const paths = programs.map(([name]) => join(folder, name))
    const { stdout } = spawnSync(process.execPath, [COMPILER, ...FLAGS.split(' '), ...paths], {
      cwd: folder,
      encoding: 'utf8',
    })
    return stdout.split('\n').filter((line) => /^(correct|wrong|.*src\/client\/).*error TS\d+/.test(line))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('at run time the client imports its own files and the table of error codes only', () => {
  const folder = dirname(ENTRY)
  const imported = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => stripTypeScriptTypes(readFileSync(join(folder, name), 'utf8')))
    .flatMap((code) => [...code.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map(([, path]) => path))
  expect(imported.filter((path) => !path.startsWith('./'))).toEqual(['../schema/errors.ts'])
  expect(readFileSync(join(folder, '../schema/errors.ts'), 'utf8')).not.toMatch(/^import/m)
})

test('a correct program needs no cast, and no types of Node; wrong names, values and codes are refused', {
  tags: 'drill',
}, () => {
  const [refused, others] = [[], []] as string[][]
  for (const error of compile()) (error.startsWith('wrong') ? refused : others).push(error)
  expect(others).toEqual([])
  const lines = refused.map((error) => Number(/\((\d+),/.exec(error)?.[1]))
  expect([...new Set(lines)]).toEqual([4, 5, 6, 7, 8, 9, 10, 11])
})
