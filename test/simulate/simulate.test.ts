// A run of the simulation with a cluster, and one that has to fail. Many seeds are a drill, and so is that all bugs to plant are found;
// that the source still has the places where they go, and each is source text that can be loaded, is looked at here.
import { stripTypeScriptTypes } from 'node:module'
import { expect, it } from 'vitest'
import { runSimulation } from '../support/simulation.ts'
import { PLANTED, type PlantedName, plantedSource } from './planted.ts'

it('a cluster loses its writer, a reader, NATS and its power, and nothing that was acknowledged', async () => {
  const { counts, failure } = JSON.parse((await runSimulation('86', '--steps', '150', '--json')).text)
  expect(failure).toBeNull()
  for (const happened of ['crash', 'cut', 'reader killed', 'bus killed'])
    expect(counts[`fault: ${happened}`], happened).toBeGreaterThan(0)
  expect(counts['answer: accepted']).toBeGreaterThan(10)
  expect(counts['checked: with one ETag all nodes send the same bytes']).toBeGreaterThan(10)
})

it('a bug that is planted is found', async () => {
  const { seed, steps, violates } = PLANTED['state-not-replayed']
  const { text } = await runSimulation(
    `${seed}`,
    '--steps',
    `${steps}`,
    '--plant',
    'state-not-replayed',
    '--json',
  )
  expect(JSON.parse(text).failure).toMatchObject({ seed, invariant: violates })
})

it.each(Object.keys(PLANTED) as PlantedName[])('%s can be planted', (name) => {
  expect(stripTypeScriptTypes(plantedSource(name))).not.toBe('')
})
