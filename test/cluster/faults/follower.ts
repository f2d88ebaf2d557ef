// A follower of the whole market that connects again wherever it can, and holds what it is sent to what is promised: every change, in
// order, none twice, except after `resync`.
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { type Nodes, pause } from './nodes.ts'

const CONNECT_MS_MAX = 10_000
const RETRY_MS = 100

interface Line {
  event?: string
  reason?: string
  mint?: string
  seq?: number
  priceUsd?: number
}

export class Follower {
  /** Rows as last sent, without their positions, by mint. */
  readonly rows = new Map<string, string>()
  readonly faults: string[] = []
  /** How often it was sent `resync`, and for which reasons it was sent away. */
  resyncs = 0
  endReasons: string[] = []
  connections = 0
  position = 0
  readonly #prices = new Map<string, number>()
  readonly #nodes: Nodes
  readonly #mayUseWriter: boolean
  #turn: number
  /** Mints that came since `resync` or since a first connection; null while there are changes only. */
  #filling: Set<string> | null = new Set()
  #abort = new AbortController()
  #isEnding = false
  readonly #done: Promise<void>

  constructor(nodes: Nodes, turn: number, mayUseWriter = false) {
    this.#nodes = nodes
    this.#turn = turn
    this.#mayUseWriter = mayUseWriter
    this.#done = this.#run()
  }

  async end(): Promise<void> {
    this.#isEnding = true
    this.#abort.abort()
    await this.#done
  }

  /** Connects again, as a client does whom a load balancer moves. */
  move(): void {
    this.#abort.abort()
  }

  async #run(): Promise<void> {
    while (!this.#isEnding) {
      this.#abort = new AbortController()
      await this.#follow().catch(() => undefined)
      if (!this.#isEnding) await pause(RETRY_MS)
    }
  }

  async #follow(): Promise<void> {
    const nodes = this.#mayUseWriter ? this.#nodes.all() : this.#nodes.readers
    if (nodes.length === 0) return
    const since = this.#filling === null ? `&since=${this.position}` : ''
    const url = `${nodes[this.#turn++ % nodes.length].url}/api/v1/market?format=ndjson&follow=1&limit=1000${since}`
    const timer = setTimeout(() => this.#abort.abort(), CONNECT_MS_MAX)
    const answer = await fetch(url, { signal: this.#abort.signal }).finally(() => clearTimeout(timer))
    if (!answer.ok || answer.body === null) {
      if (answer.status !== 503) this.faults.push(`${url} was answered ${answer.status}`)
      await answer.body?.cancel()
      return
    }
    this.connections++
    if (this.#filling !== null) this.#filling = new Set()
    const body = Readable.fromWeb(answer.body as import('node:stream/web').ReadableStream)
    body.on('error', () => undefined)
    for await (const text of createInterface({ input: body })) {
      if (this.#abort.signal.aborted) return
      this.#take(text)
    }
  }

  /** A line that was cut by the end of its connection is no line. */
  #take(text: string): void {
    if (!text.endsWith('}')) return
    const line = JSON.parse(text) as Line
    if (line.event === 'resync') {
      this.resyncs++
      this.#filling = new Set()
    } else if (line.event === 'heartbeat') this.#heartbeat(line)
    else if (line.event === 'bye') this.endReasons.push(`${line.reason}`)
    else if (line.event === 'left') this.rows.delete(`${line.mint}`)
    else if (line.event === undefined) this.#row(line)
  }

  #heartbeat({ seq }: Line): void {
    if (seq === undefined) return
    if (seq < this.position) this.faults.push(`the position went back from ${this.position} to ${seq}`)
    this.position = seq
    if (this.#filling === null) return
    for (const mint of this.rows.keys()) if (!this.#filling.has(mint)) this.rows.delete(mint)
    this.#filling = null
  }

  #row({ seq, ...row }: Line): void {
    const mint = `${row.mint}`
    const price = Number(row.priceUsd)
    if (this.#filling !== null) this.#filling.add(mint)
    else {
      if (seq === undefined || seq <= this.position)
        this.faults.push(`a change at ${seq} came after position ${this.position}`)
      if (price < (this.#prices.get(mint) ?? 0)) this.faults.push(`the price of ${mint} went back`)
    }
    if (seq !== undefined) this.position = Math.max(this.position, seq)
    this.#prices.set(mint, price)
    this.rows.set(mint, JSON.stringify(row))
  }
}
