// `repair`: makes a data folder that no server can start on one that it can start on, and says what is lost.
import { realpathSync } from 'node:fs'
import { readConfig } from '../../config/config.ts'
import { type Config, SETTINGS } from '../../config/settings.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { type FolderRepair, repairFolder } from '../../store/repair-folder.ts'
import { type Command, Failure, type Values } from '../command.ts'
import {
  DATA_DIR,
  dataDirOf,
  FORMAT,
  isFolderInUse,
  requireWritable,
  storeLogTo,
  writeFound,
} from '../common.ts'
import type { Terminal } from '../terminal.ts'
import { repairLines } from './repair.ts'

/** What of the server's settings the state depends on. Others may be valid only with the flags of the server. */
function stateSettings({ env }: Terminal): Pick<Config, 'labelsDelayMs' | 'submitLimits'> {
  const names = [SETTINGS.labelsDelayMs.env, SETTINGS.submitLimits.env]
  return readConfig([], Object.fromEntries(names.map((name) => [name, env[name]])))
}

function folderOf(values: Values, terminal: Terminal): string {
  const asked = dataDirOf(values, terminal)
  try {
    return realpathSync(asked)
  } catch (error) {
    throw new Failure(`${asked} cannot be read: ${errorMessage(error)}`)
  }
}

function repairedText({ done, ...repaired }: FolderRepair, dataDir: string): string {
  const lines = repairLines(dataDir, repaired)
  const told =
    lines.length > 2
      ? '; it tells of the losses in /health until `mintlake lake repair` acknowledges them'
      : ''
  return [...done, ...lines, `a server can start${told}`, ''].join('\n')
}

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const dataDir = folderOf(values, terminal)
  requireWritable(dataDir)
  const { labelsDelayMs, submitLimits } = stateSettings(terminal)
  const { clock } = terminal
  const { cooldownMs } = submitLimits
  const options = { dataDir, lakeFlushMs: 0, labelsDelayMs, cooldownMs, clock, log: storeLogTo(terminal) }
  const repaired = await repairFolder(options).catch((error: unknown) => {
    if (!isFolderInUse(error)) throw error
    throw new Failure(
      `${errorMessage(error)}: stop it first; \`mintlake lake repair\` asks a running server for what it can do`,
    )
  })
  await writeFound(values, terminal, { dataDir, ...repaired }, repairedText(repaired, dataDir))
}

export const repairCommand: Command = {
  name: 'repair',
  summary: 'Make a damaged data folder one that a server can start on, and say what is lost',
  options: { format: FORMAT, 'data-dir': DATA_DIR },
  notes: [
    'No server may use the folder. What is damaged is kept beside its place (NAME.TIME.set-aside) and made anew: state.duckdb from',
    'the lake, the log and the copy of the accounts, store.json from what names the folder. Every file of the lake is read, and',
    'damaged ones are set aside. What is lost stays told in /health until `mintlake lake repair` acknowledges it. Nothing is deleted.',
  ],
  run,
}
