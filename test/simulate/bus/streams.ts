// What the simulated NATS has on its disk: streams of messages. They outlive its process, unless the disk loses them.
import { matches } from './subjects.ts'

export interface StoredMessage {
  sequence: number
  subject: string
  /** Of the message, as it is sent; null: none. */
  header: Buffer | null
  payload: Buffer
  atMs: number
}

// biome-ignore lint/suspicious/noExplicitAny: settings are the client's, as it has sent them
export type Settings = Record<string, any>

const ENVELOPE_BYTES = 64

export class StoredStream {
  config: Settings
  readonly createdMs: number
  last = 0
  lastAtMs: number | null = null
  bytes = 0
  messages: StoredMessage[] = []

  constructor(config: Settings, createdMs: number) {
    this.config = config
    this.createdMs = createdMs
  }

  get name(): string {
    return this.config.name
  }

  get first(): number {
    return this.messages[0]?.sequence ?? this.last + 1
  }

  takes(subject: string): boolean {
    return (this.config.subjects as string[]).some((pattern) => matches(pattern, subject))
  }

  /** Where in `messages` the first one of at least that number is. */
  indexOf(sequence: number): number {
    let [low, high] = [0, this.messages.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.messages[middle]!.sequence < sequence) low = middle + 1
      else high = middle
    }
    return low
  }

  at(sequence: number): StoredMessage | null {
    const found = this.messages[this.indexOf(sequence)]
    return found?.sequence === sequence ? found : null
  }

  lastOf(pattern: string): StoredMessage | null {
    return this.messages.findLast(({ subject }) => matches(pattern, subject)) ?? null
  }

  append(subject: string, header: Buffer | null, payload: Buffer, atMs: number): StoredMessage {
    const message = { sequence: ++this.last, subject, header, payload, atMs }
    const { max_msgs_per_subject: keptOfSubject = -1, max_bytes: bytesMax = -1 } = this.config
    if (keptOfSubject === 1 || /^Nats-Rollup: *sub\r$/im.test(header?.toString() ?? ''))
      this.remove((each) => each.subject === subject)
    this.messages.push(message)
    this.lastAtMs = atMs
    this.bytes += payload.length + ENVELOPE_BYTES
    while (bytesMax > 0 && this.bytes > bytesMax && this.messages.length > 1) this.#removeFirst()
    return message
  }

  /** @returns how many */
  remove(isRemoved: (message: StoredMessage) => boolean): number {
    const before = this.messages.length
    this.messages = this.messages.filter((message) => !isRemoved(message))
    this.bytes = this.messages.reduce((sum, { payload }) => sum + payload.length + ENVELOPE_BYTES, 0)
    return before - this.messages.length
  }

  removeOlderThan(atMs: number): void {
    while (this.messages.length > 0 && this.messages[0]!.atMs < atMs) this.#removeFirst()
  }

  /** The disk has lost the newest messages: their numbers are used again. */
  loseLast(count: number): void {
    const lost = this.messages.splice(Math.max(0, this.messages.length - count))
    if (lost.length === 0) return
    this.last = lost[0]!.sequence - 1
    for (const { payload } of lost) this.bytes -= payload.length + ENVELOPE_BYTES
  }

  #removeFirst(): void {
    this.bytes -= this.messages.shift()!.payload.length + ENVELOPE_BYTES
  }
}
