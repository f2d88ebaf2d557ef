// `lake repair`, on the folder itself or through the server that has it open. `lake retire`.
import { existsSync, realpathSync } from 'node:fs'
import { z } from 'zod'
import { lossSchema } from '../../schema/api/admin.ts'
import { ServiceError } from '../../schema/errors.ts'
import { lakeFolder } from '../../store/paths.ts'
import { openStore } from '../../store/store.ts'
import type { LakeRepair } from '../../store/types.ts'
import { type Command, EXIT, type Values } from '../command.ts'
import { counted, DATA_DIR, dataDirOf, isFolderInUse, storeLogTo } from '../common.ts'
import { REPAIR_TIMEOUT_MS } from '../limits.ts'
import { askAsOperator, URL_OPTION } from '../server-client.ts'
import { type Terminal, write } from '../terminal.ts'
import { FORMAT } from './lake.ts'

/** A repair, as the server describes it. */
const repairSchema = z.object({
  filesChecked: z.number(),
  restored: z.array(z.string()),
  lost: z.array(
    z.object({
      table: z.string(),
      date: z.string(),
      path: z.string(),
      reason: z.string(),
      rowsLost: z.number(),
      sinceMs: z.number(),
    }),
  ),
  eventsLost: z.number(),
  losses: z.array(lossSchema),
}) satisfies z.ZodType<LakeRepair>

const retiredSchema = z.object({ files: z.number() })

async function repairHere(dataDir: string, terminal: Terminal): Promise<LakeRepair> {
  const { clock } = terminal
  // Without a cooldown and a delay of labels: those that the server ran with are kept in the folder.
  const store = await openStore({ dataDir, lakeFlushMs: 0, clock, log: storeLogTo(terminal) })
  try {
    return await store.repairLake()
  } finally {
    await store.close()
  }
}

async function repair(values: Values, terminal: Terminal, dataDir: string): Promise<LakeRepair> {
  try {
    return await repairHere(dataDir, terminal)
  } catch (error) {
    if (!isFolderInUse(error)) throw error
    return askAsOperator(values, terminal, repairSchema, {
      method: 'POST',
      path: '/api/v1/admin/lake/repair',
      body: { dataDir },
      timeoutMs: REPAIR_TIMEOUT_MS,
    })
  }
}

/** A line for each thing that is lost, and their sum. */
export function lossLines({
  restored,
  lost,
  eventsLost,
  losses,
}: Omit<LakeRepair, 'filesChecked'>): string[] {
  const rows = lost.reduce((sum, file) => sum + file.rowsLost, 0)
  const sums = [
    ...(lost.length > 0 ? [`${counted(rows, 'row')} of ${counted(lost.length, 'file')}`] : []),
    ...(eventsLost > 0 ? [counted(eventsLost, 'recorded event')] : []),
    ...(losses.length > 0 ? ['what is told above'] : []),
  ]
  return [
    ...restored.map((path) => `${path}: whole again`),
    ...lost.map(({ path, reason, rowsLost }) => `${path}: ${reason}; ${counted(rowsLost, 'row')} lost`),
    ...losses.map(({ sentence }) => sentence),
    sums.length === 0 ? 'nothing is lost' : `lost: ${sums.join(', ')}`,
  ]
}

const repairText = ({ filesChecked, ...repaired }: LakeRepair, dataDir: string): string =>
  [
    `the lake in ${dataDir}: ${counted(filesChecked, 'file')} read to the end`,
    ...lossLines(repaired),
    '',
  ].join('\n')

async function run(values: Values, terminal: Terminal): Promise<number> {
  const asked = dataDirOf(values, terminal)
  if (!existsSync(lakeFolder(asked)))
    throw new ServiceError('not_found', `there is no lake in ${asked}: ${lakeFolder(asked)} is missing`)
  const dataDir = realpathSync(asked)
  const repaired = await repair(values, terminal, dataDir)
  const isJson = values.format === 'json'
  const text = isJson
    ? `${JSON.stringify({ dataDir, ...repaired }, null, 2)}\n`
    : repairText(repaired, dataDir)
  await write(terminal.stdout, text)
  return EXIT.done
}

export const lakeRepairCommand: Command = {
  name: 'lake repair',
  summary: 'Read every file of the lake, set damaged ones aside, restore intact ones, report what is lost',
  operands: [],
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
  operands: [],
  options: { url: URL_OPTION },
  notes: [
    'A server whose clock leapt forward, or that stood still for more than a day, deletes no old date before this is said.',
    'Needs MINTLAKE_ADMIN_KEY, as the server was started with it.',
  ],
  async run(values, terminal) {
    const question = { method: 'POST', path: '/api/v1/admin/lake/retire', body: {} } as const
    const { files } = await askAsOperator(values, terminal, retiredSchema, question)
    await write(terminal.stdout, `${counted(files, 'file')} left the lake\n`)
    return EXIT.done
  },
}
