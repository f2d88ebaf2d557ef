// What keeps a server from starting and shows before anything is opened: a file that a setting names and that cannot be read, and a
// data folder that this version, or the kind of this market, cannot use.
import { accessSync, constants } from 'node:fs'
import type { Config } from '../config/settings.ts'
import { isReplayOfLake, provenanceOf } from '../ingest/feed-settings.ts'
import { errorMessage } from '../lib/error-text.ts'
import { checkFolderUse, type FolderInfo, readFolderInfo } from '../store/data-folder/folder-info.ts'
import { notFound } from '../store/errors.ts'

/** @throws StoreError that names the setting */
export function checkNamedFiles({ bus: { login }, replay, solana }: Config): void {
  const named = {
    '--replay file': replay.file,
    '--replay lake': replay.lake,
    '--solana-tape': solana.tapeFile,
    '--bus-login credentials': login.credentials,
    '--bus-login ca': login.ca,
    '--bus-login cert': login.cert,
    '--bus-login key': login.key,
  }
  for (const [flag, path] of Object.entries(named)) {
    try {
      if (path !== '') accessSync(path, constants.R_OK)
    } catch (error) {
      throw notFound(`${flag}: ${path} cannot be read: ${errorMessage(error)}`)
    }
  }
}

/** @returns null where the folder has no store yet @throws StoreError */
export function checkDataFolder(config: Config): FolderInfo | null {
  const { dataDir, replay, store } = config
  // Only the lake itself tells whether its market was simulated.
  if (isReplayOfLake(config)) return readFolderInfo(dataDir)
  const provenance = provenanceOf(config, replay.simulated)
  return checkFolderUse(dataDir, { provenance, isMixed: store.isMixed })
}
