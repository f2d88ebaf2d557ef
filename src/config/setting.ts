import { z } from 'zod'
import { isNetwork } from '../http/request/addresses.ts'
import { ENDPOINTS_MAX } from '../ingest/solana/limits.ts'
import { firstIssue, safeParse } from '../lib/safe-parse.ts'

/** One setting: how it is given, its default and how its text is parsed. */
export interface Setting<Schema extends z.ZodType = z.ZodType> {
  /** Without the dashes; null for secrets, since command lines are public. */
  flag: string | null
  env: string
  /** As it would be given; '' for none. */
  defaultText: string
  schema: Schema
  description: string
}

/** A setting with the flag `--<flag>` and the environment variable `MINTLAKE_<FLAG>`. */
export function setting<Schema extends z.ZodType>(
  flagName: string,
  defaultValue: string | number,
  schema: Schema,
  description: string,
): Setting<Schema> {
  return {
    flag: flagName,
    env: `MINTLAKE_${flagName.toUpperCase().replaceAll('-', '_')}`,
    defaultText: `${defaultValue}`,
    schema,
    description,
  }
}

/** A setting that only the environment can give. */
export function secret(env: string, description: string): Setting<z.ZodString> {
  return { flag: null, env: `MINTLAKE_${env}`, defaultText: '', schema: z.string(), description }
}

/** A number. An empty text is not one, although JavaScript reads it as 0. */
const number = z.string().trim().min(1, 'must be a number').transform(Number)

export const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`
  return number.pipe(z.number({ error }).int({ error }).min(min, { error }).max(max, { error }))
}

const POSITIVE_MAX = 1e6
const positive = { error: `must be a number above 0, and at most ${POSITIVE_MAX}` }
export const positiveNumber = number.pipe(z.number(positive).positive(positive).max(POSITIVE_MAX, positive))

/** One of some words. */
export const oneOf = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, { error: `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}` })

export const flag = z
  .enum(['true', 'false', '1', '0', ''], { error: 'must be true or false' })
  .transform((word) => word !== 'false' && word !== '0')

/** A host name or address. An IPv6 address may stand in brackets, as in a URL. */
export const host = z
  .string()
  .min(1, 'must be a host name or an address')
  .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))

const wordList = z.string().transform((words) =>
  words
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== ''),
)

export const networkList = wordList.refine(
  (words) => words.every(isNetwork),
  'every word must be an address, or address/bits',
)

/** A host as it stands in an address, with a port or without. Nothing else: it becomes part of a header. */
const HOST_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:\d{1,5})?$/i
const HOST_CHARACTERS_MAX = 253
const HOSTS_MAX = 32

/** Names of hosts, as `URL.host` has them. */
export const hostList = wordList
  .refine(
    (words) =>
      words.every(
        (word) =>
          word.length <= HOST_CHARACTERS_MAX && HOST_NAME.test(word) && URL.canParse(`https://${word}`),
      ),
    'every word must be the name of a host, such as images.example',
  )
  .refine((words) => words.length <= HOSTS_MAX, `there may be ${HOSTS_MAX} hosts`)
  .transform((words) => words.map((word) => new URL(`https://${word}`).host))

export const FEEDS = ['simulator', 'none', 'replay', 'pumpportal', 'solana'] as const

export const feedList = wordList
  .pipe(z.array(oneOf(FEEDS)).min(1, `must name one of ${FEEDS.join(', ')}`))
  .refine((feeds) => new Set(feeds).size === feeds.length, 'names a feed twice')
  .refine((feeds) => feeds.length === 1 || !feeds.includes('none'), 'none stands alone')
  .transform((feeds) => feeds.filter((feed) => feed !== 'none'))

/** What of a trade a column may be. */
const MAPPED_FIELDS = ['ts', 'symbol', 'price', 'size', 'side', 'wallet', 'tx']

/** `field=column,…` as an object. */
export const columnMapping = wordList.transform((pairs, context) => {
  const columns: Record<string, string> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) context.addIssue({ code: 'custom', message: `"${pair}" is not of the form field=column` })
    else if (!MAPPED_FIELDS.includes(pair.slice(0, at)))
      context.addIssue({
        code: 'custom',
        message: `"${pair.slice(0, at)}" is none of the fields ${MAPPED_FIELDS.join(', ')}`,
      })
    else columns[pair.slice(0, at)] = pair.slice(at + 1)
  }
  return columns
})

export const replaySpeed = z.union([z.literal('max'), positiveNumber], `${positive.error}, or max`)

/** A moment as Unix ms; NaN: it is none. An ISO 8601 time without a zone is in UTC. */
function parseMoment(text: string): number {
  const iso = /^\d{4}-\d\d-\d\d(T[\d:.]+)?$/.test(text) ? `${text}${text.includes('T') ? 'Z' : ''}` : text
  return /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(iso)
}

/** `FROM..TO` as Unix ms; null where one is left out. */
export const span = z.string().transform((text, context) => {
  const issue = (message: string) => {
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  }
  const [from, to, ...more] = text === '' ? ['', ''] : text.split('..')
  if (from === undefined || to === undefined || more.length > 0)
    return issue('must be of the form FROM..TO, of which one may be left out')
  const [fromMs, toMs] = [from, to].map((end) => (end === '' ? null : parseMoment(end)))
  if (fromMs === undefined || toMs === undefined || Number.isNaN(fromMs) || Number.isNaN(toMs))
    return issue('must be ISO 8601 times, such as 2026-01-31T12:00:00Z, or Unix ms')
  if (fromMs !== null && toMs !== null && fromMs > toMs) return issue('must not begin after its end')
  return { fromMs, toMs }
})

/** What the schema says, or null for ''. */
export const orNull = <Schema extends z.ZodType>(schema: Schema) =>
  z.string().transform((text, context): z.output<Schema> | null => {
    if (text === '') return null
    const result = safeParse(schema, text)
    if (result.success) return result.data
    context.addIssue({ code: 'custom', message: firstIssue(result.error).message })
    return z.NEVER
  })

/** A complete URL with one of the schemes. */
export function address(...schemes: readonly string[]) {
  return z.string().refine((text) => schemes.includes(URL.parse(text)?.protocol.slice(0, -1) ?? ''), {
    error: `must be an address that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
  })
}

/** The origin of a URL with one of these schemes, without a slash at the end; '' for none. */
export const publicUrl = z.union(
  [
    z.literal(''),
    address('http', 'https').transform((text, context) => {
      const { origin, href } = new URL(text)
      if (href === `${origin}/`) return origin
      context.addIssue({ code: 'custom', message: 'must be scheme, host and port alone' })
      return z.NEVER
    }),
  ],
  'must be an address of scheme, host and port alone, such as https://mintlake.example',
)

/** Where documents in IPFS are fetched unless another gateway is told. */
const IPFS_GATEWAY = 'https://ipfs.io'

/** The gateway of IPFS beside which documents of tokens are fetched; null: none are. */
export const metadataGateway = z.string().transform((text, context) => {
  const isOn = safeParse(flag, text)
  if (isOn.success) return isOn.data ? IPFS_GATEWAY : null
  if (safeParse(address('https'), text).success) return text
  context.addIssue({ code: 'custom', message: 'must be true, false or an address that begins with https://' })
  return z.NEVER
})

/** Addresses of endpoints, which may hold keys; empty: none. */
export const endpointList = (...schemes: readonly string[]) =>
  wordList
    .refine(
      (urls) => urls.every((url) => schemes.includes(URL.parse(url)?.protocol.slice(0, -1) ?? '')),
      `every word must be an address that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
    )
    .refine((urls) => urls.length <= ENDPOINTS_MAX, `there may be ${ENDPOINTS_MAX} addresses`)

const NATS_URLS_MAX = 16
const isNatsUrl = (text: string): boolean =>
  /^(nats|tls):\/\//.test(text) && URL.canParse(text) && new URL(text).host !== ''

/** Addresses of NATS servers; empty: none. */
export const natsUrl = wordList
  .refine((urls) => urls.every(isNatsUrl), 'must be an address such as nats://127.0.0.1:4222')
  .refine(
    (urls) => urls.every((url) => !URL.canParse(url) || new URL(url).username === ''),
    'must not name a user: that is --bus-login',
  )
  .refine((urls) => urls.length <= NATS_URLS_MAX, `there may be ${NATS_URLS_MAX} addresses`)

/** A word that NATS takes in names of streams, and between the dots of a subject. */
export const busName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,32}$/, 'must have 1 to 32 letters, digits, "-" or "_"')

/** Such a word; '' for none. */
export const busUser = z.union([z.literal(''), busName], 'must have 1 to 32 letters, digits, "-" or "_"')
