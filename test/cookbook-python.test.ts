// The cookbook in Python has the card's queries, and gives the card's answers where Python's duckdb is installed.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { recipesOf } from '../scripts/cookbook.ts'
import { pythonCookbook } from '../scripts/cookbook-python.ts'

const DATA = new URL('../data', import.meta.url).pathname
const PYTHON = process.env.PYTHON || 'python3'
const hasPython = spawnSync(PYTHON, ['--version']).status === 0
const hasDuckdb = hasPython && spawnSync(PYTHON, ['-c', 'import duckdb']).status === 0
const TIMEOUT_MS = 60_000

const recipes = recipesOf(readFileSync(join(DATA, 'README.md'), 'utf8'))

/** What a Python program prints as JSON. */
function python(program: string): unknown {
  const text = execFileSync(PYTHON, ['-B', '-c', program], {
    cwd: DATA,
    timeout: TIMEOUT_MS,
    encoding: 'utf8',
  })
  return JSON.parse(text)
}

describe('data/cookbook.py', () => {
  it('is what scripts/cookbook.ts makes of the card', () => {
    expect(readFileSync(join(DATA, 'cookbook.py'), 'utf8')).toBe(pythonCookbook(recipes))
  })

  it.skipIf(!hasPython)(
    'is Python, in which each query is that of the card (skipped without python3)',
    () => {
      const program = 'import cookbook, json; print(json.dumps(cookbook.RECIPES))'
      const expected = Object.fromEntries(recipes.map(({ title, sql }) => [title, `\n${sql}`]))
      expect(python(program)).toEqual(expected)
    },
  )

  it.skipIf(!hasDuckdb)(
    'gives as many rows and columns as the card for each (skipped without Python’s duckdb)',
    () => {
      const program = `
import cookbook, json
sample = cookbook.open_sample()
shapes = {}
for title in cookbook.RECIPES:
    result = cookbook.run(sample, title)
    names = [column[0] for column in result.description]
    shapes[title] = {"names": names, "rows": len(result.fetchall())}
print(json.dumps(shapes))`
      const shapes = recipes.map(({ title, output }) => {
        const names = (output.split('\n')[1] ?? '').split('│').slice(1, -1)
        const [, rows] = /(\d+) rows?\n$/.exec(output) ?? []
        return [title, { names: names.map((name) => name.trim()), rows: Number(rows) }]
      })
      expect(python(program)).toEqual(Object.fromEntries(shapes))
    },
    TIMEOUT_MS,
  )
})
