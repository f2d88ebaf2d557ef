// Agents without judgement that compete beside the programs: what a program earns beyond these is its own.
import type { App } from '../app.ts'
import { Random } from '../ingest/simulator/random.ts'
import type { DataPoint } from '../schema/datapoint.ts'
import { ServiceError } from '../schema/errors.ts'
import type { Submission } from '../schema/submission.ts'
import { SENTIMENTS } from '../schema/vocabulary.ts'
import { SubmissionError } from '../submissions/errors.ts'
import type { Caller } from '../submissions/types.ts'
import { BASELINE_EVERY_MARKET_MS, BASELINE_TOKENS } from './limits.ts'

type Judgement = Pick<Submission, 'sentiment' | 'score'>

interface Baseline {
  name: string
  judge(point: DataPoint, random: Random): Judgement
}

export const BASELINES: readonly Baseline[] = [
  {
    name: 'baseline: random',
    judge: (_point, random) => ({
      sentiment: SENTIMENTS[Math.floor(random.next() * SENTIMENTS.length)] ?? 'neutral',
      score: Math.floor(random.next() * 101),
    }),
  },
  {
    name: 'baseline: last hour',
    judge: ({ priceChange1h }) => {
      const change = priceChange1h ?? 0
      const sentiment = change > 0 ? 'bullish' : change < 0 ? 'bearish' : 'neutral'
      return { sentiment, score: Math.min(100, Math.round(50 + Math.abs(change) / 2)) }
    },
  },
]

/** What a baseline says of a token besides its judgement: the same of every one. */
const withRest = (mint: string, { sentiment, score }: Judgement, name: string): Submission => ({
  mint,
  sentiment,
  score,
  summary: `${name}: this is no analysis, but what somebody without judgement would have said of the token.`,
  quant: {
    riskLevel: 'medium',
    riskFactors: ['bonding_curve_risk'],
    buyPressure: 50,
    volatilityScore: 50,
    liquidityDepth: 'moderate',
    holderConcentration: 'moderate',
    trendDirection: 'sideways',
    volumeProfile: 'stable',
  },
})

interface Voice {
  baseline: Baseline
  caller: Caller
}

/** All of them, each with an agent of its own. They speak of the same tokens at the same moments. */
export class Baselines {
  readonly #app: App
  readonly #random: Random
  readonly #callers: readonly Voice[]
  #dueMs = 0

  private constructor(app: App, seed: number, callers: readonly Voice[]) {
    this.#app = app
    this.#random = new Random(seed)
    this.#callers = callers
  }

  /** Registers them. */
  static async join(app: App, seed: number): Promise<Baselines> {
    const callers: Voice[] = []
    for (const baseline of BASELINES) {
      const { key } = await app.agents.register({ name: baseline.name }, true)
      callers.push({ baseline, caller: app.agents.authenticate(key) })
    }
    return new Baselines(app, seed, callers)
  }

  get agentIds(): string[] {
    return this.#callers.map(({ caller }) => caller.agent.agentId)
  }

  /** Lets them speak where it is time to. */
  async act(marketMs: number): Promise<void> {
    if (marketMs < this.#dueMs) return
    this.#dueMs = marketMs + BASELINE_EVERY_MARKET_MS
    const point = this.#pick()
    if (point === null) return
    for (const { baseline, caller } of this.#callers) {
      const submission = withRest(point.mint, baseline.judge(point, this.#random), baseline.name)
      await this.#submit(caller, submission)
    }
  }

  /** One of the hottest tokens. */
  #pick(): DataPoint | null {
    const { market } = this.#app
    const mints = market.first('hot', BASELINE_TOKENS)
    const mint = mints[Math.floor(this.#random.next() * mints.length)]
    return mint === undefined ? null : market.datapoint(mint)
  }

  /** A token that rests, or a limit that is used up, is passed over. */
  async #submit(caller: Caller, submission: Submission): Promise<void> {
    const body = Buffer.from(JSON.stringify(submission))
    try {
      await this.#app.submissions.submit(caller, { body, idempotencyKey: null })
    } catch (error) {
      if (!(error instanceof SubmissionError || error instanceof ServiceError)) throw error
    }
  }
}
