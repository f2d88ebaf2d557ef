// The table of the benchmark says what was not measured, and why. The small run of every question is a drill.
import { describe, expect, it } from 'vitest'
import { jsonOf, type Question } from '../bench/harness.ts'
import { ask, type Row } from '../bench/runner.ts'

describe('a question whose candidates do not all answer', () => {
  const FILE = new URL('support/broken.bench.ts', import.meta.url).pathname

  it('has a row for each comparison, and the row says what is wrong', async () => {
    const { question } = (await import(FILE)) as { question: Question }
    const rows = await ask({ question, file: FILE }, { small: false, full: false }, () => {})
    const said = (against: string): Row => rows.find((row) => row.against === against)!
    expect(said('a peer that agrees')).toMatchObject({ met: 'stretch', ratio: 2, ours: 20, theirs: 10 })
    expect(said('a peer that throws')).toMatchObject({
      met: 'not measured',
      note: 'a peer that throws: no such package; nothing was prepared',
    })
    expect(said('a peer that dies')).toMatchObject({ met: 'not measured', theirs: null })
    expect(said('a peer that computes something else')).toMatchObject({
      met: 'not measured',
      note: 'value 1 of the sample is 2, theirs 2.1; nothing was prepared',
    })
    expect(said('')).toMatchObject({ met: 'gate', ours: 20, ratio: null })
  })
})

it('a program that takes too long is ended, whether or not it hears that it shall end', async () => {
  const program = "process.on('SIGTERM', () => process.exit(1)); for (;;);"
  await expect(jsonOf(process.execPath, ['-e', program], 1_000)).rejects.toThrow('took longer than 1 s')
})
