// In: a question's file, a candidate's name, options (`node bench/candidate.ts FILE NAME JSON`). Out: one JSON line: what it
// did. A process of its own for each candidate and round, because designs in one process distort one another: what one
// makes the compiler assume, the next pays for.
import { pathToFileURL } from 'node:url'
import type { Question, RunOptions } from './frame.ts'

const [file, name, options] = process.argv.slice(2)
const { question } = (await import(pathToFileURL(file).href)) as { question: Question }
const measured = await question.candidates[name](JSON.parse(options) as RunOptions)
process.stdout.write(`${JSON.stringify(measured)}\n`, () => process.exit(0))
