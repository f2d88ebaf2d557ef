// In: a chore and an interval. Out: the chore done again and again, never twice at once. A failure is reported and the
// next turn comes all the same. Never keeps the process alive.

export interface PeriodicJob {
  /** No further turn. The one under way ends by itself, and reports a failure as ever. */
  stop(): void
}

/** Runs `chore` every `everyMs`, counted from the end of the turn before; 0: never. */
export function startPeriodic(
  job: () => Promise<void>,
  everyMs: number,
  onError: (error: unknown) => void,
): PeriodicJob {
  let stopped = everyMs === 0
  let timer: NodeJS.Timeout | undefined

  function schedule(): void {
    if (stopped) return
    timer = setTimeout(() => {
      void job().catch(onError).then(schedule)
    }, everyMs)
    timer.unref()
  }

  schedule()
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
