// In: a question's file, a candidate's name, options (`node bench/candidate.ts FILE NAME JSON`). Out: one JSON line: what it
// did, or `{error}`: why it could not. A process of its own for each candidate and round, because designs in one process distort one another: what one
// makes the compiler assume, the next pays for.
import { pathToFileURL } from 'node:url'
import type { Measured, Question, RunOptions } from './harness.ts'

const [file, name, options] = process.argv.slice(2)
const { question } = (await import(pathToFileURL(file).href)) as { question: Question }
const run = async (): Promise<Measured | { error: string }> => {
  try {
    return await question.candidates[name](JSON.parse(options) as RunOptions)
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}
process.stdout.write(`${JSON.stringify(await run())}\n`, () => process.exit(0))
