// Agents: each has a key and a character, and submits through any node. What they sent and were told is remembered, to be compared with
// what the server has.
import { decodeTime } from 'ulid'
import { IDEMPOTENCY_TTL_MS } from '../../../src/schema/api/submissions.ts'
import { SNAPSHOT_AGE_MS_MAX } from '../../../src/submissions/limits.ts'
import type { Draws } from '../machine/machine.ts'
import type { Answer, Sent, SimulatedNode } from '../server.ts'
import { check, count, drawsFor, nodesOf, note, type World } from '../world.ts'

export const CHARACTERS = ['honest', 'cheating', 'retrying', 'vanishing'] as const
export type Character = (typeof CHARACTERS)[number] | 'slow'

/** In so many runs the first agent is slow: it thinks about what it has read for so long, ms, that some of it is too old. */
const HAS_SLOW = 0.15
const THINKS_MS_MAX = 400_000

/** An agent gives up an answer that takes longer, ms. */
const PATIENCE_MS = 30_000
/** Such that what the noted seeds draw stays as it was. */
const SLOW_PURPOSE = 'thinking'
/** Answers to an Idempotency-Key are kept for a day. */
const REPEATED_WITHIN_MS = 20 * 3_600_000
/** A reader tries what nobody waits for any more for at most so long, ms: ten seconds, and a last try. */
const TRIED_MS_MAX = 20_000
/** What is under way to the writer may arrive so much later, ms: on ways that are held, or where it stands still. */
const LATE_MS_MAX = 60_000
const HAS_BURST = 0.1
const BURST_MAX = 14
/** How often an agent that a reader leaves in doubt sends the same again at once. */
const SENDS_AGAIN = 0.6
/** How often one goes to the server of before, while there is one. */
const SENDS_TO_LEFT = 0.5
/** How often all agents are after one token in the same moment. */
const HAS_RUSH = 0.06

const QUANT = {
  ...{ riskLevel: 'medium', riskFactors: ['bonding_curve_risk'], buyPressure: 55, volatilityScore: 40 },
  ...{
    liquidityDepth: 'moderate',
    holderConcentration: 'moderate',
    trendDirection: 'up',
    volumeProfile: 'rising',
  },
}

/** `unknown`: it may be stored. */
export type Fate = 'pending' | 'accepted' | 'rejected' | 'refused' | 'unknown'

/** One submission, which may have been sent several times under one key. */
export interface Attempt {
  id: number
  agent: Agent
  mint: string
  body: string
  idempotencyKey: string | null
  /** It asks for the verdict only: nothing may be stored. */
  isDry: boolean
  fate: Fate
  analysisId: string | null
  /** The analyses of answers that were forgotten before it was sent again. */
  forgottenIds: string[]
  /** Of the DataPoint that it tells, Unix ms; null: it tells none. */
  snapshotAtMs: number | null
  xp: number | null
  /** Each time that it was sent. */
  sendings: Sending[]
}

export interface Sending {
  attempt: Attempt
  /** It went to a reader, which passes it on. */
  reader: SimulatedNode<never> | null
  /** It went to the server of before: what that one counts its successor does not know. */
  isToLeft: boolean
  sentMs: number
  /** When it was answered or given up, or, where it is in doubt, nothing can come of it any more; Infinity: that is still to come. */
  endedMs: number
  /** Of the answer, or of the problem that it told; null: none. */
  code: string | null
  isReplay: boolean
  sent: Sent
}

export interface Agent {
  name: string
  character: Character
  key: string | null
  agentId: string | null
  attempts: Attempt[]
  /** What the operator has done to it. */
  ban: 'none' | 'banned' | 'unknown'
  /** When that was, on the machine's own time. */
  banSinceMs: number
  /** It was given another key and does not know it: its own one is good for a day only. */
  mayHaveOldKey: boolean
  /** The last time that it asked for another key. */
  rotation: Sent | null
}

const newAgent = (name: string, character: Character): Agent => ({
  ...{ name, character, key: null, agentId: null, attempts: [] },
  ...{ ban: 'none', banSinceMs: 0, mayHaveOldKey: false, rotation: null },
})

export class Agents {
  readonly all: Agent[]
  readonly attempts: Attempt[] = []
  readonly #world: World
  readonly #draws: Draws
  /** Which node gets what, and who asks again on a reader's word. */
  readonly #nodeDraws: Draws
  readonly #slowDraws: Draws
  readonly #waiting = new Set<Sending>()
  readonly #onSettled: (sending: Sending, answer: Answer | null) => void
  /** Until then readers may try on what agents have given up. */
  #triedUntilMs = 0
  /** How often everything was compared: who read before the last time submits nothing any more. */
  #rests = 0
  #lastId = 0
  #names = 0

  /** @param onSettled told of each submission that was answered or given up */
  constructor(world: World, agents: number, onSettled: (sending: Sending, answer: Answer | null) => void) {
    this.#world = world
    this.#draws = drawsFor(world, 'agents')
    this.#nodeDraws = drawsFor(world, 'nodes of agents')
    this.#onSettled = onSettled
    this.#slowDraws = drawsFor(world, SLOW_PURPOSE)
    const hasSlow = this.#slowDraws.chance(HAS_SLOW)
    this.all = Array.from({ length: agents }, (_, index) =>
      newAgent(`agent ${index}`, hasSlow && index === 0 ? 'slow' : CHARACTERS[index % CHARACTERS.length]),
    )
  }

  get ready(): Agent[] {
    return this.all.filter(({ key, agentId }) => key !== null && agentId !== null)
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0 || this.#world.machine.nowMs < this.#triedUntilMs
  }

  /** Who has read a DataPoint and still thinks submits nothing: from now on everything is compared. */
  rest(): void {
    this.#rests++
  }

  /** After a day, who does not know its newest key begins anew. */
  forgetOldKeys(): void {
    for (const [index, { mayHaveOldKey, name, character }] of this.all.entries())
      if (mayHaveOldKey) this.all[index] = newAgent(`${name}'`, character)
  }

  /** Something that an agent does; sometimes many things at once. */
  act(mints: readonly string[]): void {
    const draws = this.#draws
    const agent = draws.of(this.all)
    if (mints.length > 0 && draws.chance(HAS_RUSH)) this.#rush(mints)
    else if (agent.key === null) this.#register(agent)
    else if (agent.agentId === null) this.#readStanding(agent)
    else if (mints.length > 0) {
      const times = draws.chance(HAS_BURST) ? draws.whole(2, BURST_MAX) : 1
      for (let time = 0; time < times; time++) this.#analyse(agent, mints)
    }
  }

  /** All are after the bonus of one token, of the one that was analysed least. */
  #rush(mints: readonly string[]): void {
    const counts = Map.groupBy(this.attempts, ({ mint }) => mint)
    const count = (mint: string): number => counts.get(mint)?.length ?? 0
    const least = mints.reduce((best, mint) => (count(mint) < count(best) ? mint : best))
    for (const agent of this.ready) this.#submit(agent, least, {})
  }

  #analyse(agent: Agent, mints: readonly string[]): void {
    const draws = this.#draws
    const again = agent.attempts.at(-1)
    const { nowMs } = this.#world.machine
    const mayRepeat =
      agent.character === 'retrying' &&
      again?.idempotencyKey != null &&
      nowMs - again.sendings[0].sentMs < REPEATED_WITHIN_MS
    const mint = draws.of(mints)
    if (mayRepeat && draws.chance(0.4)) this.#send(again)
    else if (agent.character === 'cheating' && draws.chance(0.6)) this.#submitAfterReading(agent, mint, 3)
    else if (draws.chance(0.4)) this.#submitAfterReading(agent, mint, draws.chance(0.2) ? 1.3 : 1)
    else this.#submit(agent, mint, {})
  }

  #register(agent: Agent): void {
    // Of one whose answer was lost nobody has the key: another name is taken.
    const name = `${agent.name} ${++this.#names}`
    const body = JSON.stringify({ name })
    const headers = { 'Content-Type': 'application/json' }
    this.#world.server.send({ method: 'POST', path: '/api/v1/keys/register', body, headers }, (answer) => {
      if (answer.status === 201 && agent.key === null) agent.key = answer.body.data.key
      note(this.#world, 'registered', agent.name, answer.status)
    })
  }

  #readStanding(agent: Agent): void {
    const request = { method: 'GET', path: '/api/v1/agent/profile', key: agent.key! } as const
    this.#world.server.send(request, (answer) => {
      check(
        this.#world,
        'a key that was handed out is known',
        answer.status === 200 || answer.status === 503 || this.#world.hasDamagedLog,
        () => `${agent.name}: ${answer.text}`,
      )
      if (answer.status === 200) agent.agentId = answer.body.standing.agentId
    })
  }

  /** Reads the DataPoint and sends it back, its price times `factor`. */
  #submitAfterReading(agent: Agent, mint: string, factor: number): void {
    const world = this.#world
    const rests = this.#rests
    world.server.send(
      { method: 'GET', path: '/api/v1/datapoint', query: `mint=${mint}` },
      ({ status, body }) => {
        if (status !== 200) return
        const { priceUsd, volume24h, holderCount, snapshotAt } = body.data
        const snapshot = {
          priceUsd: priceUsd === null ? null : priceUsd * factor,
          volume24h,
          holderCount,
          snapshotAt,
        }
        const submit = () =>
          agent.key !== null && rests === this.#rests && this.#submit(agent, mint, { snapshot }, snapshotAt)
        if (agent.character !== 'slow') submit()
        else world.machine.after(this.#slowDraws.between(0, THINKS_MS_MAX), submit, world.machine.world)
      },
    )
  }

  #submit(agent: Agent, mint: string, more: object, snapshotAtMs: number | null = null): void {
    const id = ++this.#lastId
    const draws = this.#draws
    const isGarbage = draws.chance(0.03)
    const submission = {
      mint,
      sentiment: draws.of(['bullish', 'bearish', 'neutral']),
      score: isGarbage ? 'much' : draws.whole(0, 100),
      summary: `Number ${id}: volume rises while the ten largest wallets hold still; the curve is half way.`,
      quant: QUANT,
      ...more,
    }
    const attempt: Attempt = {
      ...{
        id,
        agent,
        mint,
        body: JSON.stringify(submission),
        fate: 'pending',
        analysisId: null,
        forgottenIds: [],
        snapshotAtMs,
        xp: null,
      },
      idempotencyKey: agent.character === 'retrying' ? `key-${id}` : null,
      isDry: agent.character !== 'retrying' && draws.chance(0.06),
      sendings: [],
    }
    agent.attempts.push(attempt)
    this.attempts.push(attempt)
    this.#send(attempt)
    // Impatient, and allowed: under one key it counts once.
    if (attempt.idempotencyKey !== null && draws.chance(0.2)) this.#send(attempt)
  }

  /** Any of those that live. */
  #node(): SimulatedNode<never> {
    const left = this.#world.otherWriters?.left
    if (left?.isUp && this.#nodeDraws.chance(SENDS_TO_LEFT)) return left as never
    const nodes = nodesOf(this.#world)
    const up = nodes.filter(({ isUp }) => isUp)
    return nodes.length === 1 || up.length === 0 ? nodes[0]! : this.#nodeDraws.of(up)
  }

  #send(attempt: Attempt): void {
    const world = this.#world
    const node = this.#node()
    const isToLeft = (node as unknown) === world.otherWriters?.left
    const isPassedOn = node !== nodesOf(world)[0] && !isToLeft
    const { agent, body, idempotencyKey } = attempt
    const headers: Record<string, string> = { 'Content-Type': 'application/json' }
    if (idempotencyKey !== null) headers['Idempotency-Key'] = idempotencyKey
    if (isToLeft) count(world, 'submissions sent to the server of before')
    count(world, isPassedOn ? 'submissions sent to readers' : 'submissions sent')
    const sending: Sending = {
      ...{
        attempt,
        reader: isPassedOn ? node : null,
        isToLeft,
        sentMs: world.machine.nowMs,
        endedMs: Number.POSITIVE_INFINITY,
        code: null,
        isReplay: false,
      },
      sent: null as unknown as Sent,
    }
    const request = {
      method: 'POST',
      path: '/api/v1/analysis/submit',
      query: attempt.isDry ? 'dryRun=1' : '',
      key: agent.key!,
      headers,
      body,
    } as const
    sending.sent = node.send(request, (answer) => this.#settle(sending, answer))
    attempt.sendings.push(sending)
    this.#waiting.add(sending)
    if (agent.character === 'vanishing' && this.#draws.chance(0.4))
      world.machine.after(this.#draws.between(0, 20), () => sending.sent.leave())
  }

  /** Gives up what got no answer. */
  poll(): void {
    const { nowMs } = this.#world.machine
    for (const sending of this.#waiting) {
      if (!sending.sent.isLost && nowMs - sending.sentMs > PATIENCE_MS) sending.sent.leave()
      if (sending.sent.isLost) this.#settle(sending, null)
    }
  }

  #settle(sending: Sending, answer: Answer | null): void {
    if (!this.#waiting.delete(sending)) return
    const { attempt } = sending
    const isDoubtful = answer === null || answer.body?.mayBeStored === true
    const { nowMs } = this.#world.machine
    sending.endedMs = answer?.answeredMs ?? nowMs
    if (isDoubtful && sending.reader !== null) {
      sending.endedMs += LATE_MS_MAX
      this.#triedUntilMs = nowMs + TRIED_MS_MAX
    }
    sending.code = answer === null ? null : codeOf(answer)
    sending.isReplay = answer?.headers['idempotency-replayed'] === 'true'
    note(this.#world, 'submission', attempt.id, sending.code)
    count(this.#world, `answer: ${sending.code ?? 'none'}`)
    this.#checkAge(sending)
    this.#decide(attempt, sending, answer)
    this.#onSettled(sending, answer)
    if (answer !== null && sending.reader !== null) this.#heed(attempt, answer)
  }

  /** A reader says when to try again, and in doubt with which key: then it counts once. */
  #heed(attempt: Attempt, { status, headers, body, text }: Answer): void {
    check(
      this.#world,
      'a reader says when to try again',
      status !== 503 || Number(headers['retry-after']) > 0,
      () => `number ${attempt.id}: ${JSON.stringify(headers)} ${text}`,
    )
    if (body?.mayBeStored !== true || attempt.isDry) return
    const key = attempt.idempotencyKey ?? headers['idempotency-key']
    check(this.#world, 'a submission in doubt has a key', key !== undefined, () => `number ${attempt.id}`)
    attempt.idempotencyKey = key
    if (this.#nodeDraws.chance(SENDS_AGAIN)) this.#send(attempt)
  }

  /** A snapshot is good for five minutes, neither less nor more. */
  #checkAge({ attempt: { id, snapshotAtMs }, sentMs, endedMs, code, isReplay }: Sending): void {
    const { machine, hadWrongClock } = this.#world
    if (snapshotAtMs === null || hadWrongClock || isReplay) return
    const [atLeastMs, atMostMs] = [sentMs, endedMs].map((ms) => machine.startMs + ms - snapshotAtMs)
    const detail = () => `number ${id}: ${code} at an age of ${atLeastMs} to ${atMostMs} ms`
    if (code === 'accepted')
      check(
        this.#world,
        'a snapshot that is too old is refused',
        atLeastMs <= SNAPSHOT_AGE_MS_MAX + 1,
        detail,
      )
    if (code === 'snapshot_stale')
      check(
        this.#world,
        'no snapshot is refused that is not too old',
        atMostMs > SNAPSHOT_AGE_MS_MAX - 1,
        detail,
      )
  }

  /** By a clock that was ahead when the server began, the first answer was older than an answer is remembered. */
  #isForgotten({ analysisId: first, forgottenIds }: Attempt, second: string | null): boolean {
    if (!this.#world.hadWrongClock || first === null || second === null) return false
    const [firstMs, secondMs] = [first, second].map((id) => decodeTime(id.slice('an_'.length)))
    if (secondMs - firstMs < IDEMPOTENCY_TTL_MS) return false
    forgottenIds.push(first)
    return true
  }

  #decide(attempt: Attempt, { code }: Sending, answer: Answer | null): void {
    const before = attempt.fate
    if (attempt.isDry) {
      attempt.fate = 'refused'
      return
    }
    if (answer === null) {
      if (before === 'pending' || before === 'refused') attempt.fate = 'unknown'
      return
    }
    if (code === 'accepted' || code === 'snapshot_rejected') {
      const fate = code === 'accepted' ? 'accepted' : 'rejected'
      const { analysisId = null, xpEarned = null } = answer.body
      check(
        this.#world,
        'one Idempotency-Key has one answer',
        before === 'pending' ||
          before === 'unknown' ||
          before === 'refused' ||
          (before === fate && attempt.analysisId === analysisId) ||
          this.#isForgotten(attempt, analysisId) ||
          this.#world.hasDamagedLog,
        () => `number ${attempt.id}: ${before} ${attempt.analysisId}, then ${fate} ${analysisId}`,
      )
      attempt.fate = fate
      attempt.analysisId = analysisId
      attempt.xp = xpEarned
      return
    }
    const mayBeStored = answer.body?.mayBeStored === true || answer.status === 500
    if (mayBeStored && (before === 'pending' || before === 'refused')) attempt.fate = 'unknown'
    if (!mayBeStored && before === 'pending') attempt.fate = 'refused'
  }
}

const codeOf = ({ status, body }: Answer): string => {
  if (status === 201) return 'accepted'
  // The strike that suspends its agent is answered by 403, and is a rejection like those before.
  const isVerdict = status === 200 || body?.outcome === 'rejected'
  if (isVerdict) return body?.dryRun === true ? 'dry run' : 'snapshot_rejected'
  return typeof body?.code === 'string' ? body.code : `status ${status}`
}
