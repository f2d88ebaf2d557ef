// The two clocks of the server. They are passed in wherever time is needed, so that tests can set them.
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'

export interface Clock {
  /** Wall time, Unix ms. May jump when the machine's clock is set. For what is shown, stored or compared with outside times. */
  now(): number
  /** Milliseconds since some moment of this process. Never jumps. For every limit, age and time-out. */
  monotonicMs(): number
  /** What the machine's clock says, where `now` may not believe it. Default: `now`. */
  machineMs?(): number
  /** Null, or not there: it is not known. */
  boot?(): Boot | null
}

/** How long the machine is up, which nobody sets. */
export interface Boot {
  /** Differs from that of every other boot. */
  id: string
  /** Time asleep included. */
  uptimeMs: number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  boot: readBoot,
}

/** Linux alone tells both apart from a clock that can be set. */
function readBoot(): Boot | null {
  if (process.platform !== 'linux') return null
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return { id, uptimeMs: uptime() * 1_000 }
  } catch {
    return null
  }
}

export const machineMs = (clock: Clock): number => clock.machineMs?.() ?? clock.now()

/** One moment on both clocks. */
export interface Instant {
  wallMs: number
  monotonicMs: number
}

export const readClock = (clock: Clock): Instant => ({
  wallMs: clock.now(),
  monotonicMs: clock.monotonicMs(),
})

/**
 * The moment by which stored times are no older than they certainly are: where the machine's clock is not believed, the earlier of the
 * two. What is limited by age then ends too late rather than too early.
 * @param firstMs when the first of them was stored: a machine's clock that is before it was not set, and would bring back all that ended
 */
export function readCautiously(clock: Clock, firstMs = 0): Instant {
  const wallMs = clock.now()
  const machine = machineMs(clock)
  return { wallMs: machine < firstMs ? wallMs : Math.min(wallMs, machine), monotonicMs: clock.monotonicMs() }
}

/** The monotonic time of an event that was stored with the wall time `storedMs`. A stored time in the future counts as now. */
export const toMonotonicMs = (storedMs: number, now: Instant): number =>
  now.monotonicMs - Math.max(0, now.wallMs - storedMs)

/**
 * The monotonic time at which a stored span of wall time ends. Never further ahead than the span is long, also when the wall
 * clock was set back since it was stored.
 */
export const toMonotonicDeadlineMs = (fromMs: number, untilMs: number, now: Instant): number =>
  toMonotonicMs(fromMs, now) + (untilMs - fromMs)
