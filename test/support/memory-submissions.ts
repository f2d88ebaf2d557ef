// The submission service and its agents on a store in memory, which commits at once or when the test says so; and what a restart
// would recover.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../src/lib/clock.ts'
import { ENRICHED_FIELDS, type Enriched, type SnapshotValues } from '../../src/schema/datapoint.ts'
import { ServiceError } from '../../src/schema/errors.ts'
import type { Row, TableName, Write } from '../../src/schema/tables.ts'
import { type AgentRegistry, createAgentRegistry } from '../../src/submissions/accounts/agent-registry.ts'
import {
  createSubmissionService,
  type SubmissionServiceOptions,
} from '../../src/submissions/submission-service.ts'
import type { Answer, Caller, SubmissionService } from '../../src/submissions/types.ts'
import { VALUES } from './submission.ts'

const NOTHING_ENRICHED = Object.fromEntries(ENRICHED_FIELDS.map((field) => [field, null])) as Enriched
const unavailable = () => new ServiceError('store_unavailable', 'the disk is full')

/** Commits wait in order until the test decides; or, with `isReady`, are durable at once. */
export class MemorySubmissionStore {
  readonly rows: Write[] = []
  isReady = true
  readonly #waiting: { writes: readonly Write[]; resolve(): void; reject(error: Error): void }[] = []

  constructor(rows: readonly Write[] = []) {
    this.rows.push(...rows)
  }

  get waiting(): number {
    return this.#waiting.length
  }

  commit(writes: readonly Write[]): Promise<void> {
    if (this.isReady) {
      this.rows.push(...writes)
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => this.#waiting.push({ writes, resolve, reject }))
  }

  /** The oldest commit becomes durable, or is refused. */
  decide(isDurable: boolean): void {
    const first = this.#waiting.shift()
    if (first === undefined) return
    if (isDurable) {
      this.rows.push(...first.writes)
      first.resolve()
    } else first.reject(unavailable())
  }

  async analysis(): Promise<Row | null> {
    return null
  }
}

/** What the store hands over after a restart. */
export function recoveredFrom(writes: readonly Write[]) {
  const rowsOf = (...tables: TableName[]) =>
    writes.filter(({ table }) => tables.includes(table)).map(({ row }) => row)
  const agentIds = [...new Set(rowsOf('xp_ledger').map((row) => row.agent_id as string))]
  const mints = [...new Set(rowsOf('training').map((row) => row.mint as string))]
  const moments = (...tables: TableName[]) =>
    rowsOf(...tables).map((row) => ({
      agentId: row.agent_id as string,
      mint: row.mint as string,
      atMs: row.received_at as number,
    }))
  return {
    agents: rowsOf('agents'),
    agentKeys: rowsOf('agent_keys'),
    agentEvents: rowsOf('agent_events'),
    submitAttempts: rowsOf('submit_attempts'),
    idempotency: rowsOf('idempotency'),
    // The latest of a pair, in the order of writing.
    cooldowns: [
      ...new Map(
        moments('training', 'rejections').map((each) => [`${each.agentId} ${each.mint}`, each]),
      ).values(),
    ],
    strikes: moments('rejections'),
    xpTotals: agentIds.map((agentId) => {
      const own = rowsOf('xp_ledger').filter((row) => row.agent_id === agentId)
      return { agentId, xp: own.reduce((sum, row) => sum + (row.xp as number), 0), analyses: own.length }
    }),
    coverage: mints.map((mint) => {
      const own = rowsOf('training').filter((row) => row.mint === mint)
      const last = own.at(-1)!
      return {
        mint,
        count: own.length,
        lastSentiment: last.sentiment as string,
        lastScore: last.score as number,
      }
    }),
  }
}

export interface MemorySubmissions {
  submissions: SubmissionService
  agents: AgentRegistry
  store: MemorySubmissionStore
  /** Registers an agent. */
  register(name?: string): Promise<Caller>
  /** The answer, or the error that would be answered. */
  send(caller: Caller, body: unknown, idempotencyKey?: string | null): Promise<Answer | ServiceError>
}

type Settings = Partial<
  Pick<SubmissionServiceOptions, 'submitRateMax' | 'cooldownMs' | 'strikeRules' | 'onAccepted'>
>

/** `values`: what is known of each mint; by default every mint has `VALUES`. */
export function openMemorySubmissions(
  clock: Clock,
  settings: Settings & { rows?: readonly Write[]; values?: (mint: string) => SnapshotValues | null } = {},
): MemorySubmissions {
  const { rows = [], values = () => VALUES, ...rest } = settings
  const store = new MemorySubmissionStore(rows)
  const recovered = recoveredFrom(rows)
  const agents = createAgentRegistry({ recovered, store, clock, randomBytes, registrationOpen: true })
  let marketMs = 0
  const submissions = createSubmissionService({
    market: {
      has: (mint) => values(mint) !== null,
      snapshot: values,
      asOf: values,
      enriched: () => NOTHING_ENRICHED,
      datapoint: () => null,
    },
    store,
    agents,
    clock,
    marketMs: () => {
      marketMs = Math.max(marketMs, clock.now())
      return marketMs
    },
    recovered,
    onAccepted: () => {},
    ...rest,
  })
  return {
    submissions,
    agents,
    store,
    async register(name = 'agent') {
      const { data } = (await agents.register({ name })).body as { data: { key: string } }
      return agents.authenticate(data.key)
    },
    send: (caller, body, idempotencyKey = null) =>
      submissions
        .submit(caller, { body: Buffer.from(JSON.stringify(body)), idempotencyKey })
        .catch((error) => error),
  }
}

export const codeOf = (answer: Answer | ServiceError): string | number =>
  answer instanceof ServiceError ? answer.code : answer.status
