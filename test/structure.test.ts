// The house's own rules, held over its source.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('..', import.meta.url).pathname
const SOURCE = join(ROOT, 'src')
const LINES_MAX = 700

/** What each room may import besides itself, `schema`, `lib` and packages. Files in `src` itself know every room. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  schema: [],
  lib: [],
  feed: [],
  market: [],
  analysis: [],
  store: [],
  cli: ['store', 'config.ts'],
  http: ['analysis', 'market/types.ts', 'store/types.ts', 'store/errors.ts'],
}
const OWN_ENGINE: Readonly<Record<string, string>> = { 'uWebSockets.js': 'http', '@duckdb/node-api': 'store' }

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(SOURCE, name), 'utf8') }))
const importsOf = (text: string): string[] =>
  [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1])
const roomOf = (name: string): string | null => (name.includes('/') ? name.split('/')[0] : null)

describe.each(files)('src/$name', ({ name, text }) => {
  it('opens with what comes in, what goes out and what it never does', () => {
    const header = text.split('\n\n')[0].split('\nimport')[0]
    expect(header).toMatch(/^\/\/ In: /)
    expect(header).toContain('Out: ')
  })

  it('imports only what its room may know', () => {
    const room = roomOf(name)
    for (const imported of importsOf(text)) {
      const owner = OWN_ENGINE[imported]
      if (owner !== undefined)
        expect(`${name} imports ${imported}: ${room}`).toBe(`${name} imports ${imported}: ${owner}`)
      if (!imported.startsWith('.') || room === null) continue
      const target = relative(SOURCE, join(SOURCE, name, '..', imported))
      const targetRoom = roomOf(target)
      if (
        targetRoom === room ||
        targetRoom === 'schema' ||
        targetRoom === 'lib' ||
        target === 'constants.ts'
      ) {
        if (room !== 'lib' && room !== 'schema') continue
        if (targetRoom === room || (room === 'schema' && targetRoom === 'lib')) continue
      }
      const allowed = (MAY_IMPORT[room] ?? []).some(
        (entry) => target === entry || target.startsWith(`${entry}/`),
      )
      expect(`${name} -> ${target}: ${allowed}`).toBe(`${name} -> ${target}: true`)
    }
  })

  it('parses foreign data by the guarded way alone', () => {
    if (name !== 'lib/safe-parse.ts') expect(text).not.toContain('.safeParse(')
  })

  it('is of a size and a name that people find their way by', () => {
    expect(basename(name)).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*\.ts$/)
    expect(text.split('\n').length).toBeLessThanOrEqual(LINES_MAX)
  })
})

it('the top level holds what it should and nothing else', () => {
  const allowed = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'LICENSE',
    'README.md',
    'src',
    'bench',
    'data',
    'test',
    'scripts',
    'node_modules',
  ]
  const found = readdirSync(ROOT).filter((name) => !name.startsWith('.'))
  expect(found.filter((name) => !allowed.includes(name))).toEqual([])
})
