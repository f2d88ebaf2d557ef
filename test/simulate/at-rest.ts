// What must be so once faults have ended: everything heals within a stated time, and all that the server has agrees with what its
// clients were told, with its lake, and with a model that is computed anew from the list of events.

import type { RecordedEvent } from '../../src/journal/event-batch.ts'
import { DAY_MS, MINUTE_MS } from '../../src/lib/time.ts'
import type { Market } from '../../src/market/market.ts'
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../../src/schema/bar.ts'
import { SNAPSHOT_FIELDS } from '../../src/schema/datapoint.ts'
import { LOW_COVERAGE_COUNT, XP_MULTIPLIERS, XP_TABLE } from '../../src/schema/xp.ts'
import { Oracle } from '../market/oracle.ts'
import type { Agent, Attempt } from './actors/agents.ts'
import type { Cast } from './actors/cast.ts'
import { checkChain } from './chain/chain-at-rest.ts'
import type { LakeRow } from './lake/contents.ts'
import {
  checkLakeFiles,
  checkMerges,
  checkOutcomes,
  checkRetention,
  checkShownOutcomes,
  latestOutcomes,
} from './lake/lake-at-rest.ts'
import { checkRealLake } from './lake/real/at-rest.ts'
import { checkRecorded, type Missing, recordedEvents } from './recorded-at-rest.ts'
import { checkReplicas } from './replicas-at-rest.ts'
import type { Answer, SentRequest } from './server.ts'
import { operatorsPost } from './settings.ts'
import { checkSimulated, pricedInUsd, runsOf } from './simulator-at-rest.ts'
import { check, type World } from './world.ts'

/** Within this everything is well after the last fault has ended: the longest time limit, that of a flush, is two minutes. */
export const HEAL_MS = 180_000
const ANSWER_MS_MAX = 60_000
const NEW_WINDOW_MS = 86_400_000
/** What /health says may be so old. */
const HEALTH_AGE_MS = 2_000
/** How often a moment is looked for at which nothing has come for so long. */
const MOMENTS_MAX = 60
const MOMENT_MS = 130
/** A closed bar is handed to the store within this. */
const SWEPT_WITHIN_MS = 500
const COMPARED_TIMEFRAMES: readonly Timeframe[] = ['1s', '1m', '5m']
/** The lake has those of a minute and longer. */
const LAKE_TIMEFRAMES: readonly Timeframe[] = ['1m', '5m']
/** Sentences of /health that tell of losses and refusals: they stay after all is well. */
const TOLD =
  /could not be recorded|lost|are refused|is damaged|damaged part|records of|refused|^no row leaves the lake/

/** Those of a damaged log. */
const LOG_DAMAGED = /\blog\b/

// biome-ignore lint/suspicious/noExplicitAny: checks look into JSON freely
type Listed = any

export async function ask(world: World, request: SentRequest): Promise<Answer> {
  const { machine, server } = world
  for (let attempt = 0; attempt < 5; attempt++) {
    const sent = server.send(request)
    await machine.until(() => sent.answer !== null || sent.isLost, ANSWER_MS_MAX)
    if (sent.answer !== null && sent.answer.status !== 503) return sent.answer
    await machine.pass(1_000)
  }
  check(world, 'a server that is well answers', false, () => `${request.method} ${request.path}`)
  throw new Error('unreachable')
}

/** Compares everything. Faults have ended, and the server is up. */
export async function checkAtRest(world: World, cast: Cast): Promise<void> {
  const health = await untilHealed(world, cast)
  const closedByMs = world.server.app!.market.timeMs - SWEPT_WITHIN_MS
  await flush(world)
  // Labels that a flush makes are written by the next one.
  await flush(world)
  await tidy(world)
  checkMerges(world)
  await world.machine.pass(HEALTH_AGE_MS)
  const { body: told } = await ask(world, { method: 'GET', path: '/health' })
  if (world.hasDamagedLog) checkLogLosses(world, cast, told)
  else {
    const labelled = latestOutcomes(world)
    const lists = await listAll(world, cast)
    checkSubmissions(world, cast, lists)
    for (const { rows } of lists.values()) checkShownOutcomes(world, rows, labelled)
  }
  if (world.feed !== 'push') await catchUp(world)
  const events = recordedEvents(world)
  const isSimulated = world.feed === 'simulator'
  if (world.chain !== null) checkChain(world, cast, world.chain, events)
  const missing = isSimulated ? checkSimulated(world, cast, events) : checkRecorded(world, cast, events, told)
  // A simulated market begins anew with each run.
  const present = isSimulated ? (runsOf(events).at(-1) ?? []) : events
  let compareReader = (_market: Market): void => {}
  // The model knows no time that goes back, no token that is evicted, no gap that heals, and no event that only one of the market and the
  // lake has.
  const isModelled = !world.hadWrongClock && !cast.hasEvictions && !world.hasDamagedJournal
  if (isModelled && world.chain === null) {
    // It goes on without a disk that takes no events, and has told so.
    if ((health.recording.journal?.lost ?? 0) === 0) {
      checkMarket(world, present, world.server.app!.market)
      compareReader = (market) => checkMarket(world, events, market)
    }
    const lost = checkLakeBars(world, events, { present, missing, closedByMs })
    checkOutcomes(world, oracleOf(events), {
      closedByMs,
      // The last label counts minutes in which any token was traded.
      isTouched: (mint, fromMs, toMs) =>
        missing.some((each) => each.mint === mint && each.tsMs >= fromMs && each.tsMs < toMs) ||
        lost.some(
          ({ mint: of, tsMs }) =>
            (of === mint || toMs - fromMs >= DAY_MS) && tsMs >= fromMs - MINUTE_MS && tsMs < toMs,
        ),
    })
    // The lake may have the profile of an event that the market has lost since, which was told.
    if (missing.length === 0) checkProfiles(world)
  }
  if (world.cluster !== null) await checkReplicas(world, cast, world.cluster, compareReader)
  await checkFollowers(world, cast)
  checkFiles(world, cast)
  checkLakeFiles(world)
  checkRetention(world, told)
  await checkRealLake(world, events)
  cast.backups?.check()
}

async function untilHealed(world: World, cast: Cast): Promise<Listed> {
  const { machine } = world
  cast.agents.rest()
  // The clock is right again, which the operator says.
  if (world.hadWrongClock) await trustClock(world)
  const untilMs = machine.nowMs + HEAL_MS
  let told = 'the server is not up'
  while (machine.nowMs < untilMs) {
    cast.poll()
    await machine.pass(2_000)
    if (!world.server.isUp) continue
    const { body, text } = await ask(world, { method: 'GET', path: '/health' })
    told = text
    const wrong = body.reasons.filter((reason: string) => !TOLD.test(reason))
    const isDone = wrong.length === 0 && body.status !== 'warming_up' && !cast.isWaiting
    if (!isDone) continue
    check(world, 'everything heals in time', true, () => '')
    return body
  }
  check(world, 'everything heals in time', false, () => told.slice(0, 2_000))
}

async function trustClock(world: World): Promise<void> {
  const { status, text } = await ask(world, operatorsPost('/api/v1/admin/clock/trust'))
  check(world, 'an operator can confirm the clock', status === 200, () => text)
}

/** @returns the market's position of which the lake has everything by then */
export async function flush(world: World): Promise<number> {
  const { machine, server } = world
  let seq = 0
  for (let attempt = 0; attempt < 3; attempt++) {
    let state: 'running' | 'done' | string = 'running'
    const { app, life } = server
    machine.queue(() => {
      seq = app!.market.seq
      app!
        .recorded()
        .then(() => app!.store.flushLake())
        .then(
          () => (state = 'done'),
          (error) => (state = String(error)),
        )
    }, life!.process)
    await machine.until(() => state !== 'running', HEAL_MS)
    if (state === 'done') break
    if (attempt === 2) check(world, 'the lake can be written again', false, () => state)
  }
  check(world, 'the lake can be written again', true, () => '')
  return seq
}

/** A feed that nobody can stop goes on meanwhile: until a moment at which the lake has all that the market has. */
async function catchUp(world: World): Promise<void> {
  const { machine, server } = world
  for (let attempt = 0; attempt < MOMENTS_MAX; attempt++) {
    if ((await flush(world)) === server.app!.market.seq) return
    await machine.pass(MOMENT_MS)
  }
  check(world, 'the lake catches up with the market', false, () => `not once in ${MOMENTS_MAX} times`)
}

/** Small files are merged, and what is over its time leaves; sometimes on the operator's word. */
export async function tidy(world: World): Promise<void> {
  const { machine, server } = world
  const { app, life } = server
  let state: 'running' | 'done' | string = 'running'
  const isConfirmed = Math.floor(machine.nowMs) % 2 === 0
  machine.queue(
    () =>
      (isConfirmed ? app!.store.retireLake() : Promise.resolve())
        .then(() => app!.store.compactLake())
        .then(
          () => (state = 'done'),
          (error) => (state = String(error)),
        ),
    life!.process,
  )
  await machine.until(() => state !== 'running', HEAL_MS)
  check(world, 'the lake can be tidied up', state === 'done', () => state)
}

/** What each agent is shown of its own submissions, page by page, and its standing. */
async function listAll(world: World, cast: Cast): Promise<Map<Agent, { rows: Listed[]; standing: Listed }>> {
  const lists = new Map<Agent, { rows: Listed[]; standing: Listed }>()
  for (const agent of cast.agents.ready) {
    const rows: Listed[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = `agentId=me&limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`
      const { body } = await ask(world, { method: 'GET', path: '/api/v1/analysis', query, key: agent.key! })
      rows.push(...body.data)
      cursor = body.meta.nextCursor
    }
    const profile = await ask(world, { method: 'GET', path: '/api/v1/agent/profile', key: agent.key! })
    lists.set(agent, { rows, standing: profile.body.standing })
  }
  return lists
}

/** Of submissions that a damaged log has lost, /health tells. */
function checkLogLosses(world: World, cast: Cast, health: Listed): void {
  const byNumber = storedByNumber(world)
  const lost = cast.agents.attempts.filter(
    ({ fate, id }) => (fate === 'accepted' || fate === 'rejected') && !byNumber.has(id),
  )
  check(
    world,
    'what a damaged log has lost is told',
    lost.length === 0 ||
      world.mayForgetLosses ||
      health.reasons.some((reason: string) => LOG_DAMAGED.test(reason)),
    () => `numbers ${lost.map(({ id }) => id)} are lost; ${JSON.stringify(health.reasons)}`,
  )
}

const numberOf = (summary: unknown): number => Number(/^Number (\d+):/.exec(String(summary))?.[1])

/** Submissions in the lake, by the number in their text. */
function storedByNumber(world: World): Map<number, LakeRow[]> {
  const { lake } = world
  const stored = [...lake.rows('training'), ...lake.rows('rejections')]
  const ids = stored.map(({ row }) => row.analysis_id)
  check(world, 'the lake has a submission once', new Set(ids).size === ids.length, () => 'an identity twice')
  return Map.groupBy(stored, ({ row }) => numberOf(row.summary))
}

function checkSubmissions(
  world: World,
  cast: Cast,
  lists: Map<Agent, { rows: Listed[]; standing: Listed }>,
): void {
  const byNumber = storedByNumber(world)
  const stored = [...byNumber.values()].flat()
  const left = new Set(world.lake.files.removed.flatMap(({ file }) => file.content.map(({ row }) => row)))
  for (const attempt of cast.agents.attempts) checkAttempt(world, attempt, byNumber.get(attempt.id) ?? [])
  for (const [agent, { rows, standing }] of lists) {
    const own = stored.filter(({ row }) => row.agent_id === agent.agentId)
    const live = own.filter(({ row }) => !left.has(row))
    const listed = rows.map(({ analysisId }) => analysisId).sort()
    check(
      world,
      'an agent is shown what the lake has of it',
      listed.join() ===
        live
          .map(({ row }) => row.analysis_id)
          .sort()
          .join(),
      () => `${agent.name}: ${listed.length} listed, ${live.length} in the lake`,
    )
    checkShownXp(world, agent, rows)
    checkStanding(world, cast, agent, own, standing)
  }
  checkBonuses(world)
}

function checkAttempt(world: World, attempt: Attempt, rows: readonly LakeRow[]): void {
  const { fate, id, analysisId, xp } = attempt
  const isStored = fate === 'accepted' || fate === 'rejected'
  const stored = rows.filter(({ row }) => !attempt.forgottenIds.includes(String(row.analysis_id)))
  const isRight = isStored ? stored.length === 1 : fate === 'unknown' ? rows.length <= 1 : rows.length === 0
  check(
    world,
    'what was acknowledged is stored once, and what was refused is not',
    isRight,
    () => `number ${id} (${fate}): ${rows.length} rows`,
  )
  if (fate !== 'accepted') return
  const entries = world.lake.rows('xp_ledger').filter(({ row }) => row.analysis_id === analysisId)
  check(
    world,
    'the lake has what was acknowledged',
    stored[0].row.analysis_id === analysisId && entries.length === 1 && entries[0].row.xp === xp,
    () => `number ${id}: ${analysisId} with ${xp} XP, ${JSON.stringify(entries.map(({ row }) => row))}`,
  )
}

/** A list shows what each submission earned: of a rejected one nothing. */
function checkShownXp(world: World, agent: Agent, rows: readonly Listed[]): void {
  const ledger = world.lake.rows('xp_ledger')
  const earned = new Map(ledger.map(({ row }) => [row.analysis_id, row.xp]))
  for (const { analysisId, xpEarned: xp } of rows)
    check(
      world,
      'a list shows what a submission earned',
      xp === (earned.get(analysisId) ?? 0),
      () => `${agent.name}, ${analysisId}: ${xp} shown, ${earned.get(analysisId)} in the ledger`,
    )
}

function checkStanding(
  world: World,
  cast: Cast,
  agent: Agent,
  own: readonly LakeRow[],
  standing: Listed,
): void {
  const ledger = world.lake.rows('xp_ledger').filter(({ row }) => row.agent_id === agent.agentId)
  const xp = ledger.reduce((sum, { row }) => sum + Number(row.xp), 0)
  const outcome = (name: string): number =>
    own.filter(({ row }) => (row.outcome ?? 'rejected') === name).length
  const total = world.lake.state!.agentTotals.get(agent.agentId!)?.xp ?? 0
  check(
    world,
    'ledger, totals and standing agree',
    standing.xp === xp &&
      total === xp &&
      standing.validated === outcome('validated') &&
      standing.unvalidated === outcome('unvalidated') &&
      standing.rejected === outcome('rejected'),
    () => `${agent.name}: ${JSON.stringify(standing)}, ledger ${xp}, total ${total}`,
  )
  for (const award of cast.operator.awards.filter(({ agentId }) => agentId === agent.agentId)) {
    const found = ledger.filter(({ row }) => row.note === award.note).length
    const isRight =
      award.state === 'unknown' ? found <= 1 : found === (award.state === 'acknowledged' ? 1 : 0)
    check(world, 'an award counts once', isRight, () => `${award.note} (${award.state}): ${found} entries`)
  }
}

/** By the order in which submissions became durable, each has earned what the rule says. */
function checkBonuses(world: World): void {
  const { lake } = world
  const earned = new Map(lake.rows('xp_ledger').map(({ row }) => [row.analysis_id, Number(row.xp)]))
  const accepted = new Map<unknown, number>()
  const { base, firstBonus, lowCoverageBonus } = XP_TABLE.analysis
  for (const { row } of lake.rows('training').toSorted((a, b) => a.lsn - b.lsn)) {
    const before = accepted.get(row.mint) ?? 0
    accepted.set(row.mint, before + 1)
    const bonus = (before === 0 ? firstBonus : 0) + (before < LOW_COVERAGE_COUNT ? lowCoverageBonus : 0)
    const { multiplier } = XP_MULTIPLIERS[row.outcome as 'validated' | 'unvalidated']
    const expected = (base + bonus) * multiplier
    const xp = earned.get(row.analysis_id)
    check(
      world,
      'XP follows the rule',
      xp === expected,
      () => `${row.analysis_id}: ${xp}, by the rule ${expected}`,
    )
  }
  for (const [mint, count] of accepted) {
    const shown = world.server.app!.market.item(String(mint))?.analysis_count
    check(
      world,
      'the list shows how many analyses a token has',
      shown === undefined || shown === count,
      () => `${mint}: ${shown} shown, ${count} accepted`,
    )
  }
}

const isClose = (a: number | null, b: number | null): boolean =>
  a === b || (a !== null && b !== null && Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b)))

/** A market is the one that the recorded events make. */
function checkMarket(world: World, events: readonly RecordedEvent[], market: Market): void {
  const oracle = oracleOf(events)
  for (const mint of oracle.mints()) {
    const [shown, expected] = [market.snapshot(mint), oracle.snapshot(mint, market.timeMs)]
    check(
      world,
      'a DataPoint is that of the recorded events',
      shown !== null &&
        expected !== null &&
        SNAPSHOT_FIELDS.every((field) => isClose(shown[field], expected[field])),
      () => `${mint}: ${JSON.stringify(shown)}, by the model ${JSON.stringify(expected)}`,
    )
    for (const tf of COMPARED_TIMEFRAMES) {
      const query = { mint, tf, limit: 1_000, fromMs: null, toMs: null, fill: 'none' } as const
      const bars = market.bars(query)?.bars ?? []
      const model = oracle.bars(mint, tf, market.timeMs).slice(-bars.length || undefined)
      const isEqual = bars.every((bar, index) => {
        const { o, h, l, c, n, t, v, closed } = model[index]
        return (
          bar.t === t &&
          bar.o === o &&
          bar.h === h &&
          bar.l === l &&
          bar.c === c &&
          bar.n === n &&
          isClose(bar.v, v) &&
          bar.closed === closed
        )
      })
      check(
        world,
        'bars are those of the recorded events',
        isEqual,
        () =>
          `${mint} ${tf}: ${JSON.stringify(bars.slice(-4))}, by the model ${JSON.stringify(model.slice(-4))}`,
      )
    }
  }
}

/** The lake's latest version of each profile is the market's. */
function checkProfiles(world: World): void {
  const { app } = world.server
  const latest = new Map(world.lake.profiles.map((row) => [row.mint, row]))
  for (const mint of app!.market.mints()) {
    const profile = app!.market.profile(mint)
    if (profile === null || profile.name === mint) continue
    check(
      world,
      'the lake has the latest profile of each token',
      latest.get(mint)?.name === profile.name,
      () => `${mint}: ${JSON.stringify(latest.get(mint))}, in the market ${profile.name}`,
    )
  }
}

function oracleOf(events: readonly RecordedEvent[]): Oracle {
  const oracle = new Oracle(NEW_WINDOW_MS)
  for (const { event, atMs } of pricedInUsd(events)) oracle.log.push({ event, atMs })
  return oracle
}

/**
 * The lake has every bar of the recorded events that was closed by then, and no other, but where events are missing that were told.
 * @param present events of the present market: of one that has ended with its run the bars that were not in a file by then are lost
 * @returns those that are
 */
function checkLakeBars(
  world: World,
  events: readonly RecordedEvent[],
  {
    present,
    missing,
    closedByMs,
  }: { present: readonly RecordedEvent[]; missing: readonly Missing[]; closedByMs: number },
): Missing[] {
  const { lake, server } = world
  const { market } = server.app!
  const oracle = oracleOf(events)
  const held = new Set(oracleOf(present).mints())
  const lost: Missing[] = []
  const expected = new Set<string>()
  const isTouched = (mint: string, t: number, lengthMs: number): boolean =>
    missing.some((each) => each.mint === mint && each.tsMs >= t && each.tsMs < t + lengthMs)
  for (const mint of oracle.mints()) {
    for (const tf of LAKE_TIMEFRAMES) {
      const lengthMs = TIMEFRAME_MS[tf]
      const due = new Set(oracle.bars(mint, tf, closedByMs).flatMap(({ closed, t }) => (closed ? [t] : [])))
      for (const bar of oracle.bars(mint, tf, market.timeMs)) {
        const key = `${mint} ${TIMEFRAMES.indexOf(tf)} ${bar.t}`
        expected.add(key)
        const found = lake.bars.get(key)
        if (found === undefined && !held.has(mint)) lost.push({ mint, tsMs: bar.t })
        if (isTouched(mint, bar.t, lengthMs)) continue
        if (found === undefined && !(held.has(mint) && due.has(bar.t))) continue
        const isEqual =
          found !== undefined &&
          found.o === bar.o &&
          found.h === bar.h &&
          found.l === bar.l &&
          found.c === bar.c &&
          found.n === bar.n &&
          isClose(found.v, bar.v)
        check(
          world,
          'the lake has the bars of the recorded trades',
          isEqual,
          () => `${key}: ${JSON.stringify(found)}, by the model ${JSON.stringify(bar)}`,
        )
      }
    }
  }
  // Of a run whose end has taken all that it recorded, bars may be there: their tokens are of no other.
  const hasLostRun = world.feed === 'simulator' && runsOf(events).length < server.lives
  const mints = new Set(oracle.mints())
  for (const [key, { mint, tf, t }] of lake.bars) {
    if (hasLostRun && !mints.has(mint)) continue
    const timeframe = TIMEFRAMES[tf]
    const isKnown = expected.has(key) || isTouched(mint, t, TIMEFRAME_MS[timeframe])
    check(
      world,
      'the lake has no bar that nobody traded',
      isKnown || !LAKE_TIMEFRAMES.includes(timeframe),
      () => key,
    )
  }
  return lost
}

/** Sums may differ in their last digits by the order in which they were added up. */
const isSameRow = (shown: Listed, row: Listed, mayHaveAged: boolean): boolean =>
  shown !== undefined &&
  Object.entries(row).every(([name, value]) => {
    if (typeof value !== 'number') return value === shown[name]
    return isClose(value, shown[name]) || (mayHaveAged && hasAged(name, value, shown[name]))
  })

/** Time alone lowers the volume of a day, also one that is not known for trades without a price, and sends no row. */
const hasAged = (name: string, value: number, shown: number | null): boolean =>
  name === 'volume_24h_usd' && (shown === null || value < shown)

/** Every follower has the rows of the market at its position. */
async function checkFollowers(world: World, cast: Cast): Promise<void> {
  const { machine, server } = world
  const readAll = async (): Promise<void> => {
    for (let round = 0; round < 4; round++) {
      cast.followers.readAll()
      await machine.pass(500)
    }
  }
  await readAll()
  const request = { method: 'GET', path: '/api/v1/market', query: 'format=ndjson&limit=500' } as const
  let list = await ask(world, request)
  cast.followers.readAll()
  // A feed that nobody can stop goes on: until followers have what the list had, and nothing has come since.
  for (let attempt = 0; world.feed !== 'push' && attempt < MOMENTS_MAX; attempt++) {
    const { seq } = server.app!.market
    await machine.pass(MOMENT_MS)
    cast.followers.readAll()
    if (server.app!.market.seq === seq && Number(list.headers['x-list-version']) === seq) break
    list = await ask(world, request)
  }
  const lines = list.text.split('\n').filter((line) => line !== '')
  const rows = new Map(lines.map((line) => [JSON.parse(line).mint, line]))
  const mayHaveAged = machine.nowMs > DAY_MS || world.hadWrongClock || world.feed === 'simulator'
  for (const { name, rows: shown, isBeginning, stream } of cast.followers.all) {
    if (isBeginning || stream === null || stream.isEnded) continue
    for (const [mint, line] of rows)
      check(
        world,
        'every follower has the rows of the market',
        isSameRow(shown.get(mint), JSON.parse(line), mayHaveAged),
        () => `${name} has ${JSON.stringify(shown.get(mint))}, the list ${line}`,
      )
    check(
      world,
      'no follower has a row that the market has not',
      [...shown.keys()].every((mint) => rows.has(mint)),
      () => `${name} has ${shown.size} rows, the market ${rows.size}`,
    )
  }
}

/** What is in the lake does not stay in the log. */
function checkFiles(world: World, cast: Cast): void {
  const segments = [...world.files.names.keys()].filter((name) => name.includes('/data/log/'))
  check(world, 'the log keeps no more than it needs', segments.length <= 3, () => segments.join(', '))
  // A backup has copies of its own, until the next one is made.
  const checkpoints = [...world.files.names.keys()].filter((name) =>
    /\/data\/checkpoints\/.*\.checkpoint$/.test(name),
  )
  // One of each date is kept besides the newest ones.
  const { startMs, trueMs } = world.machine
  const dates = world.hadWrongClock ? 20 : Math.floor(trueMs / DAY_MS) - Math.floor(startMs / DAY_MS)
  // A stop writes one more, and a life removes them once it has made one itself.
  const stops = [...cast.ends.values()].filter(({ kind }) => kind === 'stop').length
  const isFew = checkpoints.length <= 6 + dates + stops
  check(world, 'old checkpoints are removed', isFew, () => checkpoints.join(', '))
}
