import { randomBytes } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import { BoundedMap } from '../lib/collections/bounded-map.ts'
import { CONSOLE_SESSION_MS, CONSOLE_SESSIONS_MAX, CONSOLE_SESSIONS_PER_ADDRESS_MAX } from './limits.ts'

/** Tells a session key from the key of an agent. */
const PREFIX = 'mls_'
const SECRET_BYTES = 24

interface Held {
  address: string
  /** On the monotonic clock. */
  expiresAtMs: number
}

/**
 * The keys that pages of the console get when they are opened. Such a key may do what a reader without a key may; its reads are
 * counted together with those of the other consoles of its address and apart from everything else of that address. They live in
 * memory: after a restart, or where the oldest gives way to a new one, a page counts as one without a key until it asks again.
 */
export class ConsoleSessions {
  readonly #clock: Clock
  readonly #sessions: BoundedMap<string, Held>
  readonly #keysByAddress = new Map<string, Set<string>>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#sessions = new BoundedMap({
      entriesMax: CONSOLE_SESSIONS_MAX,
      onEvict: (key, { address }) => this.#forget(key, address),
    })
  }

  /** A new session, or the one of `known` for another while. */
  open(address: string, known: string): { key: string; expiresAtMs: number } {
    const key = this.isOpen(known) ? known : PREFIX + randomBytes(SECRET_BYTES).toString('base64url')
    this.revoke(key)
    const keys = this.#keysByAddress.get(address) ?? new Set()
    const [oldest] = keys
    if (oldest !== undefined && keys.size >= CONSOLE_SESSIONS_PER_ADDRESS_MAX) this.revoke(oldest)
    this.#keysByAddress.set(address, keys.add(key))
    this.#sessions.set(key, { address, expiresAtMs: this.#clock.monotonicMs() + CONSOLE_SESSION_MS })
    return { key, expiresAtMs: this.#clock.now() + CONSOLE_SESSION_MS }
  }

  /** What a key is: `unknown` has the form of a session key and is none that is open. */
  check(key: string): 'open' | 'unknown' | 'no' {
    if (!key.startsWith(PREFIX)) return 'no'
    return this.isOpen(key) ? 'open' : 'unknown'
  }

  isOpen(key: string): boolean {
    const held = this.#sessions.get(key)
    if (held === undefined) return false
    if (held.expiresAtMs > this.#clock.monotonicMs()) return true
    this.revoke(key)
    return false
  }

  /** @returns whether there was such a session. */
  revoke(key: string): boolean {
    const held = this.#sessions.get(key)
    if (held === undefined) return false
    this.#sessions.delete(key)
    this.#forget(key, held.address)
    return true
  }

  /** @returns how many there were. */
  revokeAll(): number {
    const { size } = this.#sessions
    this.#sessions.clear()
    this.#keysByAddress.clear()
    return size
  }

  #forget(key: string, address: string): void {
    const keys = this.#keysByAddress.get(address)
    keys?.delete(key)
    if (keys?.size === 0) this.#keysByAddress.delete(address)
  }
}
