// @module-tag drill
// The small run of the benchmark: every question runs, and its table says what was measured. The figures are not checked,
// as they mean nothing on a machine that runs other tests at the same time.
import { describe, expect, it } from 'vitest'
import { NEEDS_NATS } from '../bench/harness.ts'
import { loadQuestions } from '../bench/run.ts'
import { ask } from '../bench/runner.ts'
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
      expect(row.met, `${row.title}: ${row.note}`).not.toBe('not measured')
      if (row.isDifference) expect(row.ours).not.toBe(null)
      else expect(row.ours).toBeGreaterThanOrEqual(row.unit === 'MiB' ? 0 : Number.MIN_VALUE)
      if (row.against !== '') expect([row.theirs! > 0, row.ratio! > 0]).toEqual([true, true])
    }
    expect(terminalTable(rows).split('\n')).toHaveLength(rows.length + 1)
    expect(markdownTable(rows).split('\n')).toHaveLength(rows.length + 2)
  })
})
