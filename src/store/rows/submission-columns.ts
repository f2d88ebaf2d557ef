// The unflushed submissions of one segment, so that those of an agent or a mint are found without reading the log. Searched
// from end to end: a segment has some ten thousand at most, and comparing two numbers takes a nanosecond.

/** What lists of submissions are made by. */
export interface SubmissionIdentity {
  analysisId: string
  agentId: string
  mint: string
  submittedAtMs: number
}

/** Where a submission of a list stands in its segment. */
export interface SubmissionPlace {
  submittedAtMs: number
  /** The position of its record, packed as the segment's index packs it. */
  packed: number
}

/** Numbers texts from 0 on, so that a column holds numbers. */
class Numbering {
  readonly #numbers = new Map<string, number>()

  of(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    this.#numbers.set(text, this.#numbers.size)
    return this.#numbers.size - 1
  }

  find(text: string): number | undefined {
    return this.#numbers.get(text)
  }
}

export class SubmissionColumns {
  readonly #agents = new Numbering()
  readonly #mints = new Numbering()
  readonly #agentNumbers: number[] = []
  readonly #mintNumbers: number[] = []
  readonly #timesMs: number[] = []
  readonly #packed: number[] = []

  add({ agentId, mint, submittedAtMs }: SubmissionIdentity, packed: number): void {
    this.#agentNumbers.push(this.#agents.of(agentId))
    this.#mintNumbers.push(this.#mints.of(mint))
    this.#timesMs.push(submittedAtMs)
    this.#packed.push(packed)
  }

  /** Submissions of an agent (null: any) on a mint (null: any) until `untilMs`, in the order of their commits. */
  find(agentId: string | null, mint: string | null, untilMs: number): SubmissionPlace[] {
    const agent = agentId === null ? null : this.#agents.find(agentId)
    const token = mint === null ? null : this.#mints.find(mint)
    const found: SubmissionPlace[] = []
    if (agent === undefined || token === undefined) return found
    for (let index = 0; index < this.#packed.length; index++) {
      if (agent !== null && this.#agentNumbers[index] !== agent) continue
      if (token !== null && this.#mintNumbers[index] !== token) continue
      const submittedAtMs = this.#timesMs[index]
      if (submittedAtMs <= untilMs) found.push({ submittedAtMs, packed: this.#packed[index] })
    }
    return found
  }
}
