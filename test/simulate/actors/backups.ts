// The operator's backups, of a server under faults: each is finished, restored into another folder, and started from there. Of some a byte
// changes in that folder, which is repaired before. What was acknowledged before a backup began is in it once.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Row } from '../../../src/schema/tables.ts'
import type { RestoredStore } from '../lake/real/restore.ts'
import type { Draws } from '../machine/machine.ts'
import type { Answer } from '../server.ts'
import { operatorsPost } from '../settings.ts'
import { check, count, drawsFor, note, type World } from '../world.ts'
import type { Agents, Attempt } from './agents.ts'

/** How often a step begins a backup. */
const RATE = 0.02
const IS_FLIPPED = 0.5
/** Files that have rows of submissions, and of the ledger, which no other file has. */
const HAS_SUBMISSIONS = /^log\/|^lake\/\.files\/.*(training|rejections)/
const HAS_LEDGER = /^lake\/\.files\/.*xp_ledger/

type Real = NonNullable<World['real']>

export class Backups {
  readonly #world: World
  readonly #real: Real
  readonly #agents: Agents
  readonly #draws: Draws
  #isRunning = false
  #made = 0
  /** What went wrong while one was restored. */
  #failure: unknown = null

  constructor(world: World, real: Real, agents: Agents) {
    this.#world = world
    this.#real = real
    this.#agents = agents
    this.#draws = drawsFor(world, 'backups')
  }

  /** @throws Violation of a backup that was made since the last call */
  check(): void {
    if (this.#failure !== null) throw this.#failure
  }

  act(): void {
    this.check()
    const isDrawn = this.#draws.chance(RATE)
    if (!isDrawn || this.#isRunning || this.#hasDamage) return
    this.#isRunning = true
    count(this.#world, 'backups asked for')
    const known = new Set(this.#agents.attempts.filter(isAcknowledged))
    const request = operatorsPost('/api/v1/admin/backup')
    const sent = this.#world.server.send(request, (answer) => void this.#take(answer, known))
    // Nobody waits for one that the server took with it.
    const { machine } = this.#world
    const look = (): void => {
      if (sent.isLost) this.#isRunning = false
      else if (sent.answer === null) machine.after(1_000, look, machine.world)
    }
    look()
  }

  /** What is damaged before is not judged by its backup. */
  get #hasDamage(): boolean {
    return this.#world.hasDamagedLog || this.#world.hasDamagedJournal
  }

  async #take({ status, body }: Answer, known: ReadonlySet<Attempt>): Promise<void> {
    const world = this.#world
    note(world, 'backup', status)
    try {
      if (status === 200 && !this.#hasDamage) await world.machine.outside(this.#restore(body.data, known))
    } catch (error) {
      this.#failure = error
    }
    this.#isRunning = false
  }

  async #restore(staged: { path: string; lsn: number }, known: ReadonlySet<Attempt>): Promise<void> {
    const world = this.#world
    const { auditor, lake } = this.#real
    const draws = this.#draws
    const isFlipped = draws.chance(IS_FLIPPED)
    const flip = isFlipped ? { file: draws.next(), place: draws.next(), bit: draws.whole(0, 7) } : null
    const folder = lake.folderBeside(`backup-${++this.#made}`)
    mkdirSync(folder)
    try {
      lake.takeStaged(staged.path, join(folder, 'staged'))
      const asked = { kind: 'restore', folder, lsn: staged.lsn, nowMs: world.machine.wallMs, flip } as const
      const { restored } = await auditor.ask(asked)
      count(world, flip === null ? 'backups restored' : 'backups restored and repaired')
      note(world, 'restored', restored.flipped?.replace(/-?\d.*/, '') ?? null)
      this.#check(restored, known)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }

  #check({ rows, totals, told, flipped }: RestoredStore, known: ReadonlySet<Attempt>): void {
    const world = this.#world
    const stored = Map.groupBy([...rows.training, ...rows.rejections], numberOf)
    const left = new Set(
      world.lake.files.removed.flatMap(({ file }) => file.content.map(({ row }) => row?.analysis_id)),
    )
    // A loss has to be told; and a byte that is not of a file with such rows takes none of them.
    const mayLack = told.length > 0 && HAS_SUBMISSIONS.test(flipped ?? '')
    for (const attempt of this.#agents.attempts) {
      const found = stored.get(attempt.id) ?? []
      const isDue = known.has(attempt) && !mayLack && !left.has(attempt.analysisId)
      check(
        world,
        flipped === null
          ? 'a backup has once what was acknowledged before it began'
          : 'a repaired store has once what was acknowledged, or tells of its loss',
        found.length <= 1 &&
          (found.length === 1 || !isDue) &&
          (found.length === 0 || attempt.fate !== 'refused'),
        () =>
          `number ${attempt.id} (${attempt.fate}): ${found.length} rows; ${flipped} was damaged, told: ${told}`,
      )
    }
    if (told.length > 0 && HAS_LEDGER.test(flipped ?? '')) return
    const earned = new Map<unknown, number>()
    for (const { agent_id, xp } of rows.xp_ledger)
      earned.set(agent_id, (earned.get(agent_id) ?? 0) + Number(xp))
    const xpOf = new Map<unknown, number>(totals.map(({ agentId, xp }) => [agentId, xp]))
    for (const agentId of new Set([...earned.keys(), ...xpOf.keys()]))
      check(
        world,
        'of a restored store ledger and totals agree',
        (earned.get(agentId) ?? 0) === (xpOf.get(agentId) ?? 0),
        () =>
          `${agentId}: ledger ${earned.get(agentId)}, total ${xpOf.get(agentId)}; ${flipped} was damaged, told: ${told}`,
      )
  }
}

const isAcknowledged = ({ fate }: Attempt): boolean => fate === 'accepted' || fate === 'rejected'

const numberOf = ({ summary }: Row): number => Number(/^Number (\d+):/.exec(String(summary))?.[1])
