import { CLOCK_JUMP_MS_MIN, type SteadyClock } from '../lib/steady-clock.ts'

const seconds = (ms: number): string =>
  `${String(Math.round(ms / 1_000)).replaceAll(/\B(?=(\d{3})+$)/g, ' ')} s`

const REMEDY = 'if the clock is right, mintlake clock trust brings the market to it; else set the clock'

/**
 * What is wrong with the clock, as sentences: where it cannot be told whether it is the clock or what was recorded.
 * @param marketMs market time; null: it is that of recorded data
 */
export function clockReasons(clock: SteadyClock, marketMs: number | null): string[] {
  const { jumpMs } = clock
  const what = marketMs === null ? 'the time of this server' : 'market time'
  if (jumpMs > 0)
    return [
      `the clock has leapt, and is ${seconds(jumpMs)} ahead of ${what}, which follows it if it stays: ${REMEDY}`,
    ]
  const aheadMs = Math.max(-jumpMs, (marketMs ?? 0) - clock.machineMs())
  return aheadMs < CLOCK_JUMP_MS_MIN ? [] : [`${what} is ${seconds(aheadMs)} ahead of the clock: ${REMEDY}`]
}
