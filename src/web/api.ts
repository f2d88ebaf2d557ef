// What the console asks of the server that it came from, beside what `mintlake/client` does.
import { MintlakeError } from '../client/index.ts'

const TIMEOUT_MS = 10_000
/** What a header can hold. */
const SENDABLE = /^[\x21-\x7e]+$/

/** @throws Error for a key that cannot be one: what fetch says of it would be taken for a server that is away. */
export function requireSendable(key: string): void {
  if (!SENDABLE.test(key)) throw new Error('A key has no such characters.')
}

export interface ApiRequest {
  body?: unknown
  key?: string | null
  /** Of the page's session, for what counts as a read. */
  fetch?: typeof fetch
}

/** A GET, or a POST where there is a body. @throws Error with the server's sentence. */
export async function request<Answer>(path: string, options: ApiRequest = {}): Promise<Answer> {
  const { body, key, fetch: ask = fetch } = options
  const response = await ask(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(key && { Authorization: `Bearer ${key}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  // A proxy's is a page. One that breaks off, or does not come to its end, is no answer at all.
  const answer = await response.json().catch((error) => {
    if (error instanceof SyntaxError) return null
    throw error
  })
  if (!response.ok || answer === null)
    throw new Error(answer?.error ?? `The server answered ${response.status}.`)
  return answer
}

/** The sentence to show for an error. */
export function errorText(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return 'The server did not answer in time.'
  if (error instanceof TypeError) return 'The server cannot be reached.'
  if (error instanceof MintlakeError && error.status === null) return 'The server cannot be reached.'
  return error instanceof Error ? error.message : `${error}`
}

/** What happened, as a heading. */
export function errorTitle(error: unknown): string {
  if (error instanceof TypeError) return 'The server cannot be reached'
  if (!(error instanceof MintlakeError)) return 'This could not be read'
  if (isOfKey(error)) return 'Your key is refused'
  if (error.status === null) return 'The server cannot be reached'
  if (error.status === 429) return 'Too many reads'
  return error.code === 'warming_up' ? 'The server is warming up' : 'This could not be read'
}

/** Whether the key of this tab is mistyped, or was revoked. */
const isOfKey = (error: unknown): boolean => error instanceof MintlakeError && error.status === 401

/** Whether the same question would be answered so again: there is no such thing, or it cannot be asked for. */
const isFinal = (error: unknown): boolean =>
  error instanceof MintlakeError && (error.status === 404 || error.status === 400)

/** Something that is fetched now and again until `stop`: its last value, its error, and whether it is being fetched. */
export class Fetched<Value> {
  value: Value | null = null
  error: string | null = null
  errorTitle = ''
  /** Whether asking again would bring the same error. */
  isFinal = false
  /** Whether the key is refused: another would help, or none. */
  isOfKey = false
  /** Unix ms of the last answer. */
  atMs: number | null = null
  readonly #fetch: () => Promise<Value>
  readonly #onChange: () => void
  readonly #everyMs: number
  readonly #timer: ReturnType<typeof setInterval>
  #isFetching = false

  /** Fetches now and every `everyMs` while the page is visible, and when it is again where what is known is older. */
  constructor(fetch: () => Promise<Value>, onChange: () => void, everyMs: number) {
    this.#fetch = fetch
    this.#onChange = onChange
    this.#everyMs = everyMs
    document.addEventListener('visibilitychange', this.#comesBack)
    this.#timer = setInterval(() => {
      if (!document.hidden) void this.refresh()
    }, everyMs)
    void this.refresh()
  }

  async refresh(): Promise<void> {
    if (this.#isFetching) return
    this.#isFetching = true
    try {
      this.value = await this.#fetch()
      this.error = null
      this.isFinal = false
      this.isOfKey = false
      this.atMs = Date.now()
    } catch (error) {
      this.error = errorText(error)
      this.errorTitle = errorTitle(error)
      this.isFinal = isFinal(error)
      this.isOfKey = isOfKey(error)
    } finally {
      this.#isFetching = false
      this.#onChange()
    }
  }

  readonly #comesBack = (): void => {
    if (!document.hidden && Date.now() - (this.atMs ?? 0) >= this.#everyMs) void this.refresh()
  }

  stop(): void {
    clearInterval(this.#timer)
    document.removeEventListener('visibilitychange', this.#comesBack)
  }
}
