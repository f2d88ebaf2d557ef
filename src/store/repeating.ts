// In: a chore and an interval. Out: the chore done again and again, never twice at once. A failure is reported and the
// next turn comes all the same. Never keeps the process alive.

export interface Repeating {
  /** No further turn; resolves when the one under way has ended. */
  stop(): Promise<void>
}

/** Runs `chore` every `everyMs`, counted from the end of the turn before; 0: never. */
export function repeating(
  chore: () => Promise<void>,
  everyMs: number,
  onError: (error: unknown) => void,
): Repeating {
  let stopped = everyMs === 0
  let timer: NodeJS.Timeout | undefined
  let turn: Promise<void> = Promise.resolve()

  function schedule(): void {
    if (stopped) return
    timer = setTimeout(() => {
      turn = chore().catch(onError).then(schedule)
    }, everyMs)
    timer.unref()
  }

  schedule()
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await turn
    },
  }
}
