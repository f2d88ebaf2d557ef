// npm run agent -- --url http://127.0.0.1:8080 --name scout
// An agent: looks for tokens that few have analysed, reads their DataPoints and bars, submits what simple heuristics say of them
// (agent/analyst.ts), and prints each verdict. Ends with Ctrl-C, SIGTERM or SIGHUP.
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  createClient,
  type MarketItem,
  type MintlakeClient,
  MintlakeError,
  type Submission,
} from '../src/client/index.ts'
import { repeatedFlag } from '../src/lib/wrong-flags.ts'
import { analyse } from './agent/analyst.ts'
import { defaultKeyFile, readKey, writeKey } from './agent/key-file.ts'

/** Tokens with fewer accepted analyses earn the low-coverage bonus. */
const LOW_COVERAGE_COUNT = 5
const CANDIDATES_MAX = 50
const BARS = { tf: '1m', limit: 30 } as const
const MINUTE_MS = 60_000
/** The wait where nothing is left to analyse, or the server is away. */
const IDLE_MS = 5_000
/** Mints whose analysis is remembered; beyond it the oldest is forgotten. */
const DONE_MAX = 10_000
/** Refusals after which every further submission would be refused too. */
const FINAL_CODES: readonly string[] = [
  'missing_key',
  'invalid_key',
  'revoked_key',
  'agent_banned',
  'key_not_allowed',
  'registration_closed',
]

const USAGE = `npm run agent -- [--url URL] [--name NAME] [--key-file FILE] [--max SUBMISSIONS] [--per-minute 1..600]

Without --url it takes MINTLAKE_URL, else http://127.0.0.1:8080; its key is MINTLAKE_KEY, else that of --key-file
(~/.mintlake/HOST_PORT.key), else that of a new agent of that name: for another agent give another --key-file too. Ctrl-C ends it, or --max submissions.`

function readFlags() {
  try {
    const { values, tokens } = parseArgs({
      tokens: true,
      options: {
        url: { type: 'string', default: process.env.MINTLAKE_URL || 'http://127.0.0.1:8080' },
        name: { type: 'string', default: 'scout' },
        'key-file': { type: 'string' },
        // 0: without an end.
        max: { type: 'string', default: '0' },
        'per-minute': { type: 'string', default: '10' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) {
      console.log(USAGE)
      process.exit(0)
    }
    const repeated = repeatedFlag(tokens)
    if (repeated !== null) throw new Error(repeated)
    if (!/^https?:$/.test(URL.parse(values.url)?.protocol ?? ''))
      throw new Error(`"${values.url}" is no address like http://127.0.0.1:8080`)
    const [submissionsMax, perMinute] = [Number(values.max), Number(values['per-minute'])]
    if (!Number.isInteger(submissionsMax) || submissionsMax < 0) throw new Error('--max is no whole number')
    if (!(perMinute >= 1 && perMinute <= 600)) throw new Error('--per-minute is not between 1 and 600')
    const keyFile = values['key-file'] ?? defaultKeyFile(values.url)
    return { url: values.url, name: values.name, keyFile, submissionsMax, perMinute }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`)
    process.exit(2)
  }
}

const flags = readFlags()
const stop = new AbortController()
const { signal } = stop
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => stop.abort())

/** Texts of tokens may hold anything: control characters would be commands to a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const printable = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ').slice(0, 24)

/** The key of the environment, of the file, or of a new agent, in this order. */
async function findKey(): Promise<string> {
  const known = process.env.MINTLAKE_KEY || readKey(flags.keyFile)
  if (known !== null) return known
  const { key, agentId } = await createClient({ baseUrl: flags.url }).register(
    { name: flags.name },
    { signal },
  )
  writeKey(flags.keyFile, key)
  console.log(`registered ${flags.name} as ${agentId}; its key is in ${flags.keyFile}`)
  return key
}

/** A refusal of this one submission: another may be accepted. */
function isAboutSubmission(error: unknown): error is MintlakeError {
  if (!(error instanceof MintlakeError) || error.status === null || FINAL_CODES.includes(error.code))
    return false
  return error.status < 500 || error.code === 'datapoint_unavailable'
}

class Agent {
  readonly #client: MintlakeClient
  readonly #submissionsMax: number
  /** At one rate for all the time, so that submissions seldom meet a limit. */
  readonly #intervalMs: number
  /** Insertion order is age. */
  readonly #done = new Set<string>()
  #submitted = 0
  #xpEarned = 0

  constructor(
    client: MintlakeClient,
    { submissionsMax, perMinute }: Record<'submissionsMax' | 'perMinute', number>,
  ) {
    this.#client = client
    this.#submissionsMax = submissionsMax
    this.#intervalMs = MINUTE_MS / perMinute
  }

  /** Runs until it is stopped or has submitted enough. Waits while the server is away. */
  async run(): Promise<void> {
    while (!this.#isOver) {
      try {
        const candidates = await this.#candidates()
        if (candidates.length === 0) await this.#wait(IDLE_MS)
        for (const item of candidates) if (!this.#isOver) await this.#analyse(item)
      } catch (error) {
        if (signal.aborted) break
        if (!(error instanceof MintlakeError) || (error.status ?? 500) < 500) throw error
        console.error(`${error.code}: ${error.message}; trying again`)
        await this.#wait(IDLE_MS)
      }
    }
  }

  report(): string {
    return `${this.#submitted} submissions, ${this.#xpEarned} XP earned`
  }

  get #isOver(): boolean {
    return signal.aborted || (this.#submissionsMax > 0 && this.#submitted >= this.#submissionsMax)
  }

  /** Hot tokens of low coverage that this agent has not analysed. */
  async #candidates(): Promise<MarketItem[]> {
    const query = { sort: 'hot', limit: CANDIDATES_MAX, maxAnalyses: LOW_COVERAGE_COUNT - 1 } as const
    const { data } = await this.#client.market(query, { signal })
    return data.filter(
      ({ mint, analysis_count }) => analysis_count < LOW_COVERAGE_COUNT && !this.#done.has(mint),
    )
  }

  /** Submits an analysis of one token, and waits until the next is due. */
  async #analyse({ mint, symbol }: MarketItem): Promise<void> {
    const label = `${printable(symbol)} ${mint}`
    try {
      const submission = await this.#think(mint)
      // A mistake in the heuristics shows before anything is stored.
      if (this.#submitted === 0) await this.#rehearse(submission)
      const { outcome, xpEarned, xpTotal } = await this.#client.submit(submission, {
        signal,
        waitForLimits: false,
      })
      this.#submitted++
      this.#xpEarned += xpEarned
      const { sentiment, score } = submission
      console.log(`${outcome} +${xpEarned} XP (total ${xpTotal}) ${label}: ${sentiment} ${score}`)
    } catch (error) {
      if (!isAboutSubmission(error)) throw error
      console.error(`${label}: ${error.code}: ${error.message}`)
      // The rate is for all tokens: this one comes again. A cooldown is for this one: others come first.
      if (error.code === 'submit_rate_limited') return this.#wait(error.retryAfterMs ?? IDLE_MS)
    }
    this.#remember(mint)
    if (!this.#isOver) await this.#wait(this.#intervalMs)
  }

  async #think(mint: string): Promise<Submission> {
    const point = await this.#client.datapoint(mint, { signal })
    const { data: bars } = await this.#client.bars({ mint, ...BARS }, { signal })
    return analyse(point, bars)
  }

  async #rehearse(submission: Submission): Promise<void> {
    const { outcome, xpEarned } = await this.#client.submit(submission, { dryRun: true, signal })
    console.log(`dry run: ${outcome}, would earn ${xpEarned} XP`)
  }

  #remember(mint: string): void {
    this.#done.add(mint)
    for (const oldest of this.#done) {
      if (this.#done.size <= DONE_MAX) return
      this.#done.delete(oldest)
    }
  }

  /** Ends early when the agent is stopped. */
  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal }).catch(() => {})
  }
}

try {
  const client = createClient({ baseUrl: flags.url, key: await findKey(), waitForLimits: true })
  const agent = new Agent(client, flags)
  await agent.run()
  console.log(agent.report())
} catch (error) {
  if (!signal.aborted) {
    console.error(error instanceof MintlakeError ? `${error.code}: ${error.message}` : error)
    if (error instanceof MintlakeError && error.code === 'network_error')
      console.error('start a server with npm start, or name the one that runs with --url')
    if (error instanceof MintlakeError && error.status === 401)
      console.error(`delete ${flags.keyFile} and unset MINTLAKE_KEY, and a new agent is registered`)
    process.exitCode = 1
  }
}
