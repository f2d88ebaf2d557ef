/** Tests that are worth more the longer they run: with a few cases in `npm test`, and with many as a drill. */
export interface Cases {
  runs: number
  tags: string[]
}

/** @param variable of the environment that sets how many, in both */
export function fewAndMany(few: number, many: number, variable = 'MINTLAKE_TEST_RUNS'): Cases[] {
  const runs = process.env[variable]
  return [
    { runs: Number(runs ?? few), tags: [] },
    { runs: Number(runs ?? many), tags: ['drill'] },
  ]
}
