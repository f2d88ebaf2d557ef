// node scripts/cookbook.ts
// Runs every query of data/README.md on the frozen sample and updates its output there, and writes the queries as Python
// (data/cookbook.py). Tests fail when they differ.
import { readFileSync, writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { writeRows } from '../src/cli/rows.ts'
import type { LakeReader } from '../src/store/query/lake-reader.ts'
import { pythonCookbook } from './cookbook-python.ts'
import { openSample } from './sample/lake.ts'

/** A query and the text that follows it. */
const RECIPE = /```sql\n((?:(?!```)[\s\S])*)```\n\n```text\n((?:(?!```)[\s\S])*)```/g

export interface Recipe {
  /** The heading above it. */
  title: string
  sql: string
  output: string
}

/** All queries of the card that have an output. */
export function recipesOf(card: string): Recipe[] {
  return [...card.matchAll(RECIPE)].map(({ 1: sql, 2: output, index }) => ({
    title: /^#+ (.*)$/m.exec(card.slice(card.lastIndexOf('\n#', index) + 1))![1],
    sql,
    output,
  }))
}

/** The output of `mintlake sql`. */
export async function outputOf(reader: LakeReader, sql: string): Promise<string> {
  const out = new PassThrough()
  const printed = text(out)
  await writeRows(await reader.query(sql), 'table', out)
  out.end()
  return printed
}

/** Updates every output in the text of the card. */
export async function withOutputs(card: string, reader: LakeReader): Promise<string> {
  const outputs: string[] = []
  for (const { sql } of recipesOf(card)) outputs.push(await outputOf(reader, sql))
  return card.replace(RECIPE, (_, sql) => `\`\`\`sql\n${sql}\`\`\`\n\n\`\`\`text\n${outputs.shift()}\`\`\``)
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const path = new URL('../data/README.md', import.meta.url)
  const sample = await openSample()
  try {
    const card = await withOutputs(readFileSync(path, 'utf8'), sample.reader)
    writeFileSync(path, card)
    writeFileSync(new URL('../data/cookbook.py', import.meta.url), pythonCookbook(recipesOf(card)))
  } finally {
    await sample.close()
  }
}
