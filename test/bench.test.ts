// The small run of the benchmark: every question runs, and its table says what was measured. The figures are not checked,
// as they mean nothing on a machine that runs other tests at the same time.
import { describe, expect, it } from 'vitest'
import { NEEDS_NATS, type Question } from '../bench/harness.ts'
import { loadQuestions } from '../bench/run.ts'
import { ask, type Row } from '../bench/runner.ts'
import { markdownTable, terminalTable } from '../bench/table.ts'

/** The note of a row if the C programs cannot be compiled. */
const NO_COMPILER = 'cc ENOENT'
const questions = await loadQuestions()

describe.each(questions)('npm run bench -- --small --only $question.name', ({ question, file }) => {
  it('measures every candidate of the small run, and says against what', async () => {
    const progress: string[] = []
    const rows = await ask({ question, file }, { small: true, full: false }, (line) => progress.push(line))
    expect(rows.length).toBeGreaterThan(0)
    expect(progress.length).toBeGreaterThan(0)
    for (const row of rows) {
      expect(row.question).toBe(question.name)
      if (row.note.includes(NO_COMPILER) || row.note.includes(NEEDS_NATS)) continue
      expect(`${row.title}: ${row.met} ${row.note}`).not.toContain('not measured')
      expect(row.ours).toBeGreaterThanOrEqual(row.unit === 'MiB' ? 0 : Number.MIN_VALUE)
      if (row.against !== '') expect([row.theirs! > 0, row.ratio! > 0]).toEqual([true, true])
    }
    expect(terminalTable(rows).split('\n')).toHaveLength(rows.length + 1)
    expect(markdownTable(rows).split('\n')).toHaveLength(rows.length + 2)
  })
})

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
