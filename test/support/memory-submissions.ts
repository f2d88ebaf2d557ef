// SubmissionService and AgentRegistry over a store in memory that writes in order, at once or when the test decides. A restart
// recovers all rows, however old.

import { randomBytes } from 'node:crypto'
import type { Clock } from '../../src/lib/clock.ts'
import { machineRandom } from '../../src/lib/random.ts'
import type { SubmissionPage } from '../../src/schema/api/submission-list.ts'
import { ENRICHED_FIELDS, type SnapshotValues, type SourcedEnriched } from '../../src/schema/datapoint.ts'
import type { SubmissionRow, TableName, TableRow, Write } from '../../src/schema/tables.ts'
import { AgentRegistry } from '../../src/submissions/accounts/agent-registry.ts'
import { SubmissionError } from '../../src/submissions/errors.ts'
import { SUBMIT_LIMITS, type SubmitLimits } from '../../src/submissions/limits.ts'
import { SubmissionService, type SubmissionServiceOptions } from '../../src/submissions/submission-service.ts'
import type { Caller, SubmitResult } from '../../src/submissions/types.ts'
import { VALUES } from './submission.ts'

const NOTHING_ENRICHED = Object.fromEntries(
  [...ENRICHED_FIELDS, 'enriched_at', 'enriched_source'].map((field) => [field, null]),
) as SourcedEnriched
const unavailable = () => new SubmissionError('store_unavailable', 'the disk is full')

/** With `isReady` commits are durable at once. Otherwise they wait, in order, until the test decides. */
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

  async analysis(): Promise<SubmissionRow | null> {
    return null
  }

  async submissions(): Promise<SubmissionPage> {
    return { submissions: [], next: null, searchedToMs: null }
  }
}

/** What the store recovers after a restart. */
export function recoveredFrom(writes: readonly Write[]) {
  const rowsOf = <Name extends TableName>(...tables: Name[]) =>
    writes
      .filter(({ table }) => tables.some((each) => each === table))
      .map(({ row }) => row as TableRow<Name>)
  const agentIds = [...new Set(rowsOf('xp_ledger').map((row) => row.agent_id))]
  const mints = [...new Set(rowsOf('training').map((row) => row.mint))]
  const moments = (...tables: ('training' | 'rejections')[]) =>
    rowsOf(...tables).map((row) => ({ agentId: row.agent_id, mint: row.mint, atMs: row.received_at ?? 0 }))
  return {
    agents: rowsOf('agents'),
    agentKeys: rowsOf('agent_keys'),
    agentEvents: rowsOf('agent_events'),
    submitAttempts: rowsOf('submit_attempts'),
    idempotency: rowsOf('idempotency'),
    // The latest of each pair, in the order of writing.
    cooldowns: [
      ...new Map(
        moments('training', 'rejections').map((each) => [`${each.agentId} ${each.mint}`, each]),
      ).values(),
    ],
    strikes: moments('rejections'),
    xpTotals: agentIds.map((agentId) => {
      const own = rowsOf('xp_ledger').filter((row) => row.agent_id === agentId)
      return { agentId, xp: own.reduce((sum, row) => sum + row.xp, 0), analyses: own.length }
    }),
    recentLabels: [],
    outcomeCounts: [...new Set(rowsOf('training', 'rejections').map((row) => row.agent_id))].map(
      (agentId) => {
        const outcomes = rowsOf('training', 'rejections')
          .filter((row) => row.agent_id === agentId)
          .map(({ outcome }) => outcome)
        const count = (outcome: string) => outcomes.filter((each) => each === outcome).length
        return {
          agentId,
          validated: count('validated'),
          unvalidated: count('unvalidated'),
          rejected: count('rejected'),
        }
      },
    ),
    coverage: mints.map((mint) => {
      const own = rowsOf('training').filter((row) => row.mint === mint)
      const last = own.at(-1)!
      return {
        mint,
        count: own.length,
        lastSentiment: last.sentiment,
        lastScore: last.score,
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
  /** The result, or the error that was thrown. */
  send(caller: Caller, body: unknown, idempotencyKey?: string | null): Promise<SubmitResult | SubmissionError>
}

type Settings = Partial<Pick<SubmissionServiceOptions, 'onAccepted' | 'labelsDelayMs'>> & {
  limits?: Partial<SubmitLimits>
}

/** `values`: what is known of each mint; by default every mint has `VALUES`. */
export function openMemorySubmissions(
  clock: Clock,
  settings: Settings & { rows?: readonly Write[]; values?: (mint: string) => SnapshotValues | null } = {},
): MemorySubmissions {
  const { rows = [], values = () => VALUES, limits, ...rest } = settings
  const store = new MemorySubmissionStore(rows)
  const recovered = recoveredFrom(rows)
  const agents = new AgentRegistry({
    recovered,
    store,
    clock,
    random: machineRandom(),
    randomBytes,
    registrationOpen: true,
  })
  let marketMs = 0
  const submissions = new SubmissionService({
    market: {
      snapshot: values,
      versionsAt: (mint) => [values(mint) ?? []].flat(),
      enriched: () => NOTHING_ENRICHED,
      datapoint: () => null,
    },
    store,
    agents,
    clock,
    random: machineRandom(),
    marketMs: () => {
      marketMs = Math.max(marketMs, clock.now())
      return marketMs
    },
    recovered,
    onAccepted: () => {},
    labelsDelayMs: 0,
    limits: { ...SUBMIT_LIMITS, ...limits },
    ...rest,
  })
  return {
    submissions,
    agents,
    store,
    async register(name = 'agent') {
      const { key } = await agents.register({ name })
      return agents.authenticate(key)
    },
    send: (caller, body, idempotencyKey = null) =>
      submissions
        .submit(caller, { body: Buffer.from(JSON.stringify(body)), idempotencyKey })
        .catch((error) => error),
  }
}

/** The code of the error, or `accepted`. */
export const codeOf = (result: SubmitResult | SubmissionError): string =>
  result instanceof Error ? result.code : 'accepted'
