// A step of a run: somebody does something, and some time passes.

import type { Cast } from './actors/cast.ts'
import { checkAtRest } from './at-rest.ts'
import type { Faults } from './faults.ts'
import { drawsOf } from './machine/machine.ts'
import { count, type World } from './world.ts'

/** After so many steps everything is compared. */
const STEPS_TO_REST = 120

const WEIGHTS = { push: 10, agent: 10, follower: 5, reader: 6, operator: 1, wait: 2 }

export async function takeStep(world: World, cast: Cast, faults: Faults, step: number): Promise<void> {
  count(world, 'steps')
  // Of this step alone: what another one draws changes nothing.
  const draws = drawsOf(Math.imul(world.seed, 1_000_003) + step, 'step')
  await faults.act()
  cast.poll()
  cast.backups?.act()
  switch (draws.weighted(WEIGHTS)) {
    case 'push':
      if (world.feed === 'push') cast.feed.push()
      break
    case 'agent':
      cast.agents.act(cast.mints)
      break
    case 'follower':
      cast.followers.act()
      break
    case 'reader':
      cast.readers.act()
      break
    case 'operator':
      cast.operator.act()
      break
    case 'wait':
      await world.machine.pass(draws.between(1_000, 20_000))
  }
  await world.machine.pass(draws.chance(0.3) ? draws.between(0, 2) : draws.between(0, 900))
  if ((step + 1) % STEPS_TO_REST !== 0) return
  await faults.end()
  await checkAtRest(world, cast)
  faults.resume()
}
