// A NATS server with JetStream, as far as the clients of the cluster use it: its protocol, over simulated connections, so that the real
// client library speaks to it.
import type { Machine, SimulatedProcess } from '../machine/machine.ts'
import type { ConnectionEnd, Network } from '../machine/network.ts'
import { JetStream } from './jetstream.ts'
import type { StoredStream } from './streams.ts'
import { matches } from './subjects.ts'

export const NATS_PORT = 4_222
/** How often it looks at what has run out, ms. */
const LOOK_MS = 250
const PAYLOAD_BYTES_MAX = 1_048_576
const LINE_END = Buffer.from('\r\n')
const NOBODY_THERE = 'NATS/1.0 503\r\n\r\n'

/** A message under way. */
export interface Passed {
  /** As who gets it sees it. */
  subject: string
  reply?: string
  header: Buffer | null
  payload: Buffer
}

interface Subscription {
  pattern: string
  sid: string
  /** So many messages are left; null: it has no end. */
  left: number | null
}

class Client {
  readonly subscriptions = new Map<string, Subscription>()
  readonly #end: ConnectionEnd
  readonly #server: NatsServer
  #rest: Buffer = Buffer.alloc(0)
  #out: Buffer[] = []

  constructor(end: ConnectionEnd, server: NatsServer) {
    this.#end = end
    this.#server = server
    end.onBytes = (bytes) => this.#take(bytes)
    end.onClose = () => server.forget(this)
    const info = {
      ...{ server_id: 'SIMULATED', server_name: 'simulated', version: '2.9.10', go: 'none', proto: 1 },
      ...{ host: '127.0.0.1', port: NATS_PORT, headers: true, max_payload: PAYLOAD_BYTES_MAX },
      ...{ jetstream: true, client_id: 1, client_ip: '127.0.0.1' },
    }
    this.#write(`INFO ${JSON.stringify(info)}\r\n`)
  }

  deliver({ sid, left }: Subscription, { subject, reply, header, payload }: Passed): void {
    const to = reply === undefined ? '' : ` ${reply}`
    const size = payload.length + (header?.length ?? 0)
    const line =
      header === null
        ? `MSG ${subject} ${sid}${to} ${size}\r\n`
        : `HMSG ${subject} ${sid}${to} ${header.length} ${size}\r\n`
    this.#write(line, ...(header === null ? [] : [header]), payload, LINE_END)
    if (left === null) return
    if (left <= 1) this.subscriptions.delete(sid)
    else this.subscriptions.get(sid)!.left = left - 1
  }

  /** All that one turn has to say is sent together. */
  #write(...parts: (string | Buffer)[]): void {
    if (this.#out.length === 0) queueMicrotask(() => this.#end.send(Buffer.concat(this.#out.splice(0))))
    for (const part of parts) this.#out.push(typeof part === 'string' ? Buffer.from(part) : part)
  }

  #take(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    for (let taken = this.#takeOne(); taken > 0; taken = this.#takeOne())
      this.#rest = this.#rest.subarray(taken)
  }

  /** @returns how long the first operation is; 0: it is not whole yet */
  #takeOne(): number {
    const end = this.#rest.indexOf(LINE_END)
    if (end < 0) return 0
    const [operation = '', ...words] = this.#rest.toString('latin1', 0, end).split(' ')
    const from = end + LINE_END.length
    if (operation === 'PUB' || operation === 'HPUB')
      return this.#takeMessage(operation === 'HPUB', words, from)
    if (operation === 'PING') this.#write('PONG\r\n')
    if (operation === 'SUB') this.#subscribe(words)
    if (operation === 'UNSUB') this.#unsubscribe(words)
    return from
  }

  #takeMessage(hasHeader: boolean, words: string[], from: number): number {
    const size = Number(words.at(-1))
    if (this.#rest.length < from + size + LINE_END.length) return 0
    const headerBytes = hasHeader ? Number(words.at(-2)) : 0
    const [subject = '', reply] = words.slice(0, hasHeader ? -2 : -1)
    const header = hasHeader ? Buffer.from(this.#rest.subarray(from, from + headerBytes)) : null
    const payload = Buffer.from(this.#rest.subarray(from + headerBytes, from + size))
    this.#server.publish({ subject, header, payload, ...(reply !== undefined && { reply }) })
    return from + size + LINE_END.length
  }

  #subscribe(words: string[]): void {
    const [pattern, sid] = [words[0]!, words.at(-1)!]
    this.subscriptions.set(sid, { pattern, sid, left: null })
    this.#server.jetStream.pushTo(pattern)
  }

  #unsubscribe([sid = '', left]: string[]): void {
    const subscription = this.subscriptions.get(sid)
    if (subscription === undefined) return
    if (left === undefined || Number(left) === 0) this.subscriptions.delete(sid)
    else subscription.left = Number(left)
  }
}

export class NatsServer {
  readonly process: SimulatedProcess
  readonly jetStream: JetStream
  readonly #clients = new Set<Client>()

  /** @param streams what its disk has */
  constructor(machine: Machine, network: Network, streams: Map<string, StoredStream>) {
    this.process = machine.fork('nats', 'nats')
    this.jetStream = new JetStream(streams, {
      now: () => machine.startMs + machine.nowMs,
      monotonicMs: () => machine.nowMs,
      hasInterest: (subject) => this.#hasInterest(subject),
      send: (to, message) => void this.#deliver(to, message),
    })
    network.listen(NATS_PORT, this.process, (end) => void this.#clients.add(new Client(end, this)))
    const look = (): void => {
      this.jetStream.look()
      machine.after(LOOK_MS, look, this.process)
    }
    machine.after(LOOK_MS, look, this.process)
  }

  publish(message: Passed): void {
    const { subject, reply } = message
    if (subject.startsWith('$JS.API.')) {
      this.jetStream.answer(message)
      return
    }
    const isStored = this.jetStream.store(message)
    if (this.#deliver(subject, message) || isStored || reply === undefined) return
    this.#deliver(reply, { subject: reply, header: Buffer.from(NOBODY_THERE), payload: Buffer.alloc(0) })
  }

  forget(client: Client): void {
    this.#clients.delete(client)
  }

  #hasInterest(subject: string): boolean {
    for (const { subscriptions } of this.#clients)
      for (const { pattern } of subscriptions.values()) if (matches(pattern, subject)) return true
    return false
  }

  /** @returns whether anybody gets it */
  #deliver(to: string, message: Passed): boolean {
    let isTaken = false
    for (const client of this.#clients)
      for (const subscription of client.subscriptions.values())
        if (matches(subscription.pattern, to)) {
          client.deliver(subscription, message)
          isTaken = true
        }
    return isTaken
  }
}
