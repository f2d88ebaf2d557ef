// Writes a tape by running the feed on a market that takes everything, so that the tape has the answers that the feed asks for.
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Clock } from '../../lib/clock.ts'
import type { EventSink } from '../../schema/event.ts'
import type { FeedLog } from '../types.ts'
import { wait } from '../wait.ts'
import { SolanaFeed } from './solana.ts'
import { type EndpointSettings, LiveSource } from './source.ts'
import { type TapeEnd, TapeError, TapeWriter } from './tape.ts'

export interface CaptureOptions {
  solana: EndpointSettings
  /** The file to write. */
  out: string
  bytesMax: number
  timeMsMax: number
  signal: AbortSignal
}

const takesAll: EventSink = { apply: () => null }
const quiet: FeedLog = { info() {}, warn() {}, error() {} }

/**
 * Writes a tape until it is full, its time is over, or the signal aborts; none where nothing came.
 * @returns `bytes` before compression; how many connections ended on the way, and whether there was none at the end; as `problem` the
 * latest error of the connection @throws TapeError where the file exists already
 */
export async function captureTape(options: CaptureOptions, clock: Clock) {
  const { solana, out, signal } = options
  if (existsSync(out)) throw new TapeError(`${out} exists already`)
  const full = new AbortController()
  const tape = new TapeWriter(out, options.bytesMax, clock, (end) => full.abort(end))
  const source = new LiveSource({ ...solana, tape }, clock)
  // Every pool: the tape may be played with any setting.
  const feed = new SolanaFeed(
    { source, commitment: solana.commitment, pools: 'all', holds: () => false, random: Math.random },
    takesAll,
    quiet,
  )
  await wait(options.timeMsMax, AbortSignal.any([signal, full.signal]))
  const { latestError, isConnected, disconnects } = feed.describe()
  await feed.stop()
  await tape.close()
  // So that the same command may be given again once the endpoint answers.
  if (tape.lines === 0) await rm(out, { force: true })
  const end: TapeEnd = full.signal.aborted ? full.signal.reason : signal.aborted ? 'stopped' : 'time'
  const problem = latestError?.message ?? null
  return { lines: tape.lines, bytes: tape.bytes, end, problem, disconnects: Number(disconnects), isConnected }
}
