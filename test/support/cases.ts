/** Tests that are worth more the longer they run: with a few cases in `npm test`, and with many as a drill. */
export interface Cases {
  runs: number
  tags: string[]
}

/** @param variable of the environment that sets how many: then there is one test */
export function fewAndMany(few: number, many: number, variable = 'MINTLAKE_TEST_RUNS'): Cases[] {
  const runs = process.env[variable]
  const drill = { runs: Number(runs ?? many), tags: ['drill'] }
  return runs === undefined ? [{ runs: few, tags: [] }, drill] : [drill]
}
