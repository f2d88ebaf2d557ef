// A program of the real machine: reads and verifies lakes, and does with backups what an operator does.
import { sendToParent } from '../../../../src/lib/process/parent.ts'
import type { Finding } from '../../../../src/store/verify/findings.ts'
import { verifyLake } from '../../../../src/store/verify/verify.ts'
import { type ReadLake, readLake } from './read-lake.ts'
import { type RestoreAsked, type RestoredStore, restore } from './restore.ts'

export type Asked =
  | { kind: 'read'; dataDir: string }
  | { kind: 'verify'; dataDir: string; nowMs: number }
  | RestoreAsked
export type Answered =
  | { kind: 'read'; read: ReadLake }
  | { kind: 'verify'; findings: readonly Finding[] }
  | { kind: 'restore'; restored: RestoredStore }
  | { kind: 'failed'; error: string }

async function answer(asked: Asked): Promise<Answered> {
  try {
    if (asked.kind === 'restore') return { kind: 'restore', restored: await restore(asked) }
    const { dataDir } = asked
    if (asked.kind === 'read') return { kind: 'read', read: await readLake(dataDir) }
    const { findings } = await verifyLake({ dataDir, nowMs: asked.nowMs })
    return { kind: 'verify', findings }
  } catch (error) {
    return { kind: 'failed', error: String((error as Error).stack ?? error) }
  }
}

process.on('message', async (asked: Asked) => sendToParent(await answer(asked)))
process.once('disconnect', () => process.exit())
