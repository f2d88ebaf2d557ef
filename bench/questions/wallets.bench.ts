// What counting unique wallets costs: memory, in processes with wallets and without that take turns, and time of a trade, in one process
// that counts them in every other block of trades.
import { fileURLToPath } from 'node:url'
import {
  type Candidate,
  type Comparison,
  jsonOf,
  lessIsBetter,
  type Measured,
  median,
  type Question,
  serverArgs,
} from '../harness.ts'

const PROGRAM = fileURLToPath(new URL('../servers/traded-market.ts', import.meta.url))
const TIMEOUT_MS = 3_600_000

interface Cost {
  rssMebibytes: number
  addedUs: number | null
  hot: number | null
}

/** How many trades of 300 a second have been counted when the figures are taken: what counting costs grows with them. */
const SIZES = { 'two million trades': 2_000_000, 'the trades of a day': 25_920_000 } as const
type Size = keyof typeof SIZES
const NORMAL = 'two million trades' satisfies Size
const DAY = 'the trades of a day' satisfies Size
const SMALL_TRADES = 50_000

const run =
  (size: Size, roundCount: number): Candidate =>
  async ({ small }): Promise<Measured> => {
    const tokens = small ? 500 : 100_000
    const trades = small ? SMALL_TRADES : SIZES[size]
    const measure = (wallets: string) =>
      jsonOf<Cost>(
        process.execPath,
        [...serverArgs(), '--expose-gc', PROGRAM, `${tokens}`, `${trades}`, wallets],
        TIMEOUT_MS,
      )
    const rounds: { bare: Cost; counted: Cost; inTurns: Cost }[] = []
    for (let round = 0; round < (small ? 1 : roundCount); round++)
      rounds.push({
        bare: await measure('none'),
        counted: await measure('wallets'),
        inTurns: await measure('turns'),
      })
    return {
      metrics: {
        addedMebibytes: median(rounds.map(({ bare, counted }) => counted.rssMebibytes - bare.rssMebibytes)),
        addedUs: median(rounds.map(({ inTurns }) => inTurns.addedUs!)),
      },
      checksum: `${rounds[0].counted.hot}`,
    }
  }

const added = (size: Size): Comparison[] => [
  {
    ...lessIsBetter(`counting wallets, ${size}: memory added`, 'addedMebibytes', 'MiB', {
      gate: 143,
      isDifference: true,
    }),
    of: size,
  },
  {
    ...lessIsBetter(`counting wallets, ${size}: added to a trade`, 'addedUs', 'µs', {
      gate: 0.4,
      isDifference: true,
    }),
    of: size,
  },
]

export const question: Question = {
  name: 'wallets',
  title: 'unique wallets, 100 000 tokens, 300 trades/s by Zipf’s law',
  rounds: 1,
  fullOnly: [DAY],
  candidates: { [NORMAL]: run(NORMAL, 3), [DAY]: run(DAY, 1) },
  comparisons: [...added(NORMAL), ...added(DAY)],
}
