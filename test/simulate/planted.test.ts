// Bugs to plant: the source still has the places where they go, and each is source text that can be loaded. That they are found is a drill.
import { stripTypeScriptTypes } from 'node:module'
import { expect, it } from 'vitest'
import { PLANTED, type PlantedName, plantedSource } from './planted.ts'

it.each(Object.keys(PLANTED) as PlantedName[])('%s can be planted', (name) => {
  expect(stripTypeScriptTypes(plantedSource(name))).not.toBe('')
})
