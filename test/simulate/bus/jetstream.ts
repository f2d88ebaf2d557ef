// JetStream of the simulated NATS: streams that keep messages, and consumers that bring them to subscribers. As far as the client library
// asks for it.
import type { Passed } from './nats-server.ts'
import { type Settings, type StoredMessage, StoredStream } from './streams.ts'
import { matches } from './subjects.ts'

const NANOS = 1e6
const NO_BYTES = Buffer.alloc(0)
const NO_TIME = '0001-01-01T00:00:00Z'

export interface Surroundings {
  /** Unix ms. */
  now(): number
  monotonicMs(): number
  hasInterest(subject: string): boolean
  send(to: string, message: Passed): void
}

/** What the client library knows errors by. */
class ApiError extends Error {
  readonly code: number
  readonly status: number

  constructor(status: number, code: number, description: string) {
    super(description)
    this.status = status
    this.code = code
  }
}
const noStream = (): ApiError => new ApiError(404, 10_059, 'stream not found')
const noConsumer = (): ApiError => new ApiError(404, 10_014, 'consumer not found')
const noMessage = (): ApiError => new ApiError(404, 10_037, 'no message found')
const wrongLast = (last: number): ApiError => new ApiError(400, 10_071, `wrong last sequence: ${last}`)

/** A request for messages. */
interface Pull {
  reply: string
  left: number
  expiresMs: number
  heartbeatMs: number
  saidMs: number
}

class Consumer {
  readonly stream: StoredStream
  readonly config: Settings
  readonly name: string
  readonly created: string
  readonly #around: Surroundings
  readonly #filters: readonly string[]
  /** Numbers of messages that come first, before those from `#next` on. */
  #first: number[] = []
  #next: number
  #delivered = 0
  #lastSequence = 0
  #pulls: Pull[] = []
  #saidMs: number
  #activeMs: number

  constructor(stream: StoredStream, name: string, config: Settings, around: Surroundings) {
    this.stream = stream
    this.name = name
    this.config = { ...config, name }
    this.#around = around
    this.created = new Date(around.now()).toISOString()
    this.#saidMs = this.#activeMs = around.monotonicMs()
    const { filter_subject: filter, filter_subjects: filters, deliver_policy: policy } = config
    this.#filters = filters ?? (filter === undefined || filter === '>' ? [] : [filter])
    this.#next = 1
    if (policy === 'new') this.#next = stream.last + 1
    else if (policy === 'by_start_sequence') this.#next = config.opt_start_seq
    else if (policy === 'last_per_subject') {
      const latest = new Map<string, number>()
      for (const { subject, sequence } of stream.messages)
        if (this.#wants(subject)) latest.set(subject, sequence)
      this.#first = [...latest.values()].sort((a, b) => a - b)
      this.#next = stream.last + 1
    }
  }

  get info(): Settings {
    return {
      ...{ stream_name: this.stream.name, name: this.name, created: this.created, config: this.config },
      delivered: { consumer_seq: this.#delivered, stream_seq: this.#lastSequence },
      ack_floor: { consumer_seq: 0, stream_seq: 0 },
      ...{ num_ack_pending: 0, num_redelivered: 0, num_waiting: this.#pulls.length },
      num_pending: this.#pending,
    }
  }

  pull(reply: string, asked: Settings): void {
    const nowMs = this.#around.monotonicMs()
    this.#activeMs = nowMs
    this.#pulls.push({
      ...{ reply, left: asked.batch ?? 1, saidMs: nowMs },
      expiresMs: nowMs + (asked.expires ?? 30e9) / NANOS,
      heartbeatMs: (asked.idle_heartbeat ?? 0) / NANOS || Number.POSITIVE_INFINITY,
    })
    this.pump()
  }

  /** Sends what there is to whoever waits for it. */
  pump(): void {
    const { deliver_subject: subject } = this.config
    for (;;) {
      if (subject === undefined) this.#pulls = this.#pulls.filter((pull) => this.#isWanted(pull))
      const pull = this.#pulls[0]
      const to = subject === undefined ? pull?.reply : this.#around.hasInterest(subject) ? subject : undefined
      const message = to === undefined ? null : this.#takeNext()
      if (to === undefined || message === null) return
      this.#send(to, message)
      this.#activeMs = this.#saidMs = this.#around.monotonicMs()
      if (pull === undefined) continue
      pull.saidMs = this.#saidMs
      pull.left--
    }
  }

  /** Says that it is there where it has nothing to say. @returns whether nobody has used it for too long */
  look(): boolean {
    const nowMs = this.#around.monotonicMs()
    const {
      deliver_subject: subject,
      idle_heartbeat: heartbeat = 0,
      inactive_threshold: unused = 5e9,
    } = this.config
    if (subject !== undefined && this.#around.hasInterest(subject)) {
      this.#activeMs = nowMs
      if (heartbeat > 0 && nowMs - this.#saidMs >= heartbeat / NANOS) {
        this.#saidMs = nowMs
        this.#say(subject, '100 Idle Heartbeat', this.#places)
      }
    }
    for (const pull of this.#pulls.filter((each) => this.#isWanted(each))) this.#lookAt(pull, nowMs)
    return nowMs - this.#activeMs > unused / NANOS
  }

  #lookAt(pull: Pull, nowMs: number): void {
    this.#activeMs = nowMs
    if (nowMs >= pull.expiresMs) {
      this.#pulls = this.#pulls.filter((each) => each !== pull)
      this.#say(
        pull.reply,
        '408 Request Timeout',
        `Nats-Pending-Messages: ${pull.left}\r\nNats-Pending-Bytes: 0\r\n`,
      )
    } else if (nowMs - pull.saidMs >= pull.heartbeatMs) {
      pull.saidMs = nowMs
      this.#say(pull.reply, '100 Idle Heartbeat', this.#places)
    }
  }

  get #places(): string {
    return `Nats-Last-Consumer: ${this.#delivered}\r\nNats-Last-Stream: ${this.#lastSequence}\r\n`
  }

  #say(to: string, status: string, headers: string): void {
    const header = Buffer.from(`NATS/1.0 ${status}\r\n${headers}\r\n`)
    this.#around.send(to, { subject: to, header, payload: NO_BYTES })
  }

  #isWanted({ left, reply }: Pull): boolean {
    return left > 0 && this.#around.hasInterest(reply)
  }

  #wants(subject: string): boolean {
    return this.#filters.length === 0 || this.#filters.some((filter) => matches(filter, subject))
  }

  get #pending(): number {
    const { messages } = this.stream
    const from = this.stream.indexOf(this.#next)
    if (this.#filters.length === 0) return this.#first.length + messages.length - from
    let count = this.#first.length
    for (let at = from; at < messages.length; at++) if (this.#wants(messages[at]!.subject)) count++
    return count
  }

  #takeNext(): StoredMessage | null {
    for (let first = this.#first.shift(); first !== undefined; first = this.#first.shift()) {
      const message = this.stream.at(first)
      if (message !== null) return message
    }
    const { messages } = this.stream
    for (let at = this.stream.indexOf(this.#next); at < messages.length; at++) {
      const message = messages[at]!
      this.#next = message.sequence + 1
      if (this.#wants(message.subject)) return message
    }
    return null
  }

  #send(to: string, { sequence, subject, header, payload, atMs }: StoredMessage): void {
    this.#delivered++
    this.#lastSequence = sequence
    const nanos = `${Math.floor(atMs * 1_000)}000`
    const reply = `$JS.ACK.${this.stream.name}.${this.name}.1.${sequence}.${this.#delivered}.${nanos}.${this.#pending}`
    this.#around.send(to, { subject, reply, header, payload })
  }
}

/** Of a message as it was sent: the value of a header. */
const headerOf = (header: Buffer | null, name: string): string | undefined =>
  header === null ? undefined : new RegExp(`^${name}: *(.*)\\r$`, 'im').exec(header.toString('latin1'))?.[1]

const stateOf = (stream: StoredStream, withSubjects: boolean): Settings => {
  const { messages, bytes, first, last, lastAtMs } = stream
  const subjects: Record<string, number> = {}
  if (withSubjects) for (const { subject } of messages) subjects[subject] = (subjects[subject] ?? 0) + 1
  return {
    ...{ messages: messages.length, bytes, first_seq: first, last_seq: last, consumer_count: 0 },
    first_ts: messages[0] === undefined ? NO_TIME : new Date(messages[0].atMs).toISOString(),
    last_ts: lastAtMs === null ? NO_TIME : new Date(lastAtMs).toISOString(),
    ...(withSubjects && { subjects }),
  }
}

export class JetStream {
  readonly #streams: Map<string, StoredStream>
  readonly #around: Surroundings
  readonly #consumers = new Map<string, Consumer>()
  #unnamed = 0

  constructor(streams: Map<string, StoredStream>, around: Surroundings) {
    this.#streams = streams
    this.#around = around
  }

  /** What time takes away. */
  look(): void {
    for (const stream of this.#streams.values()) {
      const { max_age: age = 0 } = stream.config
      if (age > 0) stream.removeOlderThan(this.#around.now() - age / NANOS)
    }
    for (const [name, consumer] of this.#consumers) if (consumer.look()) this.#consumers.delete(name)
  }

  /** Somebody has subscribed to that: consumers may have waited for it. */
  pushTo(pattern: string): void {
    for (const consumer of this.#consumers.values())
      if (consumer.config.deliver_subject === pattern) consumer.pump()
  }

  /** Keeps a message. @returns false where no stream has its subject */
  store({ subject, reply, header, payload }: Passed): boolean {
    const stream = [...this.#streams.values()].find((each) => each.takes(subject))
    if (stream === undefined) return false
    this.#reply(reply, () => {
      const expected = headerOf(header, 'Nats-Expected-Last-Sequence')
      if (expected !== undefined && Number(expected) !== stream.last) throw wrongLast(stream.last)
      const ofSubject = headerOf(header, 'Nats-Expected-Last-Subject-Sequence')
      const last = stream.lastOf(subject)?.sequence ?? 0
      if (ofSubject !== undefined && Number(ofSubject) !== last) throw wrongLast(last)
      const { sequence } = stream.append(subject, header, payload, this.#around.now())
      return { stream: stream.name, seq: sequence }
    })
    this.#pump(stream)
    return true
  }

  /** A call of its API. */
  answer({ subject, reply, payload }: Passed): void {
    const [, , kind = '', ...rest] = subject.split('.')
    const asked: Settings = payload.length === 0 ? {} : JSON.parse(payload.toString())
    if (kind === 'CONSUMER' && rest[0] === 'MSG') {
      this.#consumers.get(`${rest[2]}.${rest[3]}`)?.pull(reply!, asked)
      if (!this.#consumers.has(`${rest[2]}.${rest[3]}`))
        this.#around.send(reply!, {
          subject: reply!,
          header: Buffer.from('NATS/1.0 503\r\n\r\n'),
          payload: NO_BYTES,
        })
      return
    }
    this.#reply(reply, () => {
      if (kind === 'INFO')
        return { memory: 0, storage: 0, streams: 0, consumers: 0, limits: {}, api: {}, tiers: {} }
      return kind === 'STREAM' ? this.#ofStream(rest, asked) : this.#ofConsumer(rest, asked)
    })
  }

  #reply(to: string | undefined, act: () => Settings): void {
    let answer: Settings
    try {
      answer = act()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      answer = { error: { code: error.status, err_code: error.code, description: error.message } }
    }
    if (to !== undefined)
      this.#around.send(to, { subject: to, header: null, payload: Buffer.from(JSON.stringify(answer)) })
  }

  #stream(name: string | undefined): StoredStream {
    const stream = this.#streams.get(name ?? '')
    if (stream === undefined) throw noStream()
    return stream
  }

  #ofStream([act, ...rest]: string[], asked: Settings): Settings {
    if (act === 'CREATE') {
      const made = new StoredStream(asked, this.#around.now())
      if (!this.#streams.has(made.name)) this.#streams.set(made.name, made)
      return this.#infoOf(this.#stream(made.name), false)
    }
    const stream = this.#stream(act === 'MSG' ? rest[1] : rest[0])
    switch (act) {
      case 'INFO':
        return this.#infoOf(stream, asked.subjects_filter !== undefined)
      case 'UPDATE':
        stream.config = { ...stream.config, ...asked }
        return this.#infoOf(stream, false)
      case 'PURGE': {
        const { filter = '>' } = asked
        return { success: true, purged: stream.remove(({ subject }) => matches(filter, subject)) }
      }
      case 'MSG':
        return { message: toldMessage(stream, asked) }
      default:
        throw new ApiError(400, 10_000, `${act} of streams is not simulated`)
    }
  }

  #infoOf(stream: StoredStream, withSubjects: boolean): Settings {
    const created = new Date(stream.createdMs).toISOString()
    return { config: stream.config, created, state: stateOf(stream, withSubjects) }
  }

  #ofConsumer([act, streamName, name]: string[], { config }: Settings): Settings {
    const stream = this.#stream(streamName)
    if (act === 'CREATE') {
      const made = new Consumer(stream, name ?? `unnamed${++this.#unnamed}`, config, this.#around)
      this.#consumers.set(`${streamName}.${made.name}`, made)
      const { info } = made
      made.pump()
      return info
    }
    const key = `${streamName}.${name}`
    const consumer = this.#consumers.get(key)
    if (consumer === undefined) throw noConsumer()
    if (act === 'DELETE') return { success: this.#consumers.delete(key) }
    return consumer.info
  }

  #pump(stream: StoredStream): void {
    for (const consumer of this.#consumers.values()) if (consumer.stream === stream) consumer.pump()
  }
}

function toldMessage(stream: StoredStream, { seq, last_by_subj: pattern }: Settings): Settings {
  const found = seq === undefined ? stream.lastOf(pattern) : stream.at(seq)
  if (found === null) throw noMessage()
  const { subject, sequence, header, payload, atMs } = found
  return {
    ...{ subject, seq: sequence, data: payload.toString('base64'), time: new Date(atMs).toISOString() },
    ...(header !== null && { hdrs: header.toString('base64') }),
  }
}
