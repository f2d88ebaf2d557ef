// Bodies of submissions over real HTTP: every field, bound and vocabulary of sections 2.1 to 2.4 of the specification.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  HOLDER_CONCENTRATIONS,
  LIQUIDITY_DEPTHS,
  RISK_FACTORS,
  RISK_LEVELS,
  SENTIMENTS,
  TREND_DIRECTIONS,
  VOLUME_PROFILES,
} from '../../../src/schema/vocabulary.ts'
import { expectProblem, quant, SUMMARY, seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
let mint: string
let key: string

beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0' })
  mint = await seedToken(server.client, Date.now())
  key = await server.client.register()
})
afterAll(() => server.remove())

const total = async (): Promise<number> => (await server.client.get('/api/v1/analysis')).body.totalAnalyses
const send = (body: unknown, headers: Record<string, string> = {}) =>
  submit(server.client, key, body, headers)

async function expectAccepted(body: object): Promise<void> {
  const answer = await send(body)
  expect(answer.status, answer.text).toBe(201)
}

/** Checks that a body is refused with a pointer and that nothing is stored. */
async function expectRefused(
  body: unknown,
  pointer?: string,
  code: Parameters<typeof expectProblem>[1] = 'validation_failed',
) {
  const before = await total()
  const answer = await send(body)
  expectProblem(answer, code, pointer)
  expect(await total()).toBe(before)
  return answer
}

/** Changes one member of a submission by its path. `undefined` removes it. */
function changed(path: string[], value: unknown): Record<string, unknown> {
  const body = structuredClone(submission(mint))
  const parent = path
    .slice(0, -1)
    .reduce<Record<string, unknown>>((at, name) => at[name] as Record<string, unknown>, body)
  if (value === undefined) delete parent[path.at(-1)!]
  else parent[path.at(-1)!] = value
  return body
}

const FIELDS = [
  ['mint'],
  ['sentiment'],
  ['score'],
  ['summary'],
  ['quant'],
  ...Object.keys(quant).map((name) => ['quant', name]),
]
const ENUMS: [string[], readonly string[]][] = [
  [['sentiment'], SENTIMENTS],
  [['quant', 'riskLevel'], RISK_LEVELS],
  [['quant', 'liquidityDepth'], LIQUIDITY_DEPTHS],
  [['quant', 'holderConcentration'], HOLDER_CONCENTRATIONS],
  [['quant', 'trendDirection'], TREND_DIRECTIONS],
  [['quant', 'volumeProfile'], VOLUME_PROFILES],
]
const PERCENTS = [['score'], ['quant', 'buyPressure'], ['quant', 'volatilityScore']]
const at = (path: string[]) => `/${path.join('/')}`

describe('a submission', () => {
  it.each(FIELDS.map((path) => [at(path), path] as const))(
    'is refused without %s, with its pointer',
    async (pointer, path) => {
      await expectRefused(changed([...path], undefined), pointer)
    },
  )

  it.each(FIELDS.map((path) => [at(path), path] as const))(
    'is refused if %s has the wrong type',
    async (pointer, path) => {
      for (const wrong of [null, true, [1], { a: 1 }]) {
        const value = Array.isArray(wrong) && path.at(-1) === 'riskFactors' ? 'no list' : wrong
        const body = changed([...path], value)
        const answer = await expectRefused(
          body,
          undefined,
          pointer === '/mint' ? ((await send(body)).body.code as 'invalid_mint') : 'validation_failed',
        )
        expect(
          answer.body.errors.some((fault: { pointer: string }) => fault.pointer.startsWith(pointer)),
        ).toBe(true)
      }
    },
  )

  it.each(ENUMS.map(([path, words]) => [at(path), path, words] as const))(
    'accepts every value of %s, and no other',
    async (pointer, path, words) => {
      for (const word of words) await expectAccepted(changed([...path], word))
      const answer = await expectRefused(changed([...path], `${words[0]}x`), pointer)
      expect(answer.body.errors[0]).toMatchObject({ allowed: [...words], suggestion: words[0] })
    },
  )

  it.each(PERCENTS.map((path) => [at(path), path] as const))(
    'accepts %s from 0 to 100, bounds included',
    async (pointer, path) => {
      for (const value of [0, 100, 50.5]) await expectAccepted(changed([...path], value))
      for (const value of [-0.001, 100.001, 1e308, '50', 'NaN'])
        await expectRefused(changed([...path], value), pointer)
      const infinite = JSON.stringify(changed([...path], 987654321)).replace('987654321', '1e999')
      await expectRefused(infinite, pointer)
      await expectRefused(infinite.replace('1e999', 'NaN'), undefined, 'invalid_json')
    },
  )

  it('with an impossible number in its snapshot is refused as invalid, without a strike', async () => {
    for (const [field, value] of [
      ['top10HolderPct', 101],
      ['bondingProgress', -5],
      ['priceUsd', -1],
      ['holderCount', -1],
    ] as const)
      await expectRefused(
        submission(mint, { snapshot: { snapshotAt: Date.now(), [field]: value } }),
        `/snapshot/${field}`,
      )
  })

  it('lists numbers out of range in a snapshot along with wrong types', async () => {
    const snapshot = { snapshotAt: Date.now(), liquidity: 'much', priceUsd: -1, top10HolderPct: 101 }
    const { body } = await expectRefused(submission(mint, { snapshot }), undefined)
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual([
      '/snapshot/liquidity',
      '/snapshot/priceUsd',
      '/snapshot/top10HolderPct',
    ])
  })

  it('accepts only a summary of 50 to 2000 code points after trimming', async () => {
    const emoji = '🚀'
    for (const count of [50, 2000]) {
      await expectAccepted(submission(mint, { summary: emoji.repeat(count) }))
      await expectAccepted(submission(mint, { summary: `  ${'a'.repeat(count)}\n ` }))
    }
    for (const count of [0, 49, 2001]) {
      await expectRefused(submission(mint, { summary: emoji.repeat(count) }), '/summary')
      await expectRefused(submission(mint, { summary: ` ${'a'.repeat(count)} `.padStart(60) }), '/summary')
    }
  })

  it.each(RISK_FACTORS)('accepts the risk factor %s', async (factor) => {
    await expectAccepted(submission(mint, { quant: { ...quant, riskFactors: [factor] } }))
  })

  it('accepts 1 to 8 risk factors, not counting duplicates', async () => {
    const factors = (count: number) =>
      submission(mint, { quant: { ...quant, riskFactors: RISK_FACTORS.slice(0, count) } })
    for (const count of [1, 8]) await expectAccepted(factors(count))
    for (const count of [0, 9, 35]) await expectRefused(factors(count), '/quant/riskFactors')
    const repeated = { ...quant, riskFactors: [...RISK_FACTORS.slice(0, 8), RISK_FACTORS[0]] }
    const answer = await send(submission(mint, { quant: repeated }))
    expect(answer.status).toBe(201)
    const stored = await server.client.get(answer.headers.get('location')!)
    expect(stored.body.data.quant.riskFactors).toEqual(RISK_FACTORS.slice(0, 8))
  })

  it('with an unknown risk factor is refused with the 35 allowed ones and the most similar one', async () => {
    const answer = await expectRefused(
      submission(mint, { quant: { ...quant, riskFactors: ['organic_volume', 'rug_pull_risk'] } }),
      '/quant/riskFactors/1',
    )
    expect(answer.body.errors[0].allowed).toHaveLength(35)
    expect(answer.body.errors[0].suggestion).toBe('rug_pattern')
    expect(answer.body.strikes).toBeUndefined()
  })

  it.each([
    ['', 'invalid_json'],
    ['{', 'invalid_json'],
    ['[]', 'validation_failed'],
    ['null', 'validation_failed'],
    ['"text"', 'validation_failed'],
    ['{"a":1}{"b":2}', 'invalid_json'],
    [`${'['.repeat(5_000)}${']'.repeat(5_000)}`, 'invalid_json'],
    [`{"mint":${'{"a":'.repeat(100)}1${'}'.repeat(101)}`, 'invalid_json'],
  ] as const)('of the body %j is refused', async (body, code) => {
    await expectRefused(body.slice(0, 20_000), undefined, code)
  })

  it('is refused if it is not UTF-8', async () => {
    const good = Buffer.from(JSON.stringify(submission(mint)))
    const bad = Buffer.concat([
      good.subarray(0, good.indexOf(SUMMARY)),
      Buffer.from([0xff, 0xfe]),
      good.subarray(good.indexOf(SUMMARY)),
    ])
    await expectRefused(bad, undefined, 'invalid_json')
  })

  it('can be 64 KiB long, and not one byte longer', async () => {
    const padded = (bytes: number) => {
      const body = JSON.stringify(submission(mint, { padding: '' }))
      return body.replace('"padding":""', `"padding":"${'x'.repeat(bytes - body.length)}"`)
    }
    expect(Buffer.byteLength(padded(65_536))).toBe(65_536)
    await expectAccepted(JSON.parse(padded(65_536)))
    await expectRefused(padded(65_537), undefined, 'payload_too_large')
  })

  it('requires the content type application/json', async () => {
    const before = await total()
    const refused = await send(submission(mint), { 'Content-Type': 'text/plain' })
    expectProblem(refused, 'unsupported_media_type')
    expect(await total()).toBe(before)
    expect((await send(submission(mint), { 'Content-Type': 'application/json; charset=utf-8' })).status).toBe(
      201,
    )
  })

  it('is refused for a malformed mint with a code of its own', async () => {
    for (const wrong of ['abc', `${mint}0`, mint.slice(8), mint.replace(/.$/, 'l'), '']) {
      await expectRefused(submission(wrong), '/mint', 'invalid_mint')
    }
  })

  it('can have unknown fields; enriched ones are dropped and listed, wherever they were', async () => {
    const enriched = { extra: 1, has_mint_authority: true, unique_wallet_24h: 5 }
    const snapshot = { ...enriched, snapshotAt: Date.now() }
    const answer = await send(submission(mint, { ...enriched, snapshot, quant: { ...quant, ...enriched } }))
    expect(answer.status).toBe(201)
    const names = ['has_mint_authority', 'unique_wallet_24h']
    expect(answer.body.ignored).toEqual(
      ['', 'snapshot.', 'quant.'].flatMap((at) => names.map((name) => at + name)),
    )
    expect(answer.body.enriched).toMatchObject({
      has_mint_authority: false,
      has_freeze_authority: null,
      unique_wallet_24h: 0,
    })
    expect(Object.keys(answer.body.enriched)).toHaveLength(9)
  })

  it('lists every fault at once, not only the first', async () => {
    const answer = await expectRefused({ mint })
    expect(answer.body.errors.map((fault: { pointer: string }) => fault.pointer)).toEqual([
      '/sentiment',
      '/score',
      '/summary',
      '/quant',
    ])
  })
})
