// In: the code's registries. Out: README.md with its tables made anew between their markers (`node scripts/readme-tables.mjs`).
// A test holds README equal to what this makes. Never touches the prose.
import { readFileSync, writeFileSync } from 'node:fs'
import * as analysis from '../src/analysis/limits.ts'
import { SETTINGS } from '../src/config.ts'
import * as feed from '../src/feed/limits.ts'
import * as http from '../src/http/limits.ts'
import { agentRoutes } from '../src/http/routes/agents.ts'
import { documentRoutes } from '../src/http/routes/documents.ts'
import { marketRoutes } from '../src/http/routes/market.ts'
import { operationRoutes } from '../src/http/routes/operation.ts'
import * as market from '../src/market/limits.ts'
import { ERRORS } from '../src/schema/errors.ts'
import { TABLES } from '../src/schema/tables.ts'
import * as store from '../src/store/limits.ts'

const row = (...cells) => `| ${cells.join(' | ')} |`
const table = (head, rows) =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n')
const code = (text) => (text === '' ? '' : `\`${text}\``)
const ACCESS = {
  open: 'open',
  read: 'open, counted',
  agent: 'agent key',
  feed: 'feed key',
  admin: 'admin key',
}

/** Every table of README, by the name of its marker. */
export function readmeTables() {
  const routes = [...marketRoutes({}), ...agentRoutes({}), ...operationRoutes({})]
  const limits = { http, analysis, market, feed, store }
  return {
    endpoints: table(
      ['Method', 'Path', 'Access', 'What it does'],
      [...routes, ...documentRoutes(routes)].map(({ method, path, access, summary }) => [
        method,
        code(path),
        ACCESS[access],
        summary,
      ]),
    ),
    errors: table(
      ['Status', 'Code', 'Meaning'],
      Object.entries(ERRORS).map(([name, { status, title }]) => [status, code(name), title]),
    ),
    settings: table(
      ['Flag', 'Environment', 'Default', 'Meaning'],
      Object.values(SETTINGS).map(({ flag, env, otherwise, description }) => [
        code(flag === null ? '' : `--${flag}`),
        code(env),
        code(otherwise),
        description,
      ]),
    ),
    limits: table(
      ['Room', 'Limit', 'Value'],
      Object.entries(limits).flatMap(([room, constants]) =>
        Object.entries(constants)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .filter(([, value]) => typeof value === 'number' || typeof value === 'string')
          .map(([name, value]) => [room, code(name), value]),
      ),
    ),
    lake: Object.values(TABLES)
      .filter(({ lakeDateColumn }) => lakeDateColumn !== null)
      .map(
        ({ name, comment, columns }) =>
          `**${name}**: ${comment}.\n\n${table(
            ['Column', 'Type', 'Null', 'Meaning'],
            columns.map((column) => [
              code(column.name),
              column.type,
              column.nullable ? 'yes' : 'no',
              column.comment,
            ]),
          )}`,
      )
      .join('\n\n'),
  }
}

/** The text with every marked table made anew. */
export function withTables(text) {
  return Object.entries(readmeTables()).reduce(
    (made, [name, content]) =>
      made.replace(
        new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- /${name} -->)`),
        (_, open, close) => `${open}${content}\n${close}`,
      ),
    text,
  )
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  for (const file of ['README.md', 'data/README.md'])
    writeFileSync(file, withTables(readFileSync(file, 'utf8')))
}
