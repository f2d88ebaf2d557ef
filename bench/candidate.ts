// node bench/candidate.ts FILE NAME JSON
// Runs one candidate of a question and prints one line of JSON: its result, or `{error}`. Each candidate and round has a
// process of its own, since what one makes the compiler assume slows down the next.
import { pathToFileURL } from 'node:url'
import type { Measured, Question, RunOptions } from './harness.ts'

// What it has started ends with it.
process.once('SIGTERM', () => process.exit(1))

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
