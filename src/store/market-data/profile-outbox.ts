// In: versions of token profiles. Out: each handed to the lake process, again where that ended before the version was in a
// file. Holds at most PROFILES_UNCONFIRMED_MAX of them; more are refused. A server that is killed loses those of one flush
// interval; its next run says them again, since they are compared with nothing then.
import pLimit from 'p-limit'
import type { Row } from '../../schema/tables.ts'
import { unavailable } from '../errors.ts'
import { PROFILES_TIMEOUT_MS, PROFILES_UNCONFIRMED_MAX } from '../limits.ts'
import type { LakeClient } from '../process/client.ts'
import { encodeWrite } from '../rows/row-encoder.ts'

export class ProfileOutbox {
  readonly #client: LakeClient
  /** Handed over, oldest first, and not known to be in a file. */
  #unconfirmed: Row[] = []
  /** How many of them the process of `#starts` has. */
  #delivered = 0
  /** Rows that were handed to that process and are in files. */
  #confirmed = 0
  #starts = 0
  /** One at a time: a flush and the market would each hand over what a process that ended took with it. */
  readonly #turns = pLimit(1)

  constructor(client: LakeClient) {
    this.#client = client
  }

  /** Resolves when the rows are held here, and were handed over if that could be done; else the next flush does it. Rejects
   *  where a row fits no table, and with `unavailable` where too many wait: they are to be written again then. */
  write(rows: readonly Row[]): Promise<void> {
    return this.#turns(async () => {
      if (this.#unconfirmed.length + rows.length > PROFILES_UNCONFIRMED_MAX)
        throw unavailable('too many token profiles wait for the lake')
      // Checked as every row is: one that fits no table must not reach the lake.
      const checked = rows.map((row) => JSON.parse(encodeWrite({ table: 'tokens', row }, null).json) as Row)
      this.#unconfirmed.push(...checked)
      await this.#handOver().catch(() => undefined)
    })
  }

  /** Hands over what the lake process does not have. Rejects with `unavailable` where it is away. */
  deliver(): Promise<void> {
    return this.#turns(() => this.#handOver())
  }

  /** What it has no room for comes with the next turn: the flush makes room. */
  async #handOver(): Promise<void> {
    this.#startAnew()
    if (this.#unconfirmed.length === 0) return
    const rows = this.#unconfirmed.slice(this.#delivered)
    const first = this.#confirmed + this.#delivered
    const { taken, inLake } = await this.#client.ask('tokens', { first, rows }, PROFILES_TIMEOUT_MS)
    if (taken) this.#delivered += rows.length
    this.#confirm(inLake)
  }

  #startAnew(): void {
    if (this.#starts === this.#client.starts) return
    this.#starts = this.#client.starts
    this.#delivered = 0
    this.#confirmed = 0
  }

  #confirm(inLake: number): void {
    const count = inLake - this.#confirmed
    if (count <= 0) return
    this.#unconfirmed = this.#unconfirmed.slice(count)
    this.#delivered -= count
    this.#confirmed = inLake
  }
}
