// What counting unique wallets costs: memory, in processes with wallets and without that take turns, and time of a trade, in one process
// that counts them in every other block of trades.
import { fileURLToPath } from 'node:url'
import {
  jsonOf,
  lessIsBetter,
  type Measured,
  median,
  type Question,
  type RunOptions,
  serverArgs,
} from '../harness.ts'

const PROGRAM = fileURLToPath(new URL('../servers/traded-market.ts', import.meta.url))
const TIMEOUT_MS = 3_600_000

interface Cost {
  rssMebibytes: number
  addedUs: number | null
  hot: number | null
}

async function run({ small, full }: RunOptions): Promise<Measured> {
  const tokens = small ? 500 : 100_000
  const trades = small ? 50_000 : full ? 25_920_000 : 2_000_000
  const measure = (wallets: string) =>
    jsonOf<Cost>(
      process.execPath,
      [...serverArgs(), '--expose-gc', PROGRAM, `${tokens}`, `${trades}`, wallets],
      TIMEOUT_MS,
    )
  const rounds: { bare: Cost; counted: Cost; inTurns: Cost }[] = []
  for (let round = 0; round < (small || full ? 1 : 3); round++)
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

export const question: Question = {
  name: 'wallets',
  title: 'unique wallets, 100 000 tokens, 300 trades/s by Zipf’s law',
  rounds: 1,
  candidates: { ours: run },
  comparisons: [
    lessIsBetter('counting wallets: memory added', 'addedMebibytes', 'MiB', {
      gate: 143,
      isDifference: true,
    }),
    lessIsBetter('counting wallets: added to a trade', 'addedUs', 'µs', { gate: 0.4, isDifference: true }),
  ],
}
