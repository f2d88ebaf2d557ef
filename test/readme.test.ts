import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const root = new URL('..', import.meta.url)

it.each(['README.md', 'data/README.md'])('the tables of %s equal the code', async (file) => {
  const { withTables } = (await import(new URL('scripts/readme-tables.mjs', root).href)) as {
    withTables(text: string): string
  }
  const text = readFileSync(new URL(file, root), 'utf8')
  expect(text).toBe(withTables(text))
  expect(text).toContain('<!-- /')
})
