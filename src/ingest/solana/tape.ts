// A tape of the chain: every notification and every answer as it came, one JSON object a line, compressed. Played, it goes through
// the same code as the endpoints did, so that a report of a fault is a file.
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip, type Gzip } from 'node:zlib'
import { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { type ReplaySpeed, SpeedPace } from '../replay/pace.ts'
import { readLines } from '../replay/text-lines.ts'
import type { UpstreamEnd } from '../upstream-socket.ts'
import { wait } from '../wait.ts'
import {
  FRAME_BYTES_MAX,
  RPC_ANSWER_BYTES_MAX,
  TAPE_ANSWERS_BYTES_MAX,
  TAPE_WAITING_BYTES_MAX,
} from './limits.ts'
import type { ChainTape, Rpc, RpcAnswer } from './rpc.ts'
import type { ChainSource, Settled } from './source.ts'
import { answeredBy, FrameReader, type SubscriptionHandlers } from './subscription.ts'

const FORMAT = 'mintlake-solana-tape'
const LINE_CHARACTERS_MAX = 2 * RPC_ANSWER_BYTES_MAX
const headSchema = z.object({ format: z.literal(FORMAT), version: z.literal(1) })
const endSchema = z.object({ end: z.number() })
const lineSchema = z.union([
  z.object({ at: z.number(), frame: z.string().max(FRAME_BYTES_MAX) }),
  z.object({ at: z.number(), method: z.string(), params: z.array(z.unknown()), result: z.unknown() }),
])
const accountsSchema = z.object({
  context: z.object({ slot: z.number() }).optional(),
  value: z.array(z.unknown()),
})

/** A tape cannot be played. The message says why, and where. */
export class TapeError extends Error {}

/** Why a tape ended. */
export type TapeEnd = 'stopped' | 'bytes' | 'answers' | 'time' | 'slow disk'

/**
 * Writes a tape. What does not fit, is an answer too many to be played, or finds a disk that is far behind, is left out, and the tape
 * ends before it.
 */
export class TapeWriter implements ChainTape {
  lines = 0
  bytes = 0
  readonly #gzip: Gzip = createGzip({ level: constants.Z_BEST_SPEED })
  readonly #written: Promise<void>
  readonly #clock: Clock
  readonly #bytesMax: number
  readonly #answersMax: number
  readonly #onFull: (end: TapeEnd) => void
  #answerBytes = 0
  #isOpen = true

  /** @param onFull called when the tape takes no more @param answersMax bytes of all answers */
  constructor(
    path: string,
    bytesMax: number,
    clock: Clock,
    onFull: (end: TapeEnd) => void,
    answersMax = TAPE_ANSWERS_BYTES_MAX,
  ) {
    this.#clock = clock
    this.#bytesMax = bytesMax
    this.#answersMax = answersMax
    this.#onFull = onFull
    this.#written = pipeline(this.#gzip, createWriteStream(path, { flags: 'wx' }))
    this.#written.catch(() => onFull('stopped'))
    this.#put(lineOf({ format: FORMAT, version: 1 }))
  }

  frame(text: string): void {
    this.#write({ at: this.#clock.now(), frame: text })
  }

  answer(method: string, params: readonly unknown[], result: unknown): void {
    this.#write({ at: this.#clock.now(), method, params, result })
  }

  /** Writes the end, by which a reader knows that nothing is missing. @throws the error of the disk */
  async close(): Promise<void> {
    this.#end()
    this.#gzip.end()
    await this.#written
  }

  #write(line: object): void {
    if (!this.#isOpen) return
    const text = lineOf(line)
    // All of them: which of them a reader does without, since it has them already, is not looked at here.
    if ('method' in line) this.#answerBytes += text.length
    const whyFull = this.#whyFull(text.length)
    if (whyFull === null) {
      this.lines++
      this.#put(text)
      return
    }
    this.#end()
    this.#onFull(whyFull)
  }

  #end(): void {
    if (this.#isOpen) this.#put(lineOf({ end: this.lines }))
    this.#isOpen = false
  }

  #put(text: string): void {
    this.bytes += text.length
    this.#gzip.write(text)
  }

  #whyFull(more: number): TapeEnd | null {
    if (this.bytes + more > this.#bytesMax) return 'bytes'
    if (this.#answerBytes > this.#answersMax) return 'answers'
    return this.#gzip.writableLength > TAPE_WAITING_BYTES_MAX ? 'slow disk' : null
  }
}

const lineOf = (line: object): string => `${JSON.stringify(line)}\n`

/** The lines of a tape, checked. @throws TapeError where it is damaged or has no end */
async function* readTape(path: string): AsyncGenerator<z.infer<typeof lineSchema>> {
  let number = 0
  let hasEnd = false
  try {
    for await (const texts of readLines(path, LINE_CHARACTERS_MAX))
      for (const text of texts) {
        const value = parseJson(text)
        if (number++ === 0) {
          if (!safeParse(headSchema, value).success) throw new TapeError(`${path} is no tape of the chain`)
          continue
        }
        const end = safeParse(endSchema, value).data
        if (end !== undefined && end.end !== number - 2)
          throw new TapeError(`${path} has ${number - 2} lines instead of ${end.end}`)
        const line = end === undefined ? safeParse(lineSchema, value).data : undefined
        if (hasEnd || (end === undefined && line === undefined))
          throw new TapeError(`line ${number} of ${path} is none of a tape`)
        hasEnd = end !== undefined
        if (line !== undefined) yield line
      }
  } catch (error) {
    if (error instanceof TapeError) throw error
    throw new TapeError(`${path} cannot be read behind line ${number}: ${errorMessage(error)}`)
  }
  if (!hasEnd) throw new TapeError(`${path} breaks off after line ${number}`)
}

const answerKey = (method: string, question: unknown): string =>
  `${method} ${JSON.stringify(question ?? null)}`

/** Accounts are asked for in other batches than then: each is a question of its own. Undefined: the method asks for no accounts. */
const accountKeys = (method: string, [addresses]: readonly unknown[]): string[] | undefined =>
  method === 'getMultipleAccounts' && Array.isArray(addresses)
    ? addresses.map((address) => answerKey(method, String(address)))
    : undefined

interface Kept {
  result: unknown
  /** Of which an account is as it was; null: the tape does not say. */
  slot: number | null
}

/** Gives the answers of a tape, the first that it has of each question. */
class TapeRpc implements Rpc {
  readonly host = 'tape'
  readonly endpointCount = 1
  readonly spare = this
  onMethodRefused = null
  readonly #answers = new Map<string, Kept>()
  readonly #bytesMax: number
  #bytes = 0
  missing = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  add(method: string, params: readonly unknown[], result: unknown): void {
    const accounts = safeParse(accountsSchema, result).data
    const keys = accounts && accountKeys(method, params)
    const slot = accounts?.context?.slot ?? null
    if (keys === undefined) this.#keep(answerKey(method, params[0]), { result, slot: null })
    else for (const [index, key] of keys.entries()) this.#keep(key, { result: accounts?.value[index], slot })
  }

  #keep(key: string, { result = null, slot }: Kept): void {
    // What the endpoint did not have yet was asked for again.
    if ((this.#answers.get(key)?.result ?? null) !== null) return
    this.#bytes += JSON.stringify(result).length
    if (this.#bytes > this.#bytesMax)
      throw new TapeError(`the answers of the tape are larger than ${this.#bytesMax} bytes`)
    this.#answers.set(key, { result, slot })
  }

  call(method: string, params: readonly unknown[]): Promise<RpcAnswer> {
    const keys = accountKeys(method, params)
    if (keys !== undefined) return Promise.resolve({ ok: true, result: this.#accountsOf(keys) })
    const kept = this.#answers.get(answerKey(method, params[0]))
    if (kept !== undefined) return Promise.resolve({ ok: true, result: kept.result })
    this.missing++
    return Promise.resolve({ ok: false, fault: 'refused', message: `the tape has no answer to ${method}` })
  }

  /** As of the newest slot of them; of none where one was not asked for then: nobody knows whether it existed. */
  #accountsOf(keys: readonly string[]): z.infer<typeof accountsSchema> {
    const kept = keys.map((key) => this.#answers.get(key))
    const slots = kept.flatMap((each) => each?.slot ?? [])
    const context = slots.length === keys.length ? { slot: Math.max(...slots) } : undefined
    return { context, value: kept.map((each) => each?.result ?? null) }
  }

  describe(): Record<string, unknown> {
    const { host, missing } = this
    return { host, missing }
  }
}

/** A tape as a source of the feed. Its clock has the times of the tape instead of those of the machine. */
class TapeSource implements ChainSource {
  readonly rpc: TapeRpc
  readonly clock: Clock = { now: () => this.#atMs, monotonicMs: () => this.#atMs }
  readonly hasEnd = true
  readonly hasOwnTime = true
  readonly collectMs = 0
  readonly host = 'tape'
  #atMs: number
  readonly #path: string
  readonly #pace: SpeedPace

  constructor(path: string, rpc: TapeRpc, startMs: number, pace: SpeedPace) {
    this.#path = path
    this.rpc = rpc
    this.#atMs = startMs
    this.#pace = pace
  }

  async connect(handlers: SubscriptionHandlers, signal: AbortSignal, settled: Settled): Promise<UpstreamEnd> {
    /** Of this connection: a request that is answered twice was made by the next one. */
    const answered = new Set<unknown>()
    const next = (reason: string) => {
      handlers.onNext?.(reason)
      answered.clear()
      frames = new FrameReader(handlers, next)
    }
    let frames = new FrameReader(handlers, next)
    for await (const line of readTape(this.#path)) {
      if (signal.aborted) break
      if (!('frame' in line)) continue
      const request = answeredBy(line.frame)
      if (answered.has(request)) next('the connection of the tape has ended')
      if (request !== null) answered.add(request)
      await this.#play(line, frames, signal)
      await settled()
    }
    return { reason: 'the tape has ended' }
  }

  async #play(
    { at, frame }: { at: number; frame: string },
    frames: FrameReader,
    signal: AbortSignal,
  ): Promise<void> {
    this.#pace.begin(at)
    while (!signal.aborted && at > this.#pace.dueMs()) await wait(this.#pace.waitMs(at), signal)
    this.#atMs = Math.max(this.#atMs, at)
    frames.read(frame)
  }

  wait(): Promise<void> {
    return Promise.resolve()
  }

  masked(text: string): string {
    return text
  }
}

/**
 * Opens a tape: reads its answers, which may be wanted earlier than they came. @throws TapeError where it is none, or is damaged
 * @param nowMs the monotonic clock of the machine @param answersMax bytes of the answers that are kept
 */
export async function openTape(
  path: string,
  speed: ReplaySpeed,
  nowMs: () => number,
  answersMax = TAPE_ANSWERS_BYTES_MAX,
): Promise<TapeSource> {
  const rpc = new TapeRpc(answersMax)
  let startMs: number | null = null
  for await (const line of readTape(path)) {
    if ('method' in line) rpc.add(line.method, line.params, line.result)
    startMs ??= line.at
  }
  return new TapeSource(path, rpc, startMs ?? 0, new SpeedPace(speed, nowMs))
}
