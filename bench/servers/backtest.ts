// node bench/servers/backtest.ts DATA_DIR [agent]
// Plays the recorded market of a data folder to nobody, or to an agent that submits as often as it may, and prints one line of JSON: events a
// second, and the agent's submissions.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBacktest, play } from '../../src/backtest/backtest.ts'
import * as limits from '../../src/backtest/limits.ts'

const CLIENT = new URL('../../src/client/index.ts', import.meta.url).href
/** Each minute of the market ten submissions, by the market's time. */
const AGENT = `import { createClient } from '${CLIENT}'
const mintlake = createClient({ baseUrl: process.env.MINTLAKE_URL, key: process.env.MINTLAKE_KEY, waitForLimits: true })
const quant = { riskLevel: 'medium', riskFactors: ['bonding_curve_risk'], buyPressure: 50, volatilityScore: 40,
  liquidityDepth: 'moderate', holderConcentration: 'moderate', trendDirection: 'up', volumeProfile: 'rising' }
const summary = 'What somebody says of a token who has to say something of it, in more than fifty characters.'
for (;;) {
  for (const { mint } of (await mintlake.market({ sort: 'hot', limit: 10 })).data)
    await mintlake.submit({ mint, sentiment: 'bullish', score: 50, summary, quant })
  await mintlake.sleep(60_000)
}
`
const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-backtest-'))
const agent = join(folder, 'agent.mjs')
writeFileSync(agent, AGENT)
const options = {
  ...{ lake: process.argv[2], from: '', to: '', speed: 'max' as const, outDir: join(folder, 'out') },
  ...{
    programs: [[process.execPath, '--no-warnings', agent]],
    hasBaselines: false,
    env: process.env,
    seed: 1,
  },
  ...{ marketStepMs: limits.MARKET_STEP_MS_DEFAULT, silenceMs: limits.SILENCE_MS_DEFAULT },
  ...{ waitMsMax: limits.STEP_WAIT_MS_MAX_DEFAULT, tailMarketMs: 0 },
  signal: new AbortController().signal,
  say: () => {},
}

async function playToAgent() {
  const { competitors, events, stats } = await play(options)
  return { events, ms: stats.playedMs, programs: competitors.length, cut: stats.stepsCut }
}

async function playToNobody() {
  const { app, driver, span } = await openBacktest({ ...options, programs: [] })
  await app.ready
  await driver.stepTo(span.fromMs)
  await driver.runTo(span.toMs)
  const { events } = app.market.stats()
  await app.stop()
  return { events, ms: driver.stats.playedMs, programs: 0, cut: driver.stats.stepsCut }
}

try {
  const { events, ms, programs, cut } = await (process.argv[3] === 'agent' ? playToAgent() : playToNobody())
  console.log(JSON.stringify({ events, eventsPerSecond: (1_000 * events) / ms, programs, cut }))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
