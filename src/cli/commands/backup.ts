// `backup`: a copy of the whole store, of a running server or of a stopped one. `restore`: a data folder from such a copy.
import { existsSync, realpathSync } from 'node:fs'
import { rm, rmdir } from 'node:fs/promises'
import { errorMessage } from '../../lib/error-text.ts'
import { makeFolderNow } from '../../lib/files.ts'
import { stagedBackupSchema } from '../../schema/api/admin.ts'
import { ServiceError } from '../../schema/errors.ts'
import {
  type BackupOptions,
  type FinishedCopy,
  isWithin,
  makeBackup,
  realPathOf,
  restoreBackup,
} from '../../store/backup/backup.ts'
import { lockFolder } from '../../store/data-folder/folder-lock.ts'
import { folderInfoPath, stagedCopyFolder, stagingFolder } from '../../store/paths.ts'
import { type Command, EXIT, Failure, requiredValue, UsageError, type Values } from '../command.ts'
import { counted, DATA_DIR, dataDirOf, FORMAT, storeLogTo, writeFound } from '../common.ts'
import { URL_OPTION } from '../server-client.ts'
import { Stop } from '../stop.ts'
import { askStoreOrServer, type StoreQuestion } from '../store-or-server.ts'
import type { Terminal } from '../terminal.ts'

const STAGED: StoreQuestion<typeof stagedBackupSchema> = {
  here: (store) => store.stageBackup(),
  path: '/api/v1/admin/backup',
  schema: stagedBackupSchema,
}

/** One backup of a data folder at a time. Returns what ends its turn. */
function takeTurn(dataDir: string): () => Promise<void> {
  const folder = stagingFolder(dataDir)
  makeFolderNow(folder)
  try {
    const { release } = lockFolder(folder)
    return async () => {
      release()
      // Left by root it would keep the server's user from the next backup. One that has begun meanwhile needs it.
      await rmdir(folder).catch(() => undefined)
    }
  } catch (error) {
    throw new Failure(`another backup of ${dataDir} is being made: ${errorMessage(error)}`)
  }
}

function resultText(copy: FinishedCopy, what: string): string {
  const { path, lsn, files, bytes, findings } = copy
  return [
    `${path}: ${what}, up to commit ${lsn}; ${counted(files, 'file')}, ${counted(bytes, 'byte')}; every file verified`,
    ...findings.map(
      ({ table, file, message }) => `missing in the original too: ${file ?? table}: ${message}`,
    ),
    '',
  ].join('\n')
}

async function finish(copy: FinishedCopy, what: string, values: Values, terminal: Terminal): Promise<number> {
  await writeFound(values, terminal, copy, resultText(copy, what))
  return copy.findings.length === 0 ? EXIT.done : EXIT.failed
}

function optionsOf(terminal: Terminal, stop: Stop): BackupOptions {
  return { nowMs: terminal.clock.now(), check: () => stop.check(), log: storeLogTo(terminal) }
}

async function backUp(values: Values, terminal: Terminal): Promise<number> {
  const asked = dataDirOf(values, terminal)
  if (!existsSync(folderInfoPath(asked)))
    throw new ServiceError('not_found', `there is no store in ${asked}: ${folderInfoPath(asked)} is missing`)
  const dataDir = realpathSync(asked)
  const out = realPathOf(requiredValue(values, 'out'))
  if (isWithin(out, dataDir))
    throw new UsageError(`--out: ${out} is in the data folder; name a folder elsewhere, best on another disk`)
  const stop = new Stop(terminal)
  const endTurn = takeTurn(dataDir)
  try {
    const copy = await stop.during(async () => {
      const question = { ...STAGED, signal: stop.signal }
      const staged = await askStoreOrServer(values, terminal, dataDir, question)
      return makeBackup(staged, out, optionsOf(terminal, stop))
    })
    return await finish(copy, 'a backup', values, terminal)
  } finally {
    await rm(stagedCopyFolder(dataDir), { recursive: true, force: true })
    await endTurn()
  }
}

export const backupCommand: Command = {
  name: 'backup',
  summary:
    'Copy the whole store (submissions, lake, agents, keys, limits) to a folder; the server may be running',
  options: {
    out: { value: 'FOLDER', isRequired: true, description: 'A new or empty folder' },
    format: FORMAT,
    'data-dir': DATA_DIR,
    url: URL_OPTION,
  },
  notes: [
    'All that was acknowledged before this began is in it. On the disk of the data folder the files of the lake are linked',
    'and cost nothing: copy the folder elsewhere, or name one on another disk, to have a backup of a lost disk. A running',
    'server is asked at --url, with MINTLAKE_ADMIN_KEY. Exit code 1: it could not be made, or the lake had lost files before.',
    'snapshots/ is not in it.',
  ],
  run: backUp,
}

export const restoreCommand: Command = {
  name: 'restore',
  summary: 'Check a backup, and make a data folder of it that a server can start on',
  options: {
    from: { value: 'FOLDER', isRequired: true, description: 'What mintlake backup has written' },
    format: FORMAT,
    'data-dir': { ...DATA_DIR, description: `A new or empty folder. ${DATA_DIR.description}` },
  },
  notes: [
    'Stream positions go on above those of the run that was lost, so that clients notice and read everything again. The',
    'backup stays as it is. An agent whose latest submissions are not in the backup may send them again.',
  ],
  async run(values, terminal) {
    const stop = new Stop(terminal)
    const copy = await stop.during(() =>
      restoreBackup(requiredValue(values, 'from'), dataDirOf(values, terminal), optionsOf(terminal, stop)),
    )
    return finish(copy, 'restored', values, terminal)
  },
}
