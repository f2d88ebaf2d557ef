// At the end of a run bytes of the live lake change under the server. That stops nothing. The operator puts some of the files back and has
// the lake repaired: what is lost then is what was told, to the row, and the server is well again, also after a restart.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { TableName } from '../../../../src/schema/tables.ts'
import type { LakeRepair } from '../../../../src/store/types.ts'
import type { Cast } from '../../actors/cast.ts'
import { ask, flush, tidy } from '../../at-rest.ts'
import type { Draws } from '../../machine/machine.ts'
import { recordedEvents } from '../../recorded-at-rest.ts'
import { operatorsPost } from '../../settings.ts'
import { check, count, drawsFor, note, type World } from '../../world.ts'
import { checkRealLake } from './at-rest.ts'
import { isSame } from './same.ts'

const FILES_MAX = 4
const IS_PUT_BACK = 0.4
/** What /health says may be so old. */
const HEALTH_AGE_MS = 3_000
const START_MS_MAX = 60_000
const SET_ASIDE = /^files of the lake that are lost or damaged: (\d+)/

export async function checkDamage(world: World, cast: Cast): Promise<void> {
  const { machine, real, server } = world
  if (real === null) return
  const folder = join(real.lake.dataDir, 'lake', '.files')
  const draws = drawsFor(world, 'damaged files')
  const damaged = damageFiles(folder, draws)
  for (const path of damaged.keys()) note(world, 'damaged', dirname(path))
  count(world, 'fault: flipped lake', damaged.size)
  await checkGoesOn(world, cast)
  const { eventsLost } = world.lake
  const first = await repair(world)
  const told = (): string => `${[...damaged.keys()]} were damaged, ${JSON.stringify(first)}`
  check(
    world,
    'a repair tells of damaged files alone',
    first.lost.every(({ path }) => damaged.has(path)),
    told,
  )
  check(world, 'a repair tells how many events are lost', first.eventsLost === eventsLost, told)
  const putBack = first.lost.filter(() => draws.chance(IS_PUT_BACK)).map(({ path }) => path)
  for (const path of putBack) writeFileSync(join(folder, path), damaged.get(path)!)
  const { restored, lost } = await repair(world)
  check(
    world,
    'a repair takes back what was put back, and tells of no loss twice',
    isSame(restored.toSorted(), putBack.toSorted()) && lost.length === 0,
    () => `${putBack} were put back, ${restored} are whole again; ${JSON.stringify(lost)}`,
  )
  count(world, 'files of the lake that are lost', first.lost.length - putBack.length)
  count(world, 'files of the lake that are whole again', putBack.length)
  const stayed = first.lost.filter(({ path }) => !putBack.includes(path))
  await checkRealLake(world, recordedEvents(world), rowsOf(stayed))
  await checkWell(world)
  server.crash()
  server.start()
  await machine.until(() => server.isUp && server.life?.app != null, START_MS_MAX)
  await checkGoesOn(world, cast)
  await checkWell(world)
}

async function repair(world: World): Promise<LakeRepair> {
  const { body, status, text } = await ask(world, operatorsPost('/api/v1/admin/lake/repair'))
  check(world, 'a lake with damaged files can be repaired', status === 200, () => text)
  return body.data
}

/**
 * Flips a bit of some files. A file that a merge has replaced may be among them: nobody reads it any more.
 * @returns what they had, by their paths below the folder
 */
function damageFiles(folder: string, draws: Draws): Map<string, Buffer> {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.parquet'))
    .map(({ name, parentPath }) => relative(folder, join(parentPath, name)))
    .sort()
  const chosen = new Set(Array.from({ length: draws.whole(1, FILES_MAX) }, () => draws.of(paths)))
  return new Map(
    [...chosen].map((path) => {
      const before = readFileSync(join(folder, path))
      const bytes = Buffer.from(before)
      bytes[draws.whole(0, bytes.length - 1)] ^= 1 << draws.whole(0, 7)
      writeFileSync(join(folder, path), bytes)
      return [path, before]
    }),
  )
}

/** The lake is written and tidied up, and lists are answered; what was found damaged is told. */
async function checkGoesOn(world: World, cast: Cast): Promise<void> {
  await flush(world)
  await tidy(world)
  for (const { key, name } of cast.agents.ready) {
    const request = { method: 'GET', path: '/api/v1/analysis', query: 'agentId=me', key: key! } as const
    const { status, text } = await ask(world, request)
    check(world, 'a damaged file stops no list', status === 200, () => `${name}: ${status} ${text}`)
  }
  await world.machine.pass(HEALTH_AGE_MS)
  const { body } = await ask(world, { method: 'GET', path: '/health' })
  const told = body.reasons.map((reason: string) => Number(SET_ASIDE.exec(reason)?.[1] ?? 0))
  check(
    world,
    'files that are set aside are told in /health',
    Math.max(0, ...told) === body.store.setAside.files,
    () => `${JSON.stringify(body.reasons)}; ${JSON.stringify(body.store.setAside)}`,
  )
}

function rowsOf(files: LakeRepair['lost']): Map<TableName, number> {
  const rows = new Map<TableName, number>()
  for (const { table, rowsLost } of files)
    rows.set(table as TableName, (rows.get(table as TableName) ?? 0) + rowsLost)
  return rows
}

async function checkWell(world: World): Promise<void> {
  await world.machine.pass(HEALTH_AGE_MS)
  const { body, text } = await ask(world, { method: 'GET', path: '/health' })
  const isWell = body.status === 'ready' || !body.reasons.some((reason: string) => /lake/.test(reason))
  check(world, 'a server is well once its losses are acknowledged', isWell, () => text.slice(0, 2_000))
}
