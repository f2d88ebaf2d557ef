// What the log and the dead letters show to be lost, as entries of the list of losses.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { errorMessage } from '../lib/error-text.ts'
import { describeDamage, type SegmentDamage } from '../lib/segments/types.ts'
import type { FoundLoss, Losses } from './data-folder/losses.ts'
import { countDeadLetters } from './flush/dead-letters.ts'
import { DAMAGED_SUFFIX } from './log/segments/format.ts'
import { logFolder } from './paths.ts'
import type { StoreLog } from './types.ts'

/** Where the damaged part of the log is kept, below the data folder, once the lake has the rest of its segment. */
const keptFile = ({ file, kind }: SegmentDamage): string | null =>
  file === null ? null : join('log', kind === 'foreign_file' ? file : `${file}${DAMAGED_SUFFIX}`)

/** Adds to `known` what it does not have of `found`. @returns that */
export function addNew(known: SegmentDamage[], found: readonly SegmentDamage[]): SegmentDamage[] {
  const added = found.filter(
    ({ file, fromByte }) => !known.some((each) => each.file === file && each.fromByte === fromByte),
  )
  known.push(...added)
  return added
}

/** What a damaged part of the log is, as a sentence. */
export const describeLogDamage = (damage: SegmentDamage): string =>
  describeDamage(damage, { name: 'log', entries: 'commits' })

export function toLoss(damage: SegmentDamage): FoundLoss {
  const { file, missing } = damage
  const sentence = `${file === null ? '' : `${file}: `}${describeLogDamage(damage)}`
  const range = missing === null ? {} : { from: missing.from, to: missing.to }
  return { kind: 'log', sentence, ...range, file: keptFile(damage) }
}

/** Noting has failed, which keeps nothing from going on. */
export const tellNotNoted = (log: StoreLog, error: unknown): void =>
  log.error(
    { error: errorMessage(error) },
    'what was lost could not be read or noted (losses.json); a restart may forget it',
  )

/** Notes what a folder keeps of earlier losses, where it is not noted yet: earlier versions forgot it. */
export async function recordKept(losses: Losses, dataDir: string, nowMs: number): Promise<void> {
  for (const loss of [...findDamagedSegments(dataDir), ...findDeadLetters(dataDir)])
    if (!losses.names(loss)) await losses.record(loss, nowMs)
}

function findDamagedSegments(dataDir: string): FoundLoss[] {
  const names = readNames(logFolder(dataDir)).filter((name) => name.endsWith(DAMAGED_SUFFIX))
  return names.map((name) => ({
    kind: 'log',
    sentence: `${name} is a damaged part of the log; its undamaged records are in the lake`,
    file: join('log', name),
  }))
}

/** The rows that fit no table, as losses. */
const findDeadLetters = (dataDir: string): FoundLoss[] =>
  countDeadLetters(dataDir).map(({ name, table, rows }) => ({
    kind: 'dead_letters',
    sentence: `${rows} rows did not fit the table ${table} and are kept in dead-letters/${name}`,
    table,
    count: rows,
    file: join('dead-letters', name),
  }))

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
