// The session key of this page: its reads are counted apart from those of other programs of its address, so that a script that uses
// up the reads of the address does not blank the console. Where the server gives none, the page reads as anybody does.
const PATH = '/api/v1/session'
const TIMEOUT_MS = 5_000
/** The server keeps a session for two hours. */
const RENEW_MS = 30 * 60_000
/** The console's name for it on a WebSocket, where a page can send no header. */
const PROTOCOL_PREFIX = 'mintlake.session.'

interface SessionAnswer {
  data: { key: string; queryOpen: boolean; dataDir: string | null }
}

export class PageSession {
  /** Whether the lake may be queried from here without a key. */
  isQueryOpen = false
  /** The server's data folder, where a command on this computer has to be told it; else null. */
  dataDir: string | null = null
  /** Whether the market is a replay: only its answers tell a time of the market. */
  isReplay = false
  #key: string | null = null
  #opening: Promise<void> | null = null
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
    setInterval(() => void this.open(), RENEW_MS)
  }

  /** The key, once it was asked for; null: there is none. */
  async key(): Promise<string | null> {
    await (this.#opening ?? this.open())
    return this.#key
  }

  /** Asks for a session, or for another while of this one. A server that was started anew knows none. */
  open(): Promise<void> {
    this.#opening = this.#ask()
    return this.#opening
  }

  /** What a WebSocket offers so that its reads count for this session. */
  async protocols(): Promise<string[]> {
    const key = await this.key()
    return key === null ? [] : [PROTOCOL_PREFIX + key]
  }

  /** `fetch` with this session's key, where a request has no other. */
  readonly fetch: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers)
    const key = headers.has('Authorization') ? null : await this.key()
    if (key !== null) headers.set('Authorization', `Bearer ${key}`)
    return globalThis.fetch(input, { ...init, headers })
  }

  async #ask(): Promise<void> {
    try {
      const response = await fetch(PATH, {
        method: 'POST',
        headers: this.#key === null ? {} : { Authorization: `Bearer ${this.#key}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      if (!response.ok) return
      this.isReplay = response.headers.has('X-Market-Time')
      const { data }: SessionAnswer = await response.json()
      this.#key = data.key
      this.isQueryOpen = data.queryOpen
      this.dataDir = data.dataDir
      this.#onChange()
    } catch {
      // The server is away: the connection tells it, and asks for a session when it tries again.
    }
  }
}
