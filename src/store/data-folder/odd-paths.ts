// Files that lie where a data folder has folders, and folders where it has files. A server does not start on them.
import { lstatSync, statSync } from 'node:fs'
import { howToRepair, invalid } from '../errors.ts'
import * as paths from '../paths.ts'
import type { FoundLoss } from './losses.ts'

/** What should be a folder, and what is lost where it is none; null: nothing. */
const FOLDERS: readonly (readonly [pathOf: (dataDir: string) => string, loss: FoundLoss | null])[] = [
  [
    paths.logFolder,
    { kind: 'log', sentence: 'log was no folder: commits that the lake did not have yet are lost' },
  ],
  [
    paths.journalFolder,
    {
      kind: 'journal',
      sentence: 'journal was no folder: recorded events that the lake did not have yet are lost',
    },
  ],
  [paths.checkpointFolder, null],
  [paths.lakeFolder, { kind: 'folder', sentence: 'lake was no folder: all of its files are lost' }],
  [paths.deadLetterFolder, { kind: 'folder', sentence: 'dead-letters was no folder: what it had is lost' }],
]
const FILES = [paths.statePath, paths.stateLogPath, paths.folderInfoPath, paths.positionsPath]

export interface OddPath {
  path: string
  /** Worded to follow the name of the path. */
  fault: string
  /** What is lost by it; null: nothing. */
  loss: FoundLoss | null
}

export function findOddPaths(dataDir: string): OddPath[] {
  const odd: OddPath[] = []
  for (const [pathOf, loss] of FOLDERS) {
    const path = pathOf(dataDir)
    // A link may lead to a folder on another disk.
    const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory()
    if (isThere && !isFolder) odd.push({ path, fault: 'is no folder', loss })
  }
  for (const pathOf of FILES) {
    const path = pathOf(dataDir)
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
      odd.push({ path, fault: 'is a folder', loss: null })
  }
  return odd
}

/** Throws `invalid` where there are any. */
export function checkPaths(dataDir: string): void {
  const [first] = findOddPaths(dataDir)
  if (first === undefined) return
  const { path, fault } = first
  throw invalid(`${path} ${fault}. ${howToRepair(dataDir)} moves it out of the way, and says what is lost`)
}
