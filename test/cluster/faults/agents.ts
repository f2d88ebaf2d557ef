// Agents that submit through readers while nodes fail, and know of each submission what they were told.
import { randomUUID } from 'node:crypto'
import { SNAPSHOT_FIELDS } from '../../../src/schema/datapoint.ts'
import { submission } from '../../support/submission.ts'
import type { Client } from '../../support/test-server.ts'
import { type Nodes, pause } from './nodes.ts'
import { ANALYSED, TRADED } from './trades.ts'

const CALL_MS_MAX = 15_000
const EVERY_MS = 150
const RETRY_MS = 200

interface Told {
  status: number
  body: { analysisId?: string; outcome?: string; xpEarned?: number; code?: string } & Record<string, unknown>
}

/** What an agent knows of a submission, by its summary, which no other one has. */
export interface Sent {
  agent: number
  summary: string
  mint: string
  /** Null where no answer said that it is stored. */
  acknowledged: { analysisId: string; xpEarned: number } | null
}

/**
 * Each agent analyses one token after another. In turn: with an Idempotency-Key of its own, again until it is answered; without one, and
 * never again; with what a node said of the token, through another node; and twice at once on one token, of which one must be refused.
 */
export class SubmittingAgents {
  readonly sent: Sent[] = []
  /** What must not be. */
  readonly faults: string[] = []
  readonly #nodes: Nodes
  readonly #count: number
  readonly #keys: string[] = []
  #isEnding = false
  #done: Promise<unknown> = Promise.resolve()

  constructor(nodes: Nodes, count: number) {
    this.#nodes = nodes
    this.#count = count
  }

  get acknowledged(): number {
    return this.sent.filter(({ acknowledged }) => acknowledged !== null).length
  }

  async start(): Promise<void> {
    for (let agent = 0; agent < this.#count; agent++)
      this.#keys.push(await this.#nodes.reader().register(`agent ${agent}`))
    this.#done = Promise.all(this.#keys.map((_, agent) => this.#submitFor(agent)))
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#done
  }

  async #submitFor(agent: number): Promise<void> {
    for (let turn = 0; !this.#isEnding && turn < ANALYSED.length; turn++) {
      const mint = ANALYSED[turn]
      const kind = (turn + agent) % 8
      if (kind === 7) await this.#submitTwice(agent, mint, turn)
      else if (kind % 3 === 0) await this.#submitAgain(agent, mint, turn)
      else if (kind % 3 === 1) await this.#submitOnce(agent, mint, turn)
      else await this.#submitRead(agent, TRADED[turn % TRADED.length], turn)
      await pause(EVERY_MS)
    }
  }

  #begin(agent: number, mint: string, turn: number): Sent {
    const summary = `What agent ${agent} says in turn ${turn}: volume rises while the largest wallets hold still.`
    const sent: Sent = { agent, mint, summary, acknowledged: null }
    this.sent.push(sent)
    return sent
  }

  /** Null where there was no answer. */
  async #call(to: Client, sent: Sent, more: object, headers: Record<string, string>): Promise<Told | null> {
    try {
      const response = await fetch(`${to.url}/api/v1/analysis/submit`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Authorization: `Bearer ${this.#keys[sent.agent]}`,
          ...headers,
        },
        body: JSON.stringify(submission(sent.mint, { summary: sent.summary, ...more })),
        signal: AbortSignal.timeout(CALL_MS_MAX),
      })
      return { status: response.status, body: (await response.json()) as Told['body'] }
    } catch {
      return null
    }
  }

  /** Notes an answer. Returns whether it says that the submission is stored. */
  #note(sent: Sent, told: Told | null, mayRefuse: readonly string[] = []): boolean {
    if (told === null) return false
    const { status, body } = told
    if (status === 201 || status === 200) {
      if (body.outcome === 'rejected' || body.outcome === undefined)
        this.faults.push(`${sent.summary} was answered ${JSON.stringify(body)}`)
      sent.acknowledged = { analysisId: `${body.analysisId}`, xpEarned: Number(body.xpEarned) }
      return true
    }
    if (status !== 503 && !mayRefuse.includes(`${body.code}`))
      this.faults.push(`${sent.summary} was answered ${status} ${JSON.stringify(body)}`)
    return false
  }

  async #submitAgain(agent: number, mint: string, turn: number): Promise<void> {
    const sent = this.#begin(agent, mint, turn)
    const headers = { 'Idempotency-Key': randomUUID() }
    while (!this.#note(sent, await this.#call(this.#nodes.reader(), sent, {}, headers))) {
      if (this.#isEnding) return
      await pause(RETRY_MS)
    }
  }

  async #submitOnce(agent: number, mint: string, turn: number): Promise<void> {
    const sent = this.#begin(agent, mint, turn)
    this.#note(sent, await this.#call(this.#nodes.reader(), sent, {}, {}))
  }

  /** Judged against the version that was read, on whichever node: it must never be rejected. */
  async #submitRead(agent: number, mint: string, turn: number): Promise<void> {
    const from = this.#nodes.reader()
    const answer = await fetch(`${from.url}/api/v1/datapoint?mint=${mint}`, {
      signal: AbortSignal.timeout(CALL_MS_MAX),
    }).catch(() => null)
    const read = answer?.ok ? ((await answer.json()) as { data: Record<string, unknown> }).data : null
    if (read === null) return
    const snapshot = Object.fromEntries(SNAPSHOT_FIELDS.map((field) => [field, read[field]]))
    const sent = this.#begin(agent, mint, turn)
    const more = { snapshot: { ...snapshot, snapshotAt: read.snapshotAt } }
    // Another turn on this token may be less than the cooldown ago.
    this.#note(sent, await this.#call(this.#nodes.reader(), sent, more, {}), ['mint_cooldown'])
  }

  async #submitTwice(agent: number, mint: string, turn: number): Promise<void> {
    const both = [this.#begin(agent, mint, turn), this.#begin(agent, mint, turn + 10_000)]
    const told = await Promise.all(both.map((sent) => this.#call(this.#nodes.reader(), sent, {}, {})))
    const stored = both.filter((sent, index) => this.#note(sent, told[index], ['mint_cooldown']))
    if (stored.length === 2) this.faults.push(`${mint} was analysed twice at once by agent ${agent}`)
  }
}
