// The nodes that clients of a fault test may reach, as a load balancer knows them. Nodes come and go.
import type { Client } from '../../support/test-server.ts'

export class Nodes {
  /** Null while there is none. */
  writer: Client | null = null
  readers: Client[] = []
  #next = 0

  /** Readers, one after another. */
  reader(): Client {
    if (this.readers.length === 0) throw new Error('there is no reader')
    return this.readers[this.#next++ % this.readers.length]
  }

  all(): Client[] {
    return this.writer === null ? this.readers : [this.writer, ...this.readers]
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
