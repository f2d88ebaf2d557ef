// Whether a reader keeps up, what it says about it, and when its followers have to go elsewhere.
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { ClusterHealth } from '../../server/market-publisher.ts'
import { READY_LAG_MS_MAX } from '../limits.ts'
import type { Lag } from './lag.ts'
import { WATCH_MS, WRITER_AWAY_MS } from './limits.ts'
import type { ReaderLink } from './reader-link.ts'

export interface ReaderHealthOptions {
  link: ReaderLink
  clock: Clock
  log: Log
  lagMaxMs: number
  /** It keeps up for the first time. */
  onReady(): void
  /** It does not keep up any more. */
  onBehind(): void
}

/** Of a reader that has never had all that the writer has. */
const NO_MARKET = 'has no market to show yet'

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

export class ReaderHealth {
  readonly #options: ReaderHealthOptions
  readonly #timer: NodeJS.Timeout
  #isReady = false
  /** Whether the market may be read here. */
  #isServing = false

  constructor(options: ReaderHealthOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), WATCH_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** See Lag. */
  lagMs(): number {
    const { link, clock } = this.#options
    return link.parts?.replica.lag.lagMs(clock.monotonicMs()) ?? Number.POSITIVE_INFINITY
  }

  behindMs(): number {
    const { link, clock } = this.#options
    return link.parts?.replica.lag.behindMs(clock.monotonicMs()) ?? Number.POSITIVE_INFINITY
  }

  health(): ClusterHealth {
    const { gate, parts } = this.#options.link
    const { nodeId } = gate
    const [lagMs, behindMs] = [this.lagMs(), this.behindMs()].map(toWholeMs)
    const reasons = this.#reasons()
    const replica = parts && {
      state: parts.replica.state,
      eventNo: parts.replica.eventNo,
      runId: parts.replica.runId,
      restored: parts.replica.restored,
    }
    const connected = parts?.bus.watch.isConnected ?? false
    return {
      reasons,
      notServing: this.#notServing(),
      notReachable: null,
      report: { role: 'reader', reasons, nodeId, connected, lagMs, behindMs, ...replica },
    }
  }

  /** Why the market must not be read here, as a sentence; null: it may. */
  #notServing(): string | null {
    const { link } = this.#options
    const { parts, trouble } = link
    if (parts === null) return `This reader is not connected: ${trouble ?? 'it is being started'}.`
    const behindMs = this.behindMs()
    if (!this.#isReady) return `This reader is catching up with the writer${because(parts.replica.trouble)}.`
    if (this.#serves()) return null
    if (!parts.bus.watch.isConnected) return `This reader is cut off from the bus for ${seconds(behindMs)}.`
    return `This reader is ${seconds(behindMs)} behind the writer${because(parts.replica.trouble)}.`
  }

  #reasons(): string[] {
    const { link } = this.#options
    const { parts, trouble } = link
    if (parts === null) return trouble === null ? [] : [trouble]
    const { replica } = parts
    const { watch } = parts.bus
    const reasons: string[] = []
    if (!watch.isConnected)
      reasons.push(
        `the connection to the bus is lost: this reader ${this.#isReady ? 'shows an older market' : NO_MARKET}`,
      )
    else if (replica.trouble !== null) reasons.push(replica.trouble)
    reasons.push(...link.refusals)
    if (parts.passingOn.trouble !== null)
      reasons.push(`what writes is not passed on to the writer: ${parts.passingOn.trouble}`)
    const notServing = this.#isReady ? this.#notServing() : null
    const standsStill = watch.isConnected ? this.#standsStill(replica.lag, notServing !== null) : null
    return [...reasons, ...[standsStill, notServing].filter((reason) => reason !== null)]
  }

  /** Why the market of a reader that is connected is an older one, as a sentence; null: it is not, or it was said. */
  #standsStill(lag: Lag, isRefusing: boolean): string | null {
    const { clock } = this.#options
    const [lagMs, behindMs] = [this.lagMs(), this.behindMs()]
    if (lagMs <= WRITER_AWAY_MS) return null
    if (behindMs < WRITER_AWAY_MS) {
      const isThere = lag.silentMs(clock.monotonicMs()) < WRITER_AWAY_MS
      return `the writer ${isThere ? 'tells nothing new' : 'is silent'}${since(clock, lagMs)}: the market stands still`
    }
    if (!this.#isReady) return `this reader ${NO_MARKET}`
    return isRefusing
      ? null
      : `this reader is ${seconds(behindMs)} behind the writer: it shows an older market`
  }

  #look(): void {
    const { link, onReady } = this.#options
    const { parts } = link
    if (!this.#isReady) {
      const isCurrent = parts?.replica.isCurrent && parts.accounts.isReady
      if (!isCurrent || this.behindMs() > READY_LAG_MS_MAX) return
      this.#isReady = true
      onReady()
    }
    this.#serves()
  }

  /** It stops at `lagMaxMs`, and begins again only when it has caught up: where the two were one, clients would come and go. */
  #serves(): boolean {
    const { log, lagMaxMs, onBehind } = this.#options
    const behindMs = this.behindMs()
    const isServing = behindMs <= (this.#isServing ? lagMaxMs : Math.min(lagMaxMs, READY_LAG_MS_MAX))
    if (isServing === this.#isServing) return isServing
    this.#isServing = isServing
    if (isServing) log.info({ behindMs }, 'this reader keeps up with the writer')
    else {
      log.warn({ behindMs }, 'this reader is too far behind the writer: it refuses reads of the market')
      onBehind()
    }
    return isServing
  }
}

const because = (trouble: string | null): string => (trouble === null ? '' : `: ${trouble}`)
const since = (clock: Clock, ms: number): string =>
  Number.isFinite(ms) ? ` since ${new Date(clock.now() - ms).toISOString()}` : ''
/** Null where it is not known. */
const toWholeMs = (ms: number): number | null => (Number.isFinite(ms) ? Math.round(ms) : null)
