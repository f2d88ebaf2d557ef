// Real processes are killed or run out of disk space: each acknowledged row is stored exactly once afterwards.
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CRASH_POINTS, type CrashPoint } from '../../../src/store/process/crash-points.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { fewAndMany } from '../../support/cases.ts'
import { lakeGlob, NOON_MS, openTestStore, readSql, removeFolder, temporaryFolder } from '../support.ts'

const CHILD = fileURLToPath(new URL('./committer.child.ts', import.meta.url))

interface Child {
  process: ChildProcessByStdio<Writable, Readable, null>
  lines: string[]
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Resolves when `enough` holds of the lines so far; rejects when the child ends before. */
  until(enough: (lines: string[]) => boolean): Promise<void>
}

let folder: string
const children: Child[] = []

beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.process.kill('SIGKILL')
    await child.exited
  }
  removeFolder(folder)
})

function start(...args: string[]): Child {
  const process_ = spawn(process.execPath, [CHILD, folder, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines: string[] = []
  const watchers = new Set<() => void>()
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    process_.on('close', (code, signal) => resolve({ code, signal }))
  })
  createInterface({ input: process_.stdout }).on('line', (line) => {
    lines.push(line)
    for (const watcher of watchers) watcher()
  })
  const until = (enough: (lines: string[]) => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const watcher = (): void => {
        if (!enough(lines)) return
        watchers.delete(watcher)
        resolve()
      }
      watchers.add(watcher)
      watcher()
      void exited.then(() => reject(new Error(`the child ended after: ${lines.slice(-3).join(' | ')}`)))
    })
  const child = { process: process_, lines, exited, until }
  children.push(child)
  return child
}

const ids = async (table: string): Promise<string[]> =>
  (await readSql(`SELECT analysis_id AS id FROM ${lakeGlob(folder, table)} ORDER BY 1`)).map((row) =>
    String(row.id),
  )

const catalogIds = async (): Promise<string[]> =>
  (
    await readSql(
      'SELECT analysis_id AS id FROM lake.training ORDER BY 1',
      `ATTACH '${join(folder, 'lake', 'catalog.duckdb')}' AS lake (READ_ONLY)`,
    )
  ).map((row) => String(row.id))

/** Opens the store once more: every acknowledged id is in the lake once, and the ledger agrees with the examples, and the lake verifies. */
async function expectWhole(acknowledged: readonly string[]): Promise<void> {
  const store = await openTestStore(folder)
  try {
    const examples = await ids('training')
    expect(new Set(examples).size).toBe(examples.length)
    expect(acknowledged.filter((id) => !examples.includes(id))).toEqual([])
    expect(await ids('xp_ledger')).toEqual(examples)
    expect(await catalogIds()).toEqual(examples)
    const { xpTotals, coverage } = store.recovered
    expect(xpTotals.reduce((sum, { xp }) => sum + xp, 0)).toBe(examples.length * 17.5)
    expect(coverage.reduce((sum, { count }) => sum + count, 0)).toBe(examples.length)
    for (const { files, rows, backlog } of (await store.status()).lake) {
      expect({ backlog, whole: rows === 0 ? files === 0 : rows === examples.length }).toEqual({
        backlog: 0,
        whole: true,
      })
    }
  } finally {
    await store.close()
  }
  await expectVerified()
}

async function expectVerified(): Promise<void> {
  const { scope, findings } = await verifyLake({ dataDir: folder, nowMs: NOON_MS })
  expect({ scope, findings }).toEqual({ scope: 'whole', findings: [] })
}

const VICTIMS = ['server', 'lake process', 'both'] as const
const LINES_EACH = 400

/** The lake process of a server, by the kernel's list of its children. */
function lakeProcessOf(server: number): number {
  return Number(readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim().split(' ')[0])
}

async function killAmidLoad(victim: (typeof VICTIMS)[number]): Promise<void> {
  const child = start('storm')
  await child.until((lines) => lines.length >= LINES_EACH)
  const server = child.process.pid!
  const lakeProcess = lakeProcessOf(server)
  if (victim === 'lake process') {
    process.kill(lakeProcess, 'SIGKILL')
    // The server goes on meanwhile.
    await child.until((lines) => lines.length >= 2 * LINES_EACH)
  }
  if (victim === 'both') process.kill(lakeProcess, 'SIGKILL')
  child.process.kill('SIGKILL')
  await child.exited
}

// MINTLAKE_TEST_KILLS=200 is for an hour of nobody's time.
for (const { runs: kills, tags } of fewAndMany(1, 3, 'MINTLAKE_TEST_KILLS'))
  test(`killed again and again amid 200 callers and flushes, server, lake process or both, the store has each acknowledged row exactly once: ${kills} kills`, {
    tags,
    timeout: 60_000 + kills * 20_000,
  }, async () => {
    for (let kill = 0; kill < kills; kill++) await killAmidLoad(VICTIMS[kill % VICTIMS.length])
    const text = readFileSync(join(folder, 'acknowledged'), 'utf8')
    // The last line may have been cut off with its process.
    const acknowledged = text.slice(0, text.lastIndexOf('\n')).split('\n')
    expect(acknowledged.length).toBeGreaterThanOrEqual(kills * LINES_EACH)
    await expectWhole(acknowledged)
  })

test('while files come and go every few milliseconds, nothing of the lake is found wrong', {
  tags: 'drill',
  timeout: 60_000,
}, async () => {
  const child = start('storm')
  await child.until((lines) => lines.length >= LINES_EACH)
  expect(await verifyLake({ dataDir: folder, nowMs: NOON_MS, confirmMs: 500 })).toMatchObject({
    scope: 'files',
    findings: [],
  })
})

/** Crash points of one kind of work; those of outcomes have a test of their own. */
const pointsOf = (kind: string) => CRASH_POINTS.filter((point) => point.startsWith(`${kind}:`))

/** Processes that work on the folder one after the other, each dying at another point. @returns acknowledged ids. */
async function dieAtEach(mode: string, points: readonly CrashPoint[]): Promise<string[]> {
  const acknowledged: string[] = []
  for (const point of points) {
    const child = start(mode, point)
    expect(`${point} ${(await child.exited).signal}`).toBe(`${point} SIGKILL`)
    // One that dies while it recovers has acknowledged nothing of its own.
    acknowledged.push(...child.lines)
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(6)
  return acknowledged
}

describe('processes that die while they work on the lake lose nothing and double nothing', () => {
  // What one loses or doubles stays lost or doubled: so each recovers what the one before it left, and what the last one
  // left is looked through.
  test('at each point of a flush', { tags: 'drill', timeout: 120_000 }, async () =>
    expectWhole(await dieAtEach('flush', [...pointsOf('flush'), ...pointsOf('catalog')])),
  )

  test('at each point of a merge, and of the removal of what it replaced', {
    tags: 'drill',
    timeout: 180_000,
  }, async () => {
    // In an order in which each finds the work of the one before, so that there are small files to write but twice.
    const points: CrashPoint[] = [
      'merge:planned',
      'merge:copied',
      'merge:synced',
      'merge:published',
      'merge:listed',
      'expire:removed',
      'merge:linked',
      'expire:forgotten',
    ]
    expect(points.toSorted()).toEqual([...pointsOf('merge'), ...pointsOf('expire')].toSorted())
    await expectWhole(await dieAtEach('tidy', points))
  })

  test('at each point of retention: dates that left stay away, and nothing else does', {
    tags: 'drill',
    timeout: 30_000,
  }, async () => {
    const acknowledged = await dieAtEach('retain', pointsOf('retain'))
    const today = acknowledged.filter((_, i) => i % 3 === 0).sort()
    const store = await openTestStore(folder)
    try {
      expect(await catalogIds()).toEqual(today)
      expect(await ids('training')).toEqual(today)
      expect(await ids('xp_ledger')).toEqual(acknowledged.sort())
      expect(store.recovered.xpTotals).toMatchObject([{ analyses: acknowledged.length }])
    } finally {
      await store.close()
    }
    await expectVerified()
  })
})

test('a second server on the same folder is told who holds it', async () => {
  const child = start('demand')
  await child.until((lines) => lines.includes('ready'))
  const second = openTestStore(folder)
  await expect(second).rejects.toMatchObject({ code: 'unavailable' })
  await expect(second).rejects.toThrow(`is in use by another process (process ${child.process.pid})`)
}, 30_000)

function canLimitFiles(): boolean {
  try {
    execFileSync('prlimit', ['--version'])
    return true
  } catch {
    return false
  }
}

/** A limit on the size of files makes every write beyond it fail, as a full disk does. */
const limitFiles = (child: Child, bytes: number | 'unlimited'): void =>
  void execFileSync('prlimit', ['--pid', String(child.process.pid), `--fsize=${bytes}:`])

test.skipIf(!canLimitFiles())(
  'on a full disk commits are refused, and go on by themselves when there is room again',
  { tags: 'drill', timeout: 60_000 },
  async () => {
    const child = start('demand')
    let sent = 0
    const send = async (): Promise<string> => {
      const id = `an_${sent++}`
      child.process.stdin.write(`${id}\n`)
      await child.until((lines) => lines.some((line) => line === id || line.startsWith(`refused ${id} `)))
      return child.lines.at(-1)!
    }
    const sendUntil = async (wanted: (line: string) => boolean): Promise<string> => {
      const line = await send()
      return wanted(line) ? line : sendUntil(wanted)
    }
    await child.until((lines) => lines.includes('ready'))
    await send()
    // Less than the first line of a file of the log needs.
    limitFiles(child, 32)
    expect(await sendUntil((line) => line.startsWith('refused'))).toMatch(/ unavailable$/)
    expect(await send()).toMatch(/^refused .* unavailable$/)
    limitFiles(child, 'unlimited')
    await sendUntil((line) => !line.startsWith('refused'))
    await sendUntil((line) => !line.startsWith('refused'))
    child.process.stdin.end()
    expect((await child.exited).code).toBe(0)
    const acknowledged = child.lines.filter((line) => line.startsWith('an_'))
    await expectWhole(acknowledged)
    expect(await ids('training')).toEqual(acknowledged.sort())
  },
)

/** A commit that was refused because its end was not seen in time; its process died once another one was acknowledged. */
async function refusedUnseen(): Promise<{ words: string[]; stored: unknown }> {
  const child = start('unseen')
  await child.until((lines) => lines.some((line) => line.startsWith('refused')))
  child.process.kill('SIGKILL')
  await child.exited
  const words = child.lines.find((line) => line.startsWith('refused'))!.split(' ')
  const store = await openTestStore(folder)
  const stored = await store.analysis(words[1])
  await store.close()
  return { words, stored }
}

test('a refusal whose commit may be durable all the same says so', { tags: 'drill' }, async () => {
  const { words } = await refusedUnseen()
  expect(words.slice(2)).toEqual(['unavailable', 'true'])
})

test('a commit that was refused is not there after a kill, once a later one was acknowledged', {
  tags: 'drill',
}, async () => {
  const { stored } = await refusedUnseen()
  expect(stored).toBeNull()
})
