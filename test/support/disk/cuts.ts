// Cuts a simulated disk at every operation of a script, as a kill or a power cut does: the crash suite of everything that stands on
// lib/segments.
import { random as seeded } from '../../../bench/datasets/random.ts'
import { LOSSES, type Loss, type SimulatedDisk } from './simulated-disk.ts'

export type Cut = 'killed' | Loss
const CUTS: readonly Cut[] = ['killed', ...LOSSES]

const oneOf = <T>(values: readonly T[], random: () => number): T =>
  values[Math.floor(random() * values.length)]
export const anyLoss = (random: () => number): Loss => oneOf(LOSSES, random)
export const anyCut = (random: () => number): Cut => oneOf(CUTS, random)

/** The disk as the next process finds it. */
export const diskAfter = (disk: SimulatedDisk, cut: Cut, random: () => number): SimulatedDisk =>
  cut === 'killed' ? disk.afterKill() : disk.afterPowerCut(cut, random)

/** Resolves when answers that were on their way at a cut are there. */
export async function quiet(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
}

export interface CutScript<World extends { readonly disk: SimulatedDisk }> {
  /** A process on a disk that was not cut yet. */
  begin(): World | Promise<World>
  /** What the process does. It may wait for ever once its disk is cut. */
  run(world: World): Promise<void>
  /** Restarts on what the cut has left, and checks what has to hold. */
  check(before: World, cut: Cut, random: () => number): Promise<void>
  /** How many kinds of loss are tried at each operation. */
  cutsEach?: number
  /** Only each so many-th operation is cut. */
  everyOperation?: number
}

/** @returns the process that ran the whole script */
export async function cutEverywhere<World extends { readonly disk: SimulatedDisk }>({
  begin,
  run,
  check,
  cutsEach = 1,
  everyOperation = 1,
}: CutScript<World>): Promise<World> {
  const whole = await begin()
  await run(whole)
  const { operations } = whole.disk
  for (let seed = 0; seed < operations * cutsEach; seed++) {
    const operation = Math.floor(seed / cutsEach)
    if (operation % everyOperation !== 0) continue
    const random = seeded(seed)
    const cut = CUTS[(operation + (seed % cutsEach)) % CUTS.length]
    const world = await begin()
    world.disk.cutAt(operation, random() < 0.5)
    try {
      await Promise.race([run(world), world.disk.whenCut])
      await quiet()
      await check(world, cut, random)
    } catch (cause) {
      throw new Error(`operation ${operation} of ${operations}, seed ${seed}, ${cut}`, { cause })
    }
  }
  return whole
}
