// @module-tag drill
// Programs of any kind on a backtest: what they get, how they end, and that the same programs get the same report.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { play } from '../../src/backtest/backtest.ts'
import type { Report } from '../../src/backtest/report/figures.ts'
import { backtest, reportOf } from '../../src/backtest/report/report.ts'
import { SUMMARY } from '../support/submission.ts'
import { folder, MINUTE_MS, optionsFor, recordLake, removeFolder, START_MS } from './support.ts'

const ROOT = new URL('../../', import.meta.url).pathname
const TO = new Date(START_MS + MINUTE_MS).toISOString()
let lake: string

beforeAll(async () => {
  lake = await recordLake(9)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules', 'mintlake'))
})
afterAll(removeFolder)

const has = (command: string): boolean => spawnSync(command, ['--version']).status === 0

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const QUANT = `{"riskLevel":"medium","riskFactors":["bonding_curve_risk"],"buyPressure":50,"volatilityScore":40,
  "liquidityDepth":"moderate","holderConcentration":"moderate","trendDirection":"up","volumeProfile":"rising"}`

/** Reads the hottest tokens, submits on those that it has not seen, and sleeps by the market's time. */
const CLIENT = `import { createClient, MintlakeError } from 'mintlake/client'
const mintlake = createClient({ baseUrl: process.env.MINTLAKE_URL, key: process.env.MINTLAKE_KEY, waitForLimits: true })
const done = new Set()
for (;;) {
  for (const { mint } of (await mintlake.market({ sort: 'hot', limit: 5 })).data) {
    if (done.has(mint)) continue
    done.add(mint)
    const { priceUsd, priceChange1h, snapshotAt } = await mintlake.datapoint(mint)
    const sentiment = priceChange1h > 0 ? 'bullish' : 'bearish'
    const snapshot = { priceUsd, snapshotAt }
    const { outcome } = await mintlake.submit({ mint, sentiment, score: 60, summary: '${SUMMARY}', snapshot, quant: ${QUANT} })
    console.log(mint, outcome)
  }
  await mintlake.sleep(5_000)
}
`

const node = (path: string): string[] => [
  process.execPath,
  '--no-warnings',
  '--conditions=mintlake-source',
  path,
]

/** All but what depends on the machine, and on the name of a file. */
const withoutRun = ({ run: _run, ...report }: Report) => report

/** A report of a run into which no request came where the program could not have been waited for, of a few. */
async function cleanReport(words: readonly string[]): Promise<Report> {
  for (let attempt = 1; ; attempt++) {
    const options = optionsFor(lake, {
      ...{
        programs: [words, words],
        to: TO,
        hasBaselines: true,
        silenceMs: 300 * attempt,
        marketStepMs: 5_000,
      },
      tailMarketMs: 7 * MINUTE_MS,
      env: process.env,
    })
    const { text } = await backtest(options)
    expect(text).toContain('no step was cut short')
    const report: Report = JSON.parse(readFileSync(join(options.outDir, 'report.json'), 'utf8'))
    const page = readFileSync(join(options.outDir, 'report.html'), 'utf8')
    expect(page).toContain('Too few submissions')
    expect(page).not.toMatch(/<script|<img|<link|@import|url\(/)
    expect(report.run).toMatchObject({ stepsCut: 0, steps: 12 })
    if (report.run.stepsMet === 0 || attempt === 4) return report
  }
}

test('the same programs get the same report, where no step was cut short', async () => {
  const words = node(write('agent.mjs', CLIENT))
  const reports = [await cleanReport(words), await cleanReport(words)]
  const [{ agents }] = reports
  expect(agents.map(({ name }) => name)).toEqual([
    'agent.mjs',
    'agent.mjs 2',
    'baseline: random',
    'baseline: last hour',
  ])
  expect(agents.map(({ validated }) => validated > 2)).toEqual([true, true, true, true])
  expect(withoutRun(reports[1])).toEqual(withoutRun(reports[0]))
}, 240_000)

/** Polls as shown in the first five minutes of README, by its own clock, as a shell can. */
const SHELL = `mints=$(curl -s "$MINTLAKE_URL/api/v1/market?limit=3&sort=hot&format=ndjson" | sed -E 's/.*"mint":"([^"]+)".*/\\1/')
for mint in $mints; do
  curl -s -D - "$MINTLAKE_URL/api/v1/analysis/submit" -H "Authorization: Bearer $MINTLAKE_KEY" -H 'Content-Type: application/json' \\
    -d '{"mint":"'$mint'","sentiment":"bullish","score":70,"summary":"${SUMMARY}","quant":${QUANT.replaceAll('\n', '')}}'
done
exit 3
`

/** Stamps its snapshots with its own clock, and waits for as long as it was told, by the market's time. */
const PYTHON = `import json, os, time, urllib.request, urllib.error
url, key = os.environ['MINTLAKE_URL'], os.environ['MINTLAKE_KEY']
def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'}
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers)) as answer:
        return json.load(answer), int(answer.headers['X-Market-Time'])
done = set()
while True:
    page, now = ask('/api/v1/market?limit=12&sort=hot')
    for row in page['data']:
        if row['mint'] in done: continue
        point, now = ask('/api/v1/datapoint?mint=' + row['mint'])
        stamp = int(time.time() * 1000)
        body = {'mint': row['mint'], 'sentiment': 'bearish', 'score': 30, 'summary': '${SUMMARY}', 'quant': json.loads('''${QUANT}'''),
            'snapshot': {'priceUsd': point['data']['priceUsd'], 'snapshotAt': stamp}}
        try:
            receipt, now = ask('/api/v1/analysis/submit', body)
            done.add(row['mint'])
            print(receipt['outcome'], flush=True)
        except urllib.error.HTTPError as error:
            now = int(error.headers['X-Market-Time']) + 1000 * int(error.headers.get('Retry-After', '1'))
            print(error.code, error.read().decode(), flush=True)
            while ask('/api/v1/time?until=%d' % now)[1] < now: pass
    now += 5000
    while ask('/api/v1/time?until=%d' % now)[1] < now: pass
`

test.runIf(has('python3') && has('curl'))(
  'a Python program and a shell script compete, each with a key of its own, and what they write is kept',
  async () => {
    const programs = [
      ['python3', write('bear.py', PYTHON)],
      ['sh', write('bull.sh', SHELL)],
    ]
    const options = optionsFor(lake, {
      programs,
      to: TO,
      silenceMs: 100,
      marketStepMs: 2_000,
      env: process.env,
    })
    const played = await play(options)
    const { agents } = await reportOf(played, 1)
    const logs = [1, 2].map((number) =>
      readFileSync(join(options.outDir, 'programs', `${number}.log`), 'utf8'),
    )
    expect(agents.map(({ name }) => name)).toEqual(['bear.py', 'bull.sh'])
    expect(agents[0].submissions, logs[0]).toBeGreaterThan(8)
    expect(agents[0].validated).toBe(agents[0].submissions)
    expect(agents[0].end).toMatchObject({ isEarly: false })
    expect(agents[1], logs[1]).toMatchObject({ validated: 3, end: { code: 3, isEarly: true } })
    expect(logs[1].toLowerCase()).toContain('x-market-time')
    expect(logs[0]).toContain('validated')
  },
)

test.runIf(has('python3') && has('curl'))(
  'programs wait for market time as the documentation shows',
  async () => {
    const text = readFileSync(join(ROOT, 'src/backtest/README.md'), 'utf8')
    const shown = (language: string, word: string): string =>
      [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))]
        .map(([, program = '']) => program)
        .find((program) => program.includes(word)) ?? ''
    const python = `import json, os, urllib.request\n${shown('python', 'def sleep')}\nbegan = market_time()\nsleep(60)\nprint(market_time() - began)`
    const shell = `${shown('sh', 'until=')}\necho over`
    const programs = [
      ['python3', write('waits.py', python)],
      ['sh', write('waits.sh', shell)],
    ]
    const options = optionsFor(lake, { programs, silenceMs: 50, marketStepMs: 2_000, env: process.env })
    const { competitors, toMs, stats } = await play(options)
    expect(competitors.map(({ end }) => end?.code)).toEqual([0, 0])
    expect(toMs - START_MS).toBeGreaterThanOrEqual(MINUTE_MS)
    expect(toMs - START_MS).toBeLessThan(3 * MINUTE_MS)
    expect(stats.stepsCut).toBe(0)
    const logs = [1, 2].map((number) =>
      readFileSync(join(options.outDir, 'programs', `${number}.log`), 'utf8'),
    )
    expect(Number(logs[0])).toBeGreaterThanOrEqual(MINUTE_MS)
    expect(logs[1]).toBe('over\n')
  },
)

test('a program that ends ends the backtest, one that cannot be started is told of, and the folder has to be empty', async () => {
  const short = optionsFor(lake, { programs: [node(write('nothing.mjs', ''))], env: process.env })
  const played = await play(short)
  expect(played.toMs).toBe(START_MS)
  expect(played.competitors[0].end).toMatchObject({ code: 0, isEarly: true })
  const registering = `const { MINTLAKE_URL: url, MINTLAKE_KEY: key } = process.env
const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer ' + key }
await fetch(url + '/api/v1/keys/register', { method: 'POST', headers, body: '{"name":"own"}' })
for (const body of ['{}', '{'])
  await fetch(url + '/api/v1/analysis/submit', { method: 'POST', headers, body })`
  const { competitors } = await play(
    optionsFor(lake, {
      programs: [node(write('own.mjs', registering))],
      hasBaselines: true,
      env: process.env,
    }),
  )
  expect(competitors[0]?.refused).toEqual({ invalid_json: 1, validation_failed: 1 })
  expect(competitors.map(({ name, isBaseline }) => [name, isBaseline])).toEqual([
    ['own.mjs', false],
    ['baseline: random', true],
    ['baseline: last hour', true],
    ['own', false],
  ])
  await expect(play(short)).rejects.toThrow('is not empty')
  await expect(play(optionsFor(lake, { programs: [['no-such-program']] }))).rejects.toThrow(
    'cannot be started',
  )
})

test('npm run backtest lets the agent of README compete with the baselines', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--no-warnings', join(ROOT, 'scripts/backtest.ts'), '--minutes', '8', '--out', join(folder, 'npm-run')],
    { encoding: 'utf8' },
  )
  expect(status, stderr).toBe(0)
  expect(stdout).toMatch(/^ *agent\.mjs( +\d+){4}/m)
  const { agents }: Report = JSON.parse(readFileSync(join(folder, 'npm-run', 'report.json'), 'utf8'))
  expect(agents.map(({ name }) => name)).toEqual(['agent.mjs', 'baseline: random', 'baseline: last hour'])
  expect(agents[0]?.validated).toBeGreaterThan(0)
})
