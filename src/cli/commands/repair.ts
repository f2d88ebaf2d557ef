// `lake repair`, on the folder itself or through the server that has it open. `lake retire`.
import { existsSync, realpathSync } from 'node:fs'
import { lakeRepairSchema, lakeRetiredSchema } from '../../schema/api/admin.ts'
import { ServiceError } from '../../schema/errors.ts'
import { folderInfoPath, lakeFolder } from '../../store/paths.ts'
import type { LakeRepair } from '../../store/types.ts'
import type { Command, Values } from '../command.ts'
import { counted, DATA_DIR, dataDirOf, FORMAT, writeFound } from '../common.ts'
import { askAsOperator, URL_OPTION } from '../server-client.ts'
import { askStoreOrServer, type StoreQuestion } from '../store-or-server.ts'
import { type Terminal, write } from '../terminal.ts'

const REPAIRED: StoreQuestion<typeof lakeRepairSchema> = {
  here: (store) => store.repairLake(),
  path: '/api/v1/admin/lake/repair',
  schema: lakeRepairSchema,
}

/** What was read, a line for each thing that is lost, and their sum. */
export function repairLines(
  dataDir: string,
  { filesChecked, restored, lost, eventsLost, losses }: LakeRepair,
): string[] {
  const rows = lost.reduce((sum, file) => sum + file.rowsLost, 0)
  const sums = [
    ...(lost.length > 0 ? [`${counted(rows, 'row')} of ${counted(lost.length, 'file')}`] : []),
    ...(eventsLost > 0 ? [counted(eventsLost, 'recorded event')] : []),
    ...(losses.length > 0 ? ['what is told above'] : []),
  ]
  return [
    `the lake in ${dataDir}: ${counted(filesChecked, 'file')} read to the end`,
    ...restored.map((path) => `${path}: whole again`),
    ...lost.map(({ path, reason, rowsLost }) => `${path}: ${reason}; ${counted(rowsLost, 'row')} lost`),
    ...losses.map(({ sentence }) => sentence),
    sums.length === 0 ? 'nothing is lost' : `lost: ${sums.join(', ')}`,
  ]
}

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const asked = dataDirOf(values, terminal)
  if (!existsSync(lakeFolder(asked)))
    throw new ServiceError('not_found', `there is no lake in ${asked}: ${lakeFolder(asked)} is missing`)
  // Else one would be made: a later backup, or a server, would take the copy for a whole data folder.
  if (!existsSync(folderInfoPath(asked)))
    throw new ServiceError(
      'not_found',
      `there is no store in ${asked}: ${folderInfoPath(asked)} is missing; of a lake alone mintlake lake catalog leaves out what is damaged, and mintlake repair mends a data folder`,
    )
  const dataDir = realpathSync(asked)
  const repaired = await askStoreOrServer(values, terminal, dataDir, REPAIRED)
  const text = `${repairLines(dataDir, repaired).join('\n')}\n`
  await writeFound(values, terminal, { dataDir, ...repaired }, text)
}

export const lakeRepairCommand: Command = {
  name: 'lake repair',
  summary: 'Read every file of the lake, set damaged ones aside, restore intact ones, report what is lost',
  options: { format: FORMAT, 'data-dir': DATA_DIR, url: URL_OPTION },
  notes: [
    'A file that is gone or damaged was set aside: put it back from a copy (to its place below lake/.files) before this, and',
    'it is taken back. What stays lost is told, and settled: this is how an operator acknowledges every loss that /health tells of,',
    'and `mintlake lake verify` names it as a note from then on. Where a server has the folder it is asked at --url, with',
    'MINTLAKE_ADMIN_KEY.',
  ],
  run,
}

export const lakeRetireCommand: Command = {
  name: 'lake retire',
  summary: 'Confirm that the clock is right, so that dates beyond --retain are removed from the lake',
  options: { url: URL_OPTION },
  notes: [
    'A server whose clock leapt forward, or that stood still for more than a day, deletes no old date before this is said.',
    'Needs MINTLAKE_ADMIN_KEY, as the server was started with it.',
  ],
  async run(values, terminal) {
    const question = { path: '/api/v1/admin/lake/retire', body: {} }
    const { files } = await askAsOperator(values, terminal, lakeRetiredSchema, question)
    await write(terminal.stdout, `${counted(files, 'file')} left the lake\n`)
  },
}
