// A question like those of bench/questions, with one candidate that works and one for each way to fail.
import type { Measured, Question } from '../../bench/harness.ts'

const answer = (figure: number, sample: number[]): Measured => ({
  metrics: { figure },
  checksum: 'x',
  sample,
})
const against = (peer: string) =>
  ({
    title: 'figures',
    metric: 'figure',
    against: peer,
    unit: '1/s',
    gate: 1,
    stretch: 2,
    better: 'higher',
  }) as const

export const question: Question = {
  name: 'broken',
  title: 'a question for the test of the benchmark',
  rounds: 2,
  candidates: {
    ours: () => answer(20, [1, 2]),
    'a peer that agrees': () => answer(10, [1, 2 + 1e-12]),
    'a peer that throws': () => {
      throw new Error('no such\n\npackage')
    },
    'a peer that dies': () => process.exit(3),
    'a peer that computes something else': () => answer(10, [1, 2.1]),
  },
  comparisons: [
    against('a peer that agrees'),
    against('a peer that throws'),
    against('a peer that dies'),
    against('a peer that computes something else'),
    { title: 'figure', metric: 'figure', unit: '1/s', gate: 15, better: 'higher' },
  ],
  prepare() {
    throw new Error('nothing was prepared')
  },
}
