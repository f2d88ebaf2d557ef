// Requests to the server that the page came from. An answer that is an error is thrown with its sentence.

const TIMEOUT_MS = 10_000

/** What the server says of a refused request. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly errors: readonly { pointer: string; message: string; suggestion?: string }[]
  readonly retryAfterMs: number | null

  constructor(status: number, body: Record<string, unknown>) {
    super(typeof body.error === 'string' ? body.error : `The server answered ${status}.`)
    this.status = status
    this.code = typeof body.code === 'string' ? body.code : ''
    this.errors = Array.isArray(body.errors) ? body.errors : []
    this.retryAfterMs = typeof body.retryAfterMs === 'number' ? body.retryAfterMs : null
  }
}

export interface ApiRequest {
  method?: 'GET' | 'POST'
  query?: Record<string, string | number | undefined>
  body?: unknown
  key?: string | null
  timeoutMs?: number
}

/** @throws ApiError for an error of the server; TypeError or DOMException when it cannot be reached. */
export async function request<Answer>(path: string, options: ApiRequest = {}): Promise<Answer> {
  const { method = 'GET', query = {}, body, key, timeoutMs = TIMEOUT_MS } = options
  const url = new URL(path, location.origin)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, `${value}`)
  const response = await fetch(url, {
    method,
    headers: {
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(key && { Authorization: `Bearer ${key}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const answer = await response.json()
  if (!response.ok) throw new ApiError(response.status, answer)
  return answer
}

/** The sentence to show for an error. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) return error.message
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return 'The server did not answer in time.'
  return 'The server cannot be reached.'
}

/** Something that is fetched now and again: its last value, its error, and whether it is being fetched. */
export class Fetched<Value> {
  value: Value | null = null
  error: string | null = null
  /** Unix ms of the last answer. */
  atMs: number | null = null
  readonly #fetch: () => Promise<Value>
  readonly #onChange: () => void
  #timer: ReturnType<typeof setInterval> | undefined
  #isFetching = false

  constructor(fetch: () => Promise<Value>, onChange: () => void) {
    this.#fetch = fetch
    this.#onChange = onChange
  }

  async refresh(): Promise<void> {
    if (this.#isFetching) return
    this.#isFetching = true
    try {
      this.value = await this.#fetch()
      this.error = null
      this.atMs = Date.now()
    } catch (error) {
      this.error = errorText(error)
    } finally {
      this.#isFetching = false
      this.#onChange()
    }
  }

  /** Fetches now and every `everyMs` while the page is visible. */
  start(everyMs: number): void {
    void this.refresh()
    this.#timer = setInterval(() => {
      if (!document.hidden) void this.refresh()
    }, everyMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
