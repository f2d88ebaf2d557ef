import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const root = new URL('..', import.meta.url)

const { FILES_WITH_TABLES, readmeTables, withTables } = (await import(
  new URL('scripts/readme-tables.mjs', root).href
)) as {
  FILES_WITH_TABLES: string[]
  readmeTables(): Record<string, string>
  withTables(text: string): string
}

it.each(FILES_WITH_TABLES)('the tables of %s equal the code', (file) => {
  const text = readFileSync(new URL(file, root), 'utf8')
  expect(text).toBe(withTables(text))
  expect(text).toContain('<!-- /')
})

it('every generated table is in one of them', () => {
  const text = FILES_WITH_TABLES.map((file) => readFileSync(new URL(file, root), 'utf8')).join('')
  for (const name of Object.keys(readmeTables())) expect(text.split(`<!-- ${name} -->`), name).toHaveLength(2)
})

it('each endpoint of the table says who may use it', () => {
  const rows = [...readmeTables().endpoints.matchAll(/^\| [A-Z]+ \| (.*?) \| (.*?) \|/gm)]
  expect(rows.length).toBeGreaterThan(40)
  expect(rows.filter(([, , access]) => access === '').map(([, path]) => path)).toEqual([])
})

it('the front page is short, and its links exist', () => {
  const text = readFileSync(new URL('README.md', root), 'utf8')
  expect(text.split('\n').length).toBeLessThanOrEqual(200)
  const links = [...text.matchAll(/\]\(([^)#:]+)\)/g)].map(([, link]) => link)
  expect(links.length).toBeGreaterThan(5)
  for (const link of links) expect(existsSync(new URL(link, root)), link).toBe(true)
})
