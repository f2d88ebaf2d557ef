// Measures questions. Candidates take turns, each round in a process of its own. A ratio is taken within a round; the result is the
// median over the rounds. A candidate that fails keeps its row, with the reason.
import { fileURLToPath } from 'node:url'
import type { Comparison, Measured, Question, RunOptions } from './harness.ts'
import { jsonOf, median } from './harness.ts'

export interface Row {
  question: string
  title: string
  unit: string
  ours: number | null
  against: string
  theirs: number | null
  ratio: number | null
  gate: number | null
  stretch: number | null
  better: 'higher' | 'lower'
  isDifference: boolean
  met: 'stretch' | 'gate' | 'no' | 'not measured' | '-'
  note: string
  checksum: string
}

export interface LoadedQuestion {
  question: Question
  file: string
}

type Round = Map<string, Measured | Error>

/** A candidate that takes longer does not end: the longest takes six minutes, and half an hour in a full run. */
const CANDIDATE_MS_MAX = ({ full }: RunOptions): number => (full ? 120 : 20) * 60_000
const CANDIDATE = fileURLToPath(new URL('candidate.ts', import.meta.url))

async function measureOne(
  { question, file }: LoadedQuestion,
  name: string,
  options: RunOptions,
): Promise<Measured | Error> {
  try {
    // A small run asks whether it works, not how fast it is.
    if (options.small) return await question.candidates[name](options)
    const args = ['--expose-gc', '--no-warnings', CANDIDATE, file, name, JSON.stringify(options)]
    const measured = await jsonOf<Measured | { error: string }>(
      process.execPath,
      args,
      CANDIDATE_MS_MAX(options),
    )
    return 'error' in measured ? new Error(measured.error) : measured
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

/** Measures one question and returns its rows. A small run stays in this process. */
export async function ask(
  loaded: LoadedQuestion,
  options: RunOptions,
  progress: (line: string) => void,
): Promise<Row[]> {
  try {
    return await measure(loaded, options, progress)
  } finally {
    loaded.question.cleanUp?.(options)
  }
}

async function measure(
  loaded: LoadedQuestion,
  options: RunOptions,
  progress: (line: string) => void,
): Promise<Row[]> {
  const { question } = loaded
  let unprepared: Error | null = null
  try {
    await question.prepare?.(options)
  } catch (error) {
    unprepared = error as Error
  }
  const names = namesOf(question, options)
  const rounds: Round[] = []
  for (let round = 0; round < (options.small ? 1 : question.rounds); round++) {
    const results: Round = new Map()
    // Each round starts with another candidate, so that none always follows the same one.
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + round) % names.length]
      const failed = rounds.map((earlier) => earlier.get(name)).find((result) => result instanceof Error)
      progress(`${question.name}: round ${round + 1} of ${options.small ? 1 : question.rounds}, ${name}`)
      results.set(name, failed ?? (await measureOne(loaded, name, options)))
    }
    rounds.push(results)
  }
  return question.comparisons
    .filter(({ of = 'ours', against }) => names.includes(of) && (!against || names.includes(against)))
    .map((comparison) => rowOf(question, comparison, rounds, unprepared))
}

function namesOf(question: Question, options: RunOptions): string[] {
  return Object.keys(question.candidates).filter(
    (name) =>
      (options.full || !question.fullOnly?.includes(name)) &&
      !(options.small && (question.onDemand?.includes(name) || question.variants?.includes(name))),
  )
}

/** Tolerance for sums that were added in another order. */
const SAMPLE_TOLERANCE = 1e-9

/** Describes the first difference of two samples. Returns null when they agree or one is missing. */
export function difference(ours: Measured, theirs: Measured): string | null {
  const [a, b] = [ours.sample, theirs.sample]
  if (a === undefined || b === undefined) return null
  if (a.length !== b.length) return `a sample of ${a.length} values, theirs has ${b.length}`
  const at = a.findIndex(
    (value, index) => !(Math.abs(value - b[index]) <= SAMPLE_TOLERANCE * Math.abs(value)),
  )
  return at === -1 ? null : `value ${at} of the sample is ${a[at]}, theirs ${b[at]}`
}

function rowOf(
  question: Question,
  comparison: Comparison,
  rounds: readonly Round[],
  unprepared: Error | null,
): Row {
  const { metric, of = 'ours', against, againstMetric = metric } = comparison
  const valuesOf = (name: string, key: string): number[] =>
    rounds.flatMap((round) => {
      const measured = round.get(name)
      return measured === undefined || measured instanceof Error || !(key in measured.metrics)
        ? []
        : [measured.metrics[key]]
    })
  const ours = valuesOf(of, metric)
  const theirs = against === undefined ? [] : valuesOf(against, againstMetric)
  const differing = rounds.flatMap((round) => {
    const [a, b] = [round.get(of), round.get(against ?? of)]
    return a === undefined || b === undefined || a instanceof Error || b instanceof Error
      ? []
      : (difference(a, b) ?? [])
  })
  const isMeasured =
    ours.length > 0 && (against === undefined || theirs.length === ours.length) && differing.length === 0
  const ratio =
    isMeasured && against !== undefined ? median(ours.map((value, round) => value / theirs[round])) : null
  const failure = [of, against].flatMap((name) => {
    const failed = name && rounds.map((round) => round.get(name)).find((result) => result instanceof Error)
    return failed ? [`${name}: ${(failed as Error).message}`] : []
  })
  const first = rounds[0]?.get(of)
  return {
    question: question.name,
    title: comparison.title,
    unit: comparison.unit,
    ours: ours.length > 0 ? median(ours) : null,
    against: against ?? '',
    theirs: theirs.length > 0 ? median(theirs) : null,
    ratio,
    gate: comparison.gate ?? null,
    stretch: comparison.stretch ?? null,
    better: comparison.better,
    isDifference: comparison.isDifference === true,
    met: isMeasured ? verdict(comparison, ratio ?? median(ours)) : 'not measured',
    note: [comparison.note, ...failure, differing[0], isMeasured ? undefined : unprepared?.message]
      .filter(Boolean)
      .join('; ')
      .replaceAll(/\s+/g, ' '),
    checksum: first instanceof Error || first === undefined ? '' : first.checksum,
  }
}

function verdict({ gate, stretch, better }: Comparison, value: number): Row['met'] {
  const reaches = (target: number | undefined) =>
    target !== undefined && (better === 'higher' ? value >= target : value <= target)
  if (gate === undefined) return '-'
  if (reaches(stretch)) return 'stretch'
  return reaches(gate) ? 'gate' : 'no'
}
