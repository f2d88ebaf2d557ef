// What counting unique wallets costs: memory and time of a trade, with wallets and without, in processes that take turns.
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
  tradeUs: number
  hot: number | null
}

async function run({ small, full }: RunOptions): Promise<Measured> {
  const tokens = small ? 500 : 100_000
  const trades = small ? 5_000 : full ? 25_920_000 : 2_000_000
  const measure = (wallets: string) =>
    jsonOf<Cost>(
      process.execPath,
      [...serverArgs(), '--expose-gc', PROGRAM, `${tokens}`, `${trades}`, wallets],
      TIMEOUT_MS,
    )
  const rounds: { bare: Cost; counted: Cost }[] = []
  for (let round = 0; round < (small || full ? 1 : 3); round++)
    rounds.push({ bare: await measure('none'), counted: await measure('wallets') })
  const added = (metric: 'rssMebibytes' | 'tradeUs') =>
    median(rounds.map(({ bare, counted }) => counted[metric] - bare[metric]))
  return {
    metrics: { addedMebibytes: added('rssMebibytes'), addedUs: added('tradeUs') },
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
