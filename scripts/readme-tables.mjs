// node scripts/readme-tables.mjs
// Regenerates the tables between markers in the README files from the code. A test fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs'
import { SETTINGS_BY_PATH } from '../src/config/settings.ts'
import { streamsText } from '../src/http/docs/texts/streams.ts'
import { allRoutes } from '../src/http/routes/all-routes.ts'
import { ERRORS } from '../src/schema/errors.ts'
import { LABELLED } from '../src/schema/tables/labelled.ts'
import { TABLES } from '../src/schema/tables.ts'
import { XP_MULTIPLIERS } from '../src/schema/xp.ts'

const escaped = (cell) => `${cell ?? ''}`.replaceAll(/(?<!\\)\|/g, '\\|')
const row = (...cells) => `| ${cells.map(escaped).join(' | ')} |`
const table = (head, rows) =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n')
const code = (text) => (text === '' ? '' : `\`${text}\``)
const ACCESS = {
  open: 'open',
  read: 'open, counted',
  personal: 'personal, counted',
  agent: 'agent key',
  researcher: 'researcher key',
  feed: 'feed key',
  admin: 'admin key',
}

const columnsOf = (columns) =>
  table(
    ['Column', 'Type', 'Null', 'Meaning'],
    columns.map(({ name, type, nullable, comment }) => [code(name), type, nullable ? 'yes' : 'no', comment]),
  )

/** The view `labelled`: columns that it has from the tables under their own names are listed there. */
function labelledText() {
  const { name, comment, columns } = LABELLED
  const known = [TABLES.training, TABLES.outcomes].flatMap((of) => of.columns.map((column) => column.name))
  const own = columns.filter((column) => !known.includes(column.name))
  return (
    `### ${name}\n\nA view. ${comment}. All columns of \`training\`, then those of \`outcomes\` that it lacks; ` +
    `besides:\n\n${columnsOf(own)}`
  )
}

/** The tables of the lake. Columns that a table shares with another are listed once. */
function lakeTables() {
  const tables = Object.values(TABLES).filter(({ lakeDateColumn }) => lakeDateColumn !== null)
  const texts = tables.map(({ name, comment, lakeDateColumn, columns }) => {
    const base = tables.find(
      (other) => other.name !== name && other.columns.every((column) => columns.includes(column)),
    )
    const own = columns.filter((column) => base === undefined || !base.columns.includes(column))
    const shared =
      base === undefined ? '' : ` All columns of \`${base.name}\`, and \`schema_version\` last; besides:`
    return `### ${name}\n\n${comment}. By date of \`${lakeDateColumn}\`.${shared}\n\n${columnsOf(own)}`
  })
  return [...texts, labelledText()].join('\n\n')
}

/** Files with generated tables. */
export const FILES_WITH_TABLES = [
  'src/cli/README.md',
  'src/http/README.md',
  'src/http/stream/README.md',
  'data/README.md',
]

/** All generated tables by the name of their marker. */
export function readmeTables() {
  return {
    endpoints: table(
      ['Method', 'Path', 'Access', 'What it does'],
      allRoutes({})
        .filter(({ path }) => !/^\/(console|docs)\//.test(path))
        .map(({ method, path, access, summary }) => [method, code(path), ACCESS[access], summary]),
    ),
    errors: table(
      ['Status', 'Code', 'Meaning'],
      Object.entries(ERRORS).map(([name, { status, title }]) => [status, code(name), title]),
    ),
    settings: table(
      ['Flag', 'Environment', 'Default', 'Meaning'],
      Object.values(SETTINGS_BY_PATH).map(({ flag, env, defaultText, description }) => [
        code(flag === null ? '' : `--${flag}`),
        code(env),
        code(defaultText),
        description,
      ]),
    ),
    streams: streamsText('')
      .replace(/^# Streams\n+/, '')
      .trimEnd(),
    lake: lakeTables(),
    outcomes: table(
      ['Outcome', 'Largest deviation'],
      Object.entries(XP_MULTIPLIERS).map(([name, { deviationPctMax }]) => [
        code(name),
        deviationPctMax === null ? 'beyond' : `${deviationPctMax} %, inclusive`,
      ]),
    ),
  }
}

/** Replaces every marked table in a text. */
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
  for (const file of FILES_WITH_TABLES) writeFileSync(file, withTables(readFileSync(file, 'utf8')))
}
