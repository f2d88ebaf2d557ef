// npm run bench -- [--full] [--small] [--only NAME] [--json FILE] [--readme]
// Measures every question of bench/questions and prints one table; `--readme` updates the tables of the README files. Exits
// with 1 when a gate is missed or a candidate failed.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
// Programs start as those of `npm start` do.
import '../scripts/compile-cache.mjs'
import { errorMessage } from '../src/lib/error-text.ts'
import { NEEDS_NATS, type Question } from './harness.ts'
import { ask, type LoadedQuestion, type Row } from './runner.ts'
import { markdownTable, terminalTable } from './table.ts'

const QUESTIONS = new URL('questions/', import.meta.url)
const FRONT_README = new URL('../README.md', import.meta.url)
const BENCH_README = new URL('README.md', import.meta.url)
const TABLE_MARKERS = ['<!-- bench:begin -->', '<!-- bench:end -->'] as const
const HEADLINE_MARKERS = ['<!-- headlines:begin -->', '<!-- headlines:end -->'] as const
/** Rows that the front page shows: the most important ones, misses included. */
const HEADLINES = [
  'ticks → bars, dense | ccxt buildOHLCVC',
  'ticks → bars, dense | cascade in C',
  'default market, 100 rows, pushed in POSTs of 200 | same engine, one constant buffer',
  'DataPoint | fastify, DataPoint',
  'follow: CPU | node:http',
  'durable submissions over HTTP | better-sqlite3 behind HTTP, a commit each turn',
  'one caller: p50 beyond a plain request | ',
  'start with a tail of 30 000 submissions | ',
  'the lake: all five queries | a file for each flush',
  'everything at once: trades/s at which it still keeps up, everything else in proportion | fastify, Map, sorted-btree, better-sqlite3, ws',
]

/** Every question, by name. */
export async function loadQuestions(): Promise<LoadedQuestion[]> {
  const found = readdirSync(QUESTIONS, { recursive: true, encoding: 'utf8' })
  const names = found.filter((name) => name.endsWith('.bench.ts'))
  return Promise.all(
    names.sort().map(async (name) => {
      const file = fileURLToPath(new URL(name, QUESTIONS))
      const { question } = (await import(file)) as { question: Question }
      return { question, file }
    }),
  )
}

const machine = (): string => `${cpus()[0].model}, ${cpus().length} cores, Node ${process.versions.node}`

/** Splits a text at two markers. */
function between(text: string, [begin, end]: readonly [string, string]) {
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  return { before: text.slice(0, from), inside: text.slice(from, to), after: text.slice(to) }
}

/** Rows of a Markdown table, by title and peer. */
function tableRows(text: string): Map<string, string> {
  const lines = text.split('\n').filter((line) => line.startsWith('| '))
  return new Map(lines.slice(2).map((line) => [keyOf(line), line]))
}

const keyOf = (line: string): string => {
  const [, title, , , against] = line
    .split(' | ')
    .flatMap((cell, at) => (at === 0 ? ['', cell.slice(2)] : [cell]))
  return `${title} | ${against}`
}

/**
 * Replaces the measured rows in the full table, and the headlines on the front page. Rows not measured stay, and where most do, those
 * of another machine say so.
 */
function writeReadmes(rows: readonly Row[], questions: readonly LoadedQuestion[], isPart: boolean): void {
  const details = readFileSync(BENCH_README, 'utf8')
  const { before, inside, after } = between(details, TABLE_MARKERS)
  const isElsewhere = isPart && !inside.includes(`: ${machine()}.`)
  const told = isElsewhere
    ? rows.map((row) => ({ ...row, note: [row.note, machine()].filter(Boolean).join('; ') }))
    : rows
  const [heading, rule, ...measured] = markdownTable(told).split('\n')
  const known = tableRows(inside)
  for (const line of measured) known.set(keyOf(line), line)
  const order = questions.flatMap(({ question }) =>
    question.comparisons.map(({ title, against = '' }) => `${title} | ${against}`),
  )
  const lines = [...new Set(order)].flatMap((key) => known.get(key) ?? [])
  const date = new Date().toISOString().slice(0, 10)
  const intro = isElsewhere
    ? inside.trim().split('\n')[0]
    : `Last measured on ${date}: ${machine()}. A run of some questions replaces their rows alone.`
  writeFileSync(BENCH_README, `${before}\n${intro}\n\n${[heading, rule, ...lines].join('\n')}\n${after}`)
  const front = readFileSync(FRONT_README, 'utf8')
  const page = between(front, HEADLINE_MARKERS)
  const headlines = HEADLINES.flatMap((key) => known.get(key) ?? [])
  writeFileSync(FRONT_README, `${page.before}\n${[heading, rule, ...headlines].join('\n')}\n${page.after}`)
}

const USAGE = 'npm run bench -- [--full] [--small] [--only NAME] [--json FILE] [--readme]'

const readFlags = () =>
  parseArgs({
    options: {
      full: { type: 'boolean', default: false },
      small: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      json: { type: 'string' },
      readme: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values

/** Ends the program where the flags are wrong: a question that there is not would be an empty table, which looks like a result. */
function flagsFor(names: readonly string[]): ReturnType<typeof readFlags> {
  const usage = `${USAGE}\nNAME: ${names.join(', ')}`
  try {
    const values = readFlags()
    const unknown = values.only?.find((name) => !names.includes(name))
    if (unknown !== undefined) throw new Error(`--only: there is no question "${unknown}"`)
    if (!values.help) return values
    console.log(usage)
    process.exit(0)
  } catch (error) {
    console.error(`${errorMessage(error)}\n${usage}`)
    process.exit(2)
  }
}

async function main(): Promise<void> {
  const started = performance.now()
  const rows: Row[] = []
  const questions = await loadQuestions()
  const values = flagsFor(questions.map(({ question }) => question.name))
  for (const loaded of questions) {
    if (values.only && !values.only.includes(loaded.question.name)) continue
    rows.push(
      ...(await ask(loaded, { full: values.full, small: values.small }, (line) => {
        const seconds = Math.round((performance.now() - started) / 1_000)
        process.stderr.write(`\r\u001b[K${seconds} s  ${line}`)
      })),
    )
  }
  process.stderr.write('\r\u001b[K')
  console.log(`${machine()}\n\n${terminalTable(rows)}`)
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ machine: machine(), rows }, null, 2)}\n`)
  if (values.readme) writeReadmes(rows, questions, values.only !== undefined)
  const failed = rows.some(
    ({ met, note }) =>
      (met === 'not measured' && !note.includes(NEEDS_NATS)) || (met === 'no' && !values.small),
  )
  if (failed) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
