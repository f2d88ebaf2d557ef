// In: the command line (`npm run bench -- [--full] [--small] [--only NAME] [--json FILE] [--readme]`). Out: every question of
// bench/questions measured, one table at the end, the same as JSON and in README where asked. Ends with 1 when a gate
// does not hold or a candidate failed.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Question } from './frame.ts'
import { ask, type LoadedQuestion, type Row } from './runner.ts'
import { markdownTable, terminalTable } from './table.ts'

const QUESTIONS = new URL('questions/', import.meta.url)
const README = new URL('../README.md', import.meta.url)
const MARKERS = ['<!-- bench:begin -->', '<!-- bench:end -->'] as const

/** Every question, by name. */
export async function loadQuestions(): Promise<LoadedQuestion[]> {
  const names = readdirSync(QUESTIONS).filter((name) => name.endsWith('.bench.ts'))
  return Promise.all(
    names.sort().map(async (name) => {
      const file = fileURLToPath(new URL(name, QUESTIONS))
      const { question } = (await import(file)) as { question: Question }
      return { question, file }
    }),
  )
}

const machine = (): string => `${cpus()[0].model}, ${cpus().length} cores, Node ${process.versions.node}`

function writeReadme(rows: readonly Row[]): void {
  const text = readFileSync(README, 'utf8')
  const [begin, end] = MARKERS.map((marker) => text.indexOf(marker))
  const date = new Date().toISOString().slice(0, 10)
  const block = `${MARKERS[0]}\nMeasured on ${date}: ${machine()}.\n\n${markdownTable(rows)}\n`
  writeFileSync(README, text.slice(0, begin) + block + text.slice(end))
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      full: { type: 'boolean', default: false },
      small: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      json: { type: 'string' },
      readme: { type: 'boolean', default: false },
    },
  })
  const started = performance.now()
  const rows: Row[] = []
  for (const loaded of await loadQuestions()) {
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
  if (values.readme) writeReadme(rows)
  const failed = rows.some(({ met }) => met === 'not measured' || (met === 'no' && !values.small))
  if (failed) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
