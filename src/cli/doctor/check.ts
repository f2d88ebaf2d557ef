// One thing that `mintlake doctor` looks at, and what it found.

export type Level = 'ok' | 'warn' | 'fail'

export interface CheckResult {
  level: Level
  /** What was found, as a sentence without its full stop. */
  message: string
  /** What to do about it; null where all is well. */
  remedy: string | null
}

export interface Check {
  name: string
  run(): Promise<CheckResult> | CheckResult
}

export const ok = (message: string): CheckResult => ({ level: 'ok', message, remedy: null })
export const warn = (message: string, remedy: string): CheckResult => ({ level: 'warn', message, remedy })
export const fail = (message: string, remedy: string): CheckResult => ({ level: 'fail', message, remedy })
