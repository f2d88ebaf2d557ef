/** Points in the work of the lake process at which a test may kill it. */
export const CRASH_POINTS = [
  'flush:read',
  'flush:copied',
  'flush:synced',
  'flush:published',
  'flush:recorded',
  'flush:listed',
  'flush:linked',
  'events:read',
  'events:copied',
  'events:synced',
  'events:published',
  'events:recorded',
  'events:listed',
  'events:linked',
  'merge:planned',
  'merge:copied',
  'merge:synced',
  'merge:published',
  'merge:listed',
  'merge:linked',
  'expire:removed',
  'expire:forgotten',
  'outcomes:computed',
  'outcomes:recorded',
  'outcomes:committed',
  'catalog:written',
  'catalog:swapped',
  'retain:listed',
  'retain:linked',
] as const
export type CrashPoint = (typeof CRASH_POINTS)[number]

/** The point at which a test kills the first lake process, and whether the server is killed with it. */
export interface Crash {
  at: CrashPoint
  withServer: boolean
}
