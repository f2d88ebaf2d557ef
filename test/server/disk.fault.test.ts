// The real program on small disks that fill up, again and again: submissions are refused, or the lake waits; reading goes
// on; and what was acknowledged, and nothing else, is in the lake afterwards.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { noSmallDisk, openSmallDisk, type SmallDisk } from '../support/disk/small-disk.ts'
import { expectProblem, seedToken, submission, submit } from '../support/submission.ts'
import {
  type Answer,
  type ServerProcess,
  type Settings,
  spawnServer,
  temporaryFolder,
} from '../support/test-server.ts'

const READER = `
  const [lake, duckdb] = process.argv.slice(1)
  const { DuckDBInstance } = await import(duckdb)
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  await connection.run(\`ATTACH '\${lake}/catalog.duckdb' AS lake (READ_ONLY)\`)
  const ids = async (relation) => (await connection.runAndReadAll(
    \`SELECT analysis_id FROM \${relation} ORDER BY 1\`)).getRows().flat()
  console.log(JSON.stringify({
    training: await ids('lake.training'),
    ledger: await ids('lake.xp_ledger'),
    files: await ids(\`read_parquet('\${lake}/training/*/*.parquet')\`),
  }))
`
const SETTINGS = {
  'submit-limits': 'rate=0,cooldown-ms=0',
  'lake-flush-ms': '50',
  'lake-tidy': 'every-ms=100,grace-ms=0',
}
const TOKENS = 8
/** Enough submissions to fill the rest of the disk. */
const SUBMISSIONS_MAX = 2_000
/** Trades that wait while a server stops. */
const WAITING_TRADES = 200

let folder: string
let disks: SmallDisk[]
let server: ServerProcess | null
let mints: string[]
let acknowledged: string[]
let key: string

beforeEach((context) => {
  context.skip(noSmallDisk !== null, noSmallDisk ?? '')
  folder = temporaryFolder()
  disks = []
  server = null
  mints = []
  acknowledged = []
})
afterEach(async () => {
  await server?.kill()
  for (const disk of disks.reverse()) await disk.remove()
  rmSync(folder, { recursive: true, force: true })
})

async function mountDisk(path: string, size: string): Promise<SmallDisk> {
  const disk = await openSmallDisk(path, size, disks[0])
  disks.push(disk)
  return disk
}

async function start(reserveMb: string, more: Settings = {}): Promise<ServerProcess> {
  const settings = { ...SETTINGS, ...more, 'disk-reserve-mb': reserveMb }
  server = await spawnServer(settings, folder, {}, disks[0].within)
  const { client } = server
  mints = await Promise.all(Array.from({ length: TOKENS }, () => seedToken(client, Date.now())))
  key = await client.register()
  return server
}

/** Submits several at once until one is refused or `count` were sent. Returns the last answer. */
async function send({ client }: ServerProcess, count: number): Promise<Answer> {
  let last: Answer | null = null
  for (let sent = 0; sent < count && (last === null || last.status === 201); sent += TOKENS) {
    const answers = await Promise.all(mints.map((mint) => submit(client, key, submission(mint))))
    for (const { status, body } of answers) if (status === 201) acknowledged.push(body.analysisId)
    last = answers.find(({ status }) => status !== 201) ?? answers[0]
  }
  return last!
}

const storeOf = async ({ client }: ServerProcess) => (await client.get('/health')).body.store
const backlogOf = async (asked: ServerProcess): Promise<number> =>
  (await storeOf(asked)).lake?.find(({ table }: { table: string }) => table === 'training').backlog ?? -1

/** Whether the server reports that the lake cannot be written. */
const isLakeRefused = async (asked: ServerProcess): Promise<boolean> =>
  (await storeOf(asked)).reasons.some((reason: string) => reason.startsWith('the lake could not be written'))

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Checks that reads work: the market, and submissions accepted before. */
async function expectReading({ client }: ServerProcess): Promise<void> {
  const paths = [
    '/api/v1/market?tab=live',
    `/api/v1/datapoint?mint=${mints[0]}`,
    `/api/v1/ohlc?mint=${mints[0]}`,
    `/api/v1/analysis/${acknowledged[0]}`,
    `/api/v1/analysis/${acknowledged.at(-1)}`,
    '/api/v1/analysis',
    '/readyz',
  ]
  const answers = await Promise.all(paths.map(async (path) => [path, (await client.get(path)).status]))
  expect(answers).toEqual(paths.map((path) => [path, 200]))
}

/** Stops the server and checks that the lake has each acknowledged submission once, and no other. */
async function expectWhole(running: ServerProcess): Promise<void> {
  expect(await running.terminate()).toBe(0)
  const lake = join(folder, 'lake')
  const found = await disks[0].run(process.execPath, [
    '--input-type=module',
    '-e',
    READER,
    lake,
    import.meta.resolve('@duckdb/node-api'),
  ])
  acknowledged.sort()
  expect(JSON.parse(found)).toEqual({ training: acknowledged, ledger: acknowledged, files: acknowledged })
}

/** Fills the disk until so many bytes are left, one filling after another; submissions stop, and go on once there is room. */
async function fillAndEmpty(reserveMb: string, fillings: readonly number[]): Promise<void> {
  const disk = await mountDisk(folder, '64m')
  const running = await start(reserveMb)
  expect((await send(running, 40)).status).toBe(201)
  for (const leftBytes of fillings) {
    disk.fill(leftBytes)
    const refused = await send(running, SUBMISSIONS_MAX)
    expectProblem(refused, 'store_unavailable')
    expect(refused.headers.get('retry-after')).toBe('1')
    await expectReading(running)
    // Periodic work on the lake fails too, but a flush can use the reserve, and so frees space.
    if (reserveMb === '0') await until(() => isLakeRefused(running))
    else await until(async () => (await backlogOf(running)) === 0)
    await send(running, 1)
    await expectReading(running)
    disk.fill(0)
    await send(running, SUBMISSIONS_MAX)
    // Periodic work may free some space meanwhile, so this waits until the disk is full again.
    await until(async () => (await send(running, 1)).status !== 201 && !(await storeOf(running)).healthy)
    disk.clear()
    await until(async () => (await send(running, 1)).status === 201)
    expect((await send(running, 10)).status).toBe(201)
    await until(async () => (await storeOf(running)).healthy)
  }
  await expectWhole(running)
}

it(
  'a disk filled to the last byte stops only submissions, and only while it is full',
  { timeout: 120_000, tags: 'drill' },
  () => fillAndEmpty('0', [60_000]),
)

it(
  'a disk filled up to the reserve stops only submissions, and only while it is full',
  { tags: 'drill', timeout: 120_000 },
  () => fillAndEmpty('24', [20_000_000]),
)

it('a server that starts on a full disk serves reads, refuses writes, and accepts them when there is room', {
  tags: 'drill',
  timeout: 120_000,
}, async () => {
  const disk = await mountDisk(folder, '64m')
  const first = await start('4')
  expect((await send(first, 16)).status).toBe(201)
  expect(await first.terminate()).toBe(0)
  disk.fill(0)
  const running = await spawnServer({ ...SETTINGS, 'disk-reserve-mb': '4' }, folder, {}, disks[0].within)
  server = running
  const { client } = running
  mints = await Promise.all(Array.from({ length: TOKENS }, () => seedToken(client, Date.now())))
  expect((await client.get(`/api/v1/analysis/${acknowledged[0]}`)).status).toBe(200)
  expectProblem(await submit(client, key, submission(mints[0])), 'store_unavailable')
  expect((await client.get('/health')).body.reasons).not.toEqual([])
  disk.clear()
  await until(async () => (await send(running, 1)).status === 201)
  await expectWhole(running)
})

it('a disk that is nearly full stops recording long before submissions, as a gap, and only while it is', {
  tags: 'drill',
}, async () => {
  const disk = await mountDisk(folder, '256m')
  const running = await start('4', { record: 'checkpoint-ms=200' })
  const { client } = running
  const recording = async () => (await client.get('/health')).body.recording
  const isLoss = (reason: string): boolean => /that could not be recorded: \d+; see gaps$/.test(reason)
  disk.fill(24_000_000)
  // What waits for the disk is bounded.
  let pushed = 0
  while ((await recording()).journal.lost === 0) {
    expect(pushed).toBeLessThan(400_000)
    const ts = Date.now()
    const trades = Array.from({ length: 4_000 }, (_, index) => ({
      ...{ type: 'trade', mint: mints[index % TOKENS], ts, side: 'buy', tokenAmount: 1, priceUsd: 1 },
      ...{ wallet: 'w'.repeat(44), tx: `${pushed + index}`.padStart(88, 't') },
    }))
    await client.push(...trades)
    pushed += trades.length
  }
  // A checkpoint that was being made while the disk became full says so in the words of the disk: the next attempt is not made.
  await until(
    async () =>
      (await recording()).reasons.filter((reason: string) => !isLoss(reason)).join() ===
      'market events are not recorded: the disk is nearly full,' +
        'no checkpoint of the market can be made: the disk is nearly full',
  )
  expect((await recording()).reasons.some(isLoss)).toBe(true)
  expect(running.lines.join('\n')).toContain('market events are being lost')
  expect((await send(running, TOKENS)).status).toBe(201)
  disk.clear()
  await until(async () => {
    const { body } = await client.get('/health')
    // What was lost stays told.
    return body.recording.reasons.every(isLoss) && body.gaps.recent.at(0)?.reason === 'lost'
  })
  await client.push({
    type: 'trade',
    mint: mints[0],
    ts: Date.now(),
    side: 'buy',
    tokenAmount: 1,
    priceUsd: 1,
  })
  await expectWhole(running)
})

it('events that wait for room on a nearly full disk are written by a stop, and nothing is lost', {
  tags: 'drill',
}, async () => {
  const disk = await mountDisk(folder, '64m')
  const stopped = await start('4')
  const { client } = stopped
  const journalOf = async () => (await client.get('/health')).body.recording.journal
  await until(async () => (await journalOf()).syncedEventNo === (await journalOf()).recorded)
  disk.fill(24_000_000)
  // The server has noticed once it makes nothing of what is pushed.
  await until(async () => {
    await client.push({ type: 'solPrice', ts: Date.now(), usd: 150 })
    return (await journalOf()).trouble === 'the disk is nearly full'
  })
  // More than what is left of the last page that the journal has.
  const trade = { type: 'trade', mint: mints[0], ts: Date.now(), side: 'buy', tokenAmount: 1, priceUsd: 1 }
  await client.push(...Array.from({ length: WAITING_TRADES }, () => trade))
  const { recorded, writtenEventNo } = await journalOf()
  expect(recorded - writtenEventNo).toBeGreaterThan(WAITING_TRADES)
  expect(await stopped.terminate()).toBe(0)
  disk.clear()
  expect(stopped.lines.join('\n')).not.toContain('market events of this run are not recorded')
  server = await spawnServer({ ...SETTINGS, 'disk-reserve-mb': '4' }, folder, {}, disks[0].within)
  const { body } = await server.client.get('/health')
  expect(body.recording).toMatchObject({ reasons: [], restored: { lost: 0 } })
  expect(body.recording.restored.events).toBeGreaterThanOrEqual(recorded - writtenEventNo)
  expect(body.gaps.recent.map(({ reason }: { reason: string }) => reason)).toEqual(['downtime'])
})
