// In: data/README.md and the frozen sample. Out: the card with the output of every recipe made anew
// (`node scripts/cookbook.ts`). A test holds the card equal to what this makes. Never touches prose or SQL.
import { readFileSync, writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { writeRows } from '../src/cli/rows.ts'
import type { LakeReader } from '../src/store/query/lake-reader.ts'
import { openSample } from './sample/lake.ts'

/** A query and the text that follows it. */
const RECIPE = /```sql\n((?:(?!```)[\s\S])*)```\n\n```text\n((?:(?!```)[\s\S])*)```/g

export interface Recipe {
  /** The heading it stands under. */
  title: string
  sql: string
  output: string
}

/** Every query of the card that shows its output. */
export function recipesOf(card: string): Recipe[] {
  return [...card.matchAll(RECIPE)].map(({ 1: sql, 2: output, index }) => ({
    title: /^#+ (.*)$/m.exec(card.slice(card.lastIndexOf('\n#', index) + 1))![1],
    sql,
    output,
  }))
}

/** What `mintlake sql` prints. */
export async function outputOf(reader: LakeReader, sql: string): Promise<string> {
  const out = new PassThrough()
  const printed = text(out)
  await writeRows(await reader.query(sql), 'table', out)
  out.end()
  return printed
}

/** The card with every output made anew. */
export async function withOutputs(card: string, reader: LakeReader): Promise<string> {
  const outputs: string[] = []
  for (const { sql } of recipesOf(card)) outputs.push(await outputOf(reader, sql))
  return card.replace(RECIPE, (_, sql) => `\`\`\`sql\n${sql}\`\`\`\n\n\`\`\`text\n${outputs.shift()}\`\`\``)
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const path = new URL('../data/README.md', import.meta.url)
  const sample = await openSample()
  try {
    writeFileSync(path, await withOutputs(readFileSync(path, 'utf8'), sample.reader))
  } finally {
    sample.close()
  }
}
