// The pauses of a server's collector, from Node's own observer: SIGUSR2 prints one line of JSON about those since the last one.
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'

export interface Pauses {
  young: number[]
  old: number[]
}

/** Observes this process, until it ends. */
export function tellPauses(): void {
  let pauses: Pauses = { young: [], old: [] }
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { duration, detail } = entry as PerformanceEntry & { detail: { kind: number } }
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) pauses.young.push(duration)
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) pauses.old.push(duration)
    }
  }).observe({ entryTypes: ['gc'] })
  process.on('SIGUSR2', () => {
    console.log(JSON.stringify(pauses))
    pauses = { young: [], old: [] }
  })
}
