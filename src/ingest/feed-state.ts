import type { Clock } from '../lib/clock.ts'
import type { FeedStatus } from './types.ts'

/** The state of a feed, and since when it has been in it. */
export class FeedState {
  #state: FeedStatus['state']
  #sinceMs: number
  readonly #clock: Clock

  constructor(clock: Clock, state: FeedStatus['state'] = 'starting') {
    this.#clock = clock
    this.#state = state
    this.#sinceMs = clock.now()
  }

  get current(): FeedStatus['state'] {
    return this.#state
  }

  set(state: FeedStatus['state']): void {
    if (state === this.#state) return
    this.#state = state
    this.#sinceMs = this.#clock.now()
  }

  /** Its part of a feed's status. */
  describe(): Pick<FeedStatus, 'state' | 'stateSinceMs'> {
    return { state: this.#state, stateSinceMs: this.#sinceMs }
  }
}
