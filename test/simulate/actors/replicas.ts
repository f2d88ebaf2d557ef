// What the readers of a cluster show, compared with what the stream had: their positions, how old their market is, and what they say of
// themselves.
import { decodeMessage, MessageError } from '../../../src/cluster/messages.ts'
import { isFigureSort } from '../../../src/schema/vocabulary.ts'
import type { Cluster } from '../cluster.ts'
import type { Answer, SimulatedNode, SimulatedReader } from '../server.ts'
import { READER_LAG_MS_MAX } from '../settings.ts'
import { check, count, type World } from '../world.ts'
import type { Attempt, Sending } from './agents.ts'

/** How far a reader may be behind, how often it looks, and how long an answer is under way, ms. */
const AGE_MS_MAX = READER_LAG_MS_MAX + 250 + 100
/** A reader that gets nothing says so within this: it looks at the stream after half a second of silence, and a connection that swallows
 *  everything is found out after two unanswered pings. */
const TOLD_WITHIN_MS = 10_000
const EVENTS = 'mintlake-events'
/** A reader answers a write once it shows it, or after half a second. */
const APPLIED_WITHIN_MS = 500
/** A reader that is cut off from NATS waits for nothing: it is connected again so long after the last fault, ms. */
const QUIET_MS = 15_000
const LIST = 'limit=100&sort=market_cap'

/** Each node ranks a list by figures itself, and names it so in its cursors. */
const isRankedByItself = (query: string): boolean => isFigureSort(/sort=(\w+)/.exec(query)?.[1] ?? '')

interface StreamMoment {
  atMs: number
  last: number
  runId: string
  timeMs: number
}

/** What a reader has shown in one life. */
interface Shown {
  life: number
  seq: number
}

interface Standstill {
  life: number
  timeMs: number
  /** The last event that it has, as its health told it last. */
  news: number
  sinceMs: number
}

export class Replicas {
  readonly #world: World
  readonly #cluster: Cluster
  /** What the stream had, oldest first. */
  #moments: StreamMoment[] = []
  #createdMs = 0
  /** Of the stream, up to which message it is known who has published, who did so last, and who did before that one. */
  #runsOf = { createdMs: 0, last: 0, run: '', replaced: new Set<string>() }
  #folderId: string | null = null
  readonly #shown = new Map<SimulatedReader, Shown>()
  /** Since when the market of a reader has had the time and the events that it has. */
  readonly #stands = new Map<SimulatedReader, Standstill>()
  /** Bodies by what their ETag names. */
  readonly #bodies = new Map<string, string>()

  constructor(world: World, cluster: Cluster) {
    this.#world = world
    this.#cluster = cluster
  }

  /** The stream has lost what it had: what readers have may be newer. */
  forgetStream(): void {
    this.#moments = []
  }

  poll(): void {
    this.#noteStream()
    this.#checkRuns()
    for (const reader of this.#cluster.readers) {
      this.#checkPosition(reader)
      this.#checkTold(reader)
    }
  }

  /** A page that a node has answered with; not of a list that each node ranks by itself. */
  checkPage(node: SimulatedNode<never>, target: string, { status, headers, text }: Answer): void {
    const world = this.#world
    if (status !== 200 || isRankedByItself(target)) return
    const key = `${target} ${headers.etag}`
    const before = this.#bodies.get(key)
    const isSame = before === undefined || before === text
    check(
      world,
      'with one ETag all nodes send the same bytes',
      isSame,
      () => `${node.name} ${key}: ${differenceOf(text, before ?? '')}`,
    )
    this.#bodies.set(key, text)
  }

  #noteStream(): void {
    const stream = this.#cluster.streams.get(EVENTS)
    if (stream === undefined) {
      this.forgetStream()
      return
    }
    const latest = this.#moments.at(-1)
    // A writer that lost the last events in a power cut begins it anew, and goes on from before them.
    const beginsAnew = (stream.messages[0]?.sequence ?? Infinity) > (latest?.last ?? 0)
    if (stream.createdMs !== this.#createdMs || stream.last < (latest?.last ?? 0) || beginsAnew)
      this.forgetStream()
    this.#createdMs = stream.createdMs
    const message = stream.messages.at(-1)
    if (message === undefined || message.sequence === latest?.last) return
    const told = toldBy(message.payload)
    // The time that the run before told behind its last event went with it: readers that begin now have that of the event.
    if (told !== null && told.runId !== latest?.runId) this.forgetStream()
    if (!told?.timeMs) return
    this.#moments.push({ atMs: this.#world.machine.nowMs, last: stream.last, ...told })
    if (this.#moments.length > 200) this.#moments.shift()
  }

  /** One writer publishes after another: none that was replaced does, and none of another folder. */
  #checkRuns(): void {
    const stream = this.#cluster.streams.get(EVENTS)
    const runs = this.#runsOf
    // Numbers of what it has lost are used again.
    runs.last = stream?.createdMs === runs.createdMs ? Math.min(runs.last, stream.last) : 0
    runs.createdMs = stream?.createdMs ?? 0
    for (const { payload, sequence } of stream?.messages.slice(stream.indexOf(runs.last + 1)) ?? []) {
      const { runId, folderId } = decodeMessage(payload)
      runs.last = sequence
      this.#folderId ??= folderId
      check(
        this.#world,
        'one writer publishes after another',
        !runs.replaced.has(runId) && folderId === this.#folderId,
        () => `message ${sequence} is of run ${runId} of ${folderId}, which another one had replaced`,
      )
      if (runs.run !== runId && runs.run !== '') runs.replaced.add(runs.run)
      runs.run = runId
    }
  }

  /** Its market is never older than it may be where it answers. Asked of the reader itself, before anything else happens. */
  checkAge(reader: SimulatedReader): void {
    const world = this.#world
    const sentMs = world.machine.nowMs
    const moment = this.#moments.findLast(({ atMs }) => atMs < sentMs - AGE_MS_MAX)
    const { life, lives } = reader
    reader.send({ method: 'GET', path: '/api/v1/market', query: 'limit=1' }, ({ status }) => {
      if (status !== 200 || life !== reader.life || lives !== reader.lives || moment === undefined) return
      const timeMs = reader.app?.market.timeMs ?? 0
      check(
        world,
        'no reader shows the past as now',
        timeMs >= moment.timeMs || world.hadWrongClock || !this.#moments.includes(moment),
        () =>
          `${reader.name} is at ${timeMs}, the stream was at ${moment.timeMs} ${sentMs - moment.atMs} ms ago`,
      )
    })
  }

  /** Who submitted through a reader sees there that its token has one analysis more, unless the reader has waited for it in vain. */
  checkOwnWrite(
    { attempt, code, reader, sentMs }: Sending,
    answer: Answer | null,
    attempts: readonly Attempt[],
  ): void {
    const world = this.#world
    if (reader === null || code !== 'accepted' || answer === null || world.hasDamagedLog) return
    const isWaitedFor = answer.answeredMs - sentMs < APPLIED_WITHIN_MS
    if (!isWaitedFor || world.hasDamagedJournal || sentMs - this.#cluster.disturbedMs < QUIET_MS) return
    const { lives } = reader
    const { mint } = attempt
    const isTold = (each: Attempt): boolean =>
      each === attempt || each.sendings.some(({ code, endedMs }) => code === 'accepted' && endedMs < sentMs)
    const told = attempts.filter((each) => each.mint === mint && isTold(each))
    reader.send({ method: 'GET', path: '/api/v1/market', query: LIST }, ({ status, body }) => {
      if (status !== 200 || lives !== reader.lives || this.#cluster.disturbedMs > sentMs) return
      const row = body.data.find((each: { mint: string }) => each.mint === mint)
      check(
        world,
        'an own submission is seen through the same reader',
        row === undefined || row.analysis_count >= told.length,
        () => `${reader.name}, number ${attempt.id}: ${row.analysis_count} of ${told.length} analyses`,
      )
    })
  }

  #checkPosition(reader: SimulatedReader): void {
    const { app, lives } = reader
    if (app === null || !reader.isUp) return
    const { seq } = app.market
    const before = this.#shown.get(reader)
    check(
      this.#world,
      'the position of a replica never goes back',
      before?.life !== lives || seq >= before.seq,
      () => `${reader.name}: ${seq} after ${before?.seq}`,
    )
    this.#shown.set(reader, { life: lives, seq })
  }

  /** Whatever keeps the market from going on: the way to the bus, the bus, a writer that is away, or one that cannot record. */
  #checkTold(reader: SimulatedReader): void {
    const { nowMs } = this.#world.machine
    const { life, lives } = reader
    const timeMs = reader.app?.market.timeMs ?? 0
    const before = this.#stands.get(reader)
    const isFrozen = (life?.process.frozenUntilMs ?? 0) > nowMs
    if (!reader.isUp || isFrozen || before?.life !== lives || before.timeMs !== timeMs) {
      this.#stands.set(reader, { life: lives, timeMs, news: 0, sinceMs: nowMs })
      return
    }
    const { sinceMs } = before
    if (nowMs - Math.max(sinceMs, life?.startedMs ?? 0) < TOLD_WITHIN_MS) return
    count(this.#world, 'readers whose market stood still')
    reader.send({ method: 'GET', path: '/health' }, ({ status, body, text }) => {
      if (this.#stands.get(reader) !== before || reader.app?.market.timeMs !== timeMs) return
      // An event is news too, of whatever time.
      const news = Number(body?.cluster?.eventNo)
      if (status === 200 && news !== before.news) {
        this.#stands.set(reader, { ...before, news, sinceMs: nowMs })
        return
      }
      check(
        this.#world,
        'a reader whose market stands still says so in /health',
        status !== 200 || body.reasons.length > 0 || body.status === 'warming_up',
        () => `${reader.name}, for ${nowMs - sinceMs} ms: ${text.slice(0, 500)}`,
      )
    })
  }
}

/** Whose message it is, and the market time that it tells, or 0; null: it is damaged. */
function toldBy(payload: Buffer): { runId: string; timeMs: number } | null {
  try {
    const { runId, timeMs } = decodeMessage(payload)
    return { runId, timeMs }
  } catch (error) {
    if (error instanceof MessageError) return null
    throw error
  }
}

/** Where two texts differ first. */
function differenceOf(text: string, other: string): string {
  let at = 0
  while (text[at] === other[at]) at++
  const from = Math.max(0, at - 80)
  return `…${text.slice(from, at + 120)}…, elsewhere …${other.slice(from, at + 120)}…`
}
