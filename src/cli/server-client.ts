// HTTP client for a running server. It follows no redirect, since the operator's key is for that server only.
import { z } from 'zod'
import { CLIENT_ENV } from '../config/client-env.ts'
import { SETTINGS } from '../config/settings.ts'
import { fetchFailure } from '../lib/error-text.ts'
import { firstIssue, safeParse } from '../lib/safe-parse.ts'
import { readBoundedText } from '../lib/text/bounded-text.ts'
import { parseJson } from '../lib/text/json-text.ts'
import { readFolderInfo } from '../store/data-folder/folder-info.ts'
import { StoreError } from '../store/errors.ts'
import { Failure, type Option, UsageError, type Values } from './command.ts'
import { ANSWER_BYTES_MAX, HEALTH_TIMEOUT_MS, SERVER_TIMEOUT_MS } from './limits.ts'
import type { Terminal } from './terminal.ts'

const { host, port, adminKey } = SETTINGS

/** Listening addresses that mean every interface: no client can connect to them. */
const EVERYWHERE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

export const URL_OPTION: Option = {
  value: 'URL',
  description: `Where the server runs; ${CLIENT_ENV.url}, else ${host.env} and ${port.env} [http://${host.defaultText}:${port.defaultText}]`,
}

/** The server's base URL, without a trailing slash. */
export function urlOf(values: Values, { env }: Terminal): string {
  const name = env[host.env] || host.defaultText
  const reachable = EVERYWHERE[name] ?? name
  const authority = reachable.includes(':') ? `[${reachable}]` : reachable
  const given = values.url || env[CLIENT_ENV.url]
  const text = given || `http://${authority}:${env[port.env] || port.defaultText}`
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const source = values.url || !given ? '--url' : CLIENT_ENV.url
    throw new UsageError(`${source}: "${text}" is no address like http://127.0.0.1:8080`)
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/**
 * Whether a server says that its data folder is another one. A copy of a folder has its identity.
 * @param folderId as the server tells it; undefined: it does not, and nobody knows
 */
export function isOfAnotherFolder(folderId: string | undefined, dataDir: string): boolean {
  if (folderId === undefined) return false
  try {
    return readFolderInfo(dataDir)?.logId !== folderId
  } catch (error) {
    if (error instanceof StoreError) return false
    throw error
  }
}

/** A GET, or a POST where there is a body. */
interface Question {
  path: string
  body?: Record<string, unknown>
  key?: string
  timeoutMs: number
  /** Gives up the request. */
  signal?: AbortSignal | undefined
}

const objectSchema = z.record(z.string(), z.unknown())

async function exchange(url: string, question: Question): Promise<{ status: number; text: string }> {
  const { path, body, key, timeoutMs, signal } = question
  try {
    const response = await fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(key !== undefined && { Authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: 'error',
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]),
    })
    const text = await readBoundedText(response, ANSWER_BYTES_MAX)
    if (text !== null) return { status: response.status, text }
  } catch (error) {
    throw new Failure(`no server answers at ${url}: ${fetchFailure(error)}`)
  }
  throw new Failure(`${url} answers more than ${ANSWER_BYTES_MAX} bytes`)
}

/** Sends one request to the server at `url`. Rejects with Failure when there is no response or an error response. */
async function askServer(url: string, question: Question): Promise<Record<string, unknown>> {
  const { status, text } = await exchange(url, question)
  const { data: answer } = safeParse(objectSchema, parseJson(text))
  if (answer === undefined)
    throw new Failure(`${url} is no Mintlake server: it answered ${status} without JSON`)
  if (status >= 200 && status < 300) return answer
  throw new Failure(typeof answer.error === 'string' ? answer.error : `${url} answered ${status}`)
}

/** The part of GET /health that commands show. */
const healthSchema = z.object({
  status: z.string(),
  reasons: z.array(z.string()),
  simulated: z.boolean(),
  feeds: z.array(z.object({ feed: z.string(), state: z.string() })),
  /** Absent where the server is alone. */
  cluster: z.object({ role: z.string() }).optional(),
  store: z.object({
    healthy: z.boolean(),
    folderId: z.string().optional(),
    lake: z.array(z.object({ table: z.string(), backlog: z.number() })).optional(),
    databaseBytes: z.number().optional(),
  }),
})
export type ServerHealth = z.infer<typeof healthSchema>

/** The health of the Mintlake server at `url`; a sentence where there is none. */
export async function askHealth(url: string, timeoutMs = HEALTH_TIMEOUT_MS): Promise<ServerHealth | string> {
  try {
    const answer = await askServer(url, { path: '/health', timeoutMs })
    return safeParse(healthSchema, answer).data ?? `${url} answers in an unknown form`
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
}

/** Of an answer with `data`. */
export type AnswerSchema = z.ZodType<{ data: unknown }>

/** Sends one request with the operator's key. Resolves with the `data` of the response. Rejects with Failure, also where it is not
 *  of the schema. */
export async function askAsOperator<Schema extends AnswerSchema>(
  values: Values,
  terminal: Terminal,
  schema: Schema,
  question: Pick<Question, 'path' | 'body' | 'signal'> & { timeoutMs?: number },
): Promise<z.output<Schema>['data']> {
  const { data: key, error } = safeParse(adminKey.schema, terminal.env[adminKey.env] ?? '')
  if (error) throw new UsageError(`${adminKey.env} ${firstIssue(error).message}`)
  if (key === '')
    throw new UsageError(`${adminKey.env} is not set: this needs the key that the server was started with`)
  const url = urlOf(values, terminal)
  const parsed = safeParse(schema, await askServer(url, { timeoutMs: SERVER_TIMEOUT_MS, ...question, key }))
  if (parsed.success) return parsed.data.data
  throw new Failure(`${url} answered ${question.path} in an unknown form; is it of the same version?`)
}
