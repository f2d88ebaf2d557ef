// Keeps versions of token profiles in the server until they are in a file, and sends them again to a new lake process. At most
// PROFILES_UNCONFIRMED_MAX. A killed server loses those of one flush interval; its next run records all profiles again.
import pLimit from 'p-limit'
import type { Row } from '../../schema/tables.ts'
import { unavailable } from '../errors.ts'
import { PROFILES_SENT_ROWS, PROFILES_TIMEOUT_MS, PROFILES_UNCONFIRMED_MAX } from '../limits.ts'
import type { LakeClient } from '../process/client.ts'
import { encodeWrite } from '../rows/row-encoder.ts'

export class ProfileOutbox {
  readonly #client: LakeClient
  /** Rows not known to be in a file, oldest first. */
  #unconfirmed: Row[] = []
  /** How many of them the present lake process has. */
  #delivered = 0
  /** How many rows sent to that process are in files. */
  #confirmed = 0
  /** `starts` of the present lake process. */
  #starts = 0
  /** One at a time: otherwise a flush and the market could both send the rows that an ended process had. */
  readonly #turns = pLimit(1)

  constructor(client: LakeClient) {
    this.#client = client
  }

  /**
   * Keeps rows and tries to send them; where that fails, the next flush sends them. Rejects where a row does not fit the
   * table, and with `unavailable` where too many wait: the caller must then write them again.
   */
  write(rows: readonly Row[]): Promise<void> {
    return this.#turns(async () => {
      if (this.#unconfirmed.length + rows.length > PROFILES_UNCONFIRMED_MAX)
        throw unavailable('too many token profiles wait for the lake')
      // Checked like rows of the log: one that does not fit the table must not reach the lake.
      const checked = rows.map((row): Row => JSON.parse(encodeWrite({ table: 'tokens', row }, null).json))
      this.#unconfirmed = this.#unconfirmed.concat(checked)
      await this.#send().catch(() => undefined)
    })
  }

  /** Sends the rows that the lake process does not have. Rejects with `unavailable` where it is not running. */
  deliver(): Promise<void> {
    return this.#turns(() => this.#send())
  }

  get unconfirmed(): number {
    return this.#unconfirmed.length
  }

  /** So many of the rows that the present lake process was sent are in files. */
  confirm(inLake: number): void {
    if (this.#starts === this.#client.starts) this.#confirm(inLake)
  }

  /** In messages of PROFILES_SENT_ROWS. Rows that it has no room for are sent again later, after a flush. */
  async #send(): Promise<void> {
    let wasTaken = true
    do {
      this.#startOver()
      if (this.#unconfirmed.length === 0) return
      const rows = this.#unconfirmed.slice(this.#delivered, this.#delivered + PROFILES_SENT_ROWS)
      const first = this.#confirmed + this.#delivered
      const { taken, inLake } = await this.#client.ask('tokens', { first, rows }, PROFILES_TIMEOUT_MS)
      if (taken) this.#delivered += rows.length
      this.#confirm(inLake)
      wasTaken = taken
    } while (wasTaken && this.#delivered < this.#unconfirmed.length)
  }

  #startOver(): void {
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
