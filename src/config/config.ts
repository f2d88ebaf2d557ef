// In: command-line flags and the environment. Out: one frozen configuration, or a sentence that says which setting is
// wrong and why. The only reader of the environment. Never shows a secret.
import { parseArgs } from 'node:util'
import { closest, distance } from 'fastest-levenshtein'
import { z } from 'zod'
import { FOLLOW_FLUSH_MS_DEFAULT } from '../http/limits.ts'
import { isNetwork } from '../http/request/addresses.ts'
import { PROVIDER_REQUESTS_PER_SECOND_MAX } from '../ingest/limits.ts'
import { safeParse } from '../lib/safe-parse.ts'
import { HOUR_MS } from '../lib/time.ts'
import { DISK_RESERVE_MB_DEFAULT } from '../store/limits.ts'
import { idleSetting } from './setting-needs.ts'

/** A text that is a number; an empty one is none, though to JavaScript it is 0. */
const number = z.string().trim().min(1, 'must be a number').transform(Number)
const wholeNumber = (min: number, max: number) => number.pipe(z.number().int().min(min).max(max))
const flag = z.enum(['true', 'false', '1', '0', '']).transform((word) => word !== 'false' && word !== '0')
const FEEDS = ['simulator', 'none', 'replay', 'pumpportal'] as const
const RETAIN_DAYS_MAX = 36_500

/** Every setting: README's table is held equal to this. `secret` ones have no flag: command lines are public. */
export const SETTINGS = {
  port: setting('port', 'PORT', '8080', wholeNumber(0, 65_535), 'Port to listen on; 0 picks a free one'),
  host: setting('host', 'HOST', '127.0.0.1', host(), 'Address to listen on'),
  dataDir: setting(
    'data-dir',
    'DATA_DIR',
    './data',
    z.string().min(1),
    'Folder of the database and the lake',
  ),
  feeds: setting(
    'feed',
    'FEED',
    'simulator',
    feedList(),
    `Sources of market data: ${FEEDS.join(', ')}; several, comma-separated`,
  ),
  feedKey: secret('FEED_KEY', 'Key of feeds that push; without it push ingest is off'),
  adminKey: secret('ADMIN_KEY', 'Key of the operator; without it the admin endpoints are off'),
  readLimitAnonymous: setting(
    'read-limit-anonymous',
    'READ_LIMIT_ANONYMOUS',
    '30',
    wholeNumber(0, 1e9),
    'Reads a minute and address without a key; 0: no limit',
  ),
  readLimitKeyed: setting(
    'read-limit-keyed',
    'READ_LIMIT_KEYED',
    '300',
    wholeNumber(0, 1e9),
    'Reads a minute and key; 0: no limit',
  ),
  rowsPerRead: setting(
    'rows-per-read',
    'ROWS_PER_READ',
    '10000',
    wholeNumber(0, 1e6),
    'Rows of market lists a minute, for each read that the limit allows: 30 reads may take 300000 rows; 0: no limit',
  ),
  registerLimit: setting(
    'register-limit',
    'REGISTER_LIMIT',
    '20',
    wholeNumber(0, 1e9),
    'Registrations an hour and address; 0: no limit',
  ),
  registration: setting(
    'registration',
    'REGISTRATION',
    'open',
    z.enum(['open', 'closed']),
    'Whether agents may register themselves: open or closed',
  ),
  submitRate: setting(
    'submit-rate',
    'SUBMIT_RATE',
    '10',
    wholeNumber(0, 1e6),
    'Submissions a minute and agent; 0: no limit',
  ),
  submitCooldownMs: setting(
    'submit-cooldown-ms',
    'SUBMIT_COOLDOWN_MS',
    '60000',
    wholeNumber(0, 24 * HOUR_MS),
    'Time between two submissions of an agent on one mint; 0: none',
  ),
  strikes: setting(
    'strikes',
    'STRIKES',
    '3',
    wholeNumber(0, 1_000),
    'The rejection within 24 hours that suspends an agent; 0: no automatic ban',
  ),
  suspensions: setting(
    'suspensions',
    'SUSPENSIONS',
    '3',
    wholeNumber(0, 1_000),
    'The suspension within 30 days that bans for good; 0: none does',
  ),
  pageAgeMs: setting(
    'page-age-ms',
    'PAGE_AGE_MS',
    '50',
    wholeNumber(0, 1_000),
    'How old an answer to a read may be that is given again, ms; 0: every one is made anew',
  ),
  followFlushMs: setting(
    'follow-flush-ms',
    'FOLLOW_FLUSH_MS',
    `${FOLLOW_FLUSH_MS_DEFAULT}`,
    wholeNumber(0, 10_000),
    'How long a change may wait to be sent to followers together with others, ms; 0: not at all',
  ),
  drainNoticeMs: setting(
    'drain-notice-ms',
    'DRAIN_NOTICE_MS',
    '500',
    wholeNumber(0, 10_000),
    'How long a server that was told to end says so, by /readyz and 503 draining, before it takes no more connections, ms',
  ),
  lakeFlushMs: setting(
    'lake-flush-ms',
    'LAKE_FLUSH_MS',
    '10000',
    wholeNumber(0, 24 * HOUR_MS),
    'How often new rows go to Parquet, ms; 0: at shutdown only',
  ),
  lakeTidyMs: setting(
    'lake-tidy-ms',
    'LAKE_TIDY_MS',
    '60000',
    wholeNumber(0, 24 * HOUR_MS),
    'How often small Parquet files are merged and replaced ones removed, ms; 0: never',
  ),
  lakeGraceMs: setting(
    'lake-grace-ms',
    'LAKE_GRACE_MS',
    '300000',
    wholeNumber(0, 7 * 24 * HOUR_MS),
    'How long a replaced Parquet file stays for readers of an older catalog, ms',
  ),
  retainTrainingDays: retention('training', 1),
  retainRejectionsDays: retention('rejections', 1),
  // Outcomes look a day ahead of their submission.
  retainBarsDays: retention('bars', 2),
  retainOutcomesDays: retention('outcomes', 1),
  diskReserveMb: setting(
    'disk-reserve-mb',
    'DISK_RESERVE_MB',
    `${DISK_RESERVE_MB_DEFAULT}`,
    wholeNumber(0, 1_000_000),
    'Submissions are refused while less of the disk is free, MB; 0: until it is full',
  ),
  mixed: setting(
    'mixed',
    'MIXED',
    'false',
    flag,
    'true: simulated and real data may lie in one data folder, told apart by the column simulated',
  ),
  tokensMax: setting(
    'tokens-max',
    'TOKENS_MAX',
    '100000',
    wholeNumber(1, 2_000_000),
    'Tokens held at once; one more evicts the coldest',
  ),
  newHours: setting(
    'new-hours',
    'NEW_HOURS',
    '24',
    wholeNumber(1, 24 * 365),
    'How long a token counts as new, hours',
  ),
  trustedProxies: setting(
    'trusted-proxies',
    'TRUSTED_PROXIES',
    '',
    networkList(),
    'Addresses, or networks as address/bits, whose X-Forwarded-For is believed, comma-separated',
  ),
  simulatorSeed: setting(
    'simulator-seed',
    'SIMULATOR_SEED',
    '1',
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    'Seed of the simulated market',
  ),
  simulatorTokens: setting(
    'simulator-tokens',
    'SIMULATOR_TOKENS',
    '3000',
    wholeNumber(1, 50_000),
    'Simulated tokens at the start',
  ),
  simulatorRate: setting(
    'simulator-rate',
    'SIMULATOR_RATE',
    '300',
    wholeNumber(1, 20_000),
    'Simulated trades a second',
  ),
  replayFile: setting(
    'replay-file',
    'REPLAY_FILE',
    '',
    z.string(),
    'Parquet, CSV or NDJSON file of trades for the feed replay',
  ),
  replayMap: setting(
    'replay-map',
    'REPLAY_MAP',
    '',
    mapping(),
    'Columns of that file where they bear other names: ts=,symbol=,price=,size=, and optionally side=,wallet=,tx=',
  ),
  replaySpeed: setting(
    'replay-speed',
    'REPLAY_SPEED',
    '1',
    replaySpeed(),
    'Times the recorded speed, or max',
  ),
  replayTime: setting(
    'replay-time',
    'REPLAY_TIME',
    'recorded',
    z.enum(['recorded', 'now']),
    'recorded keeps the trades’ times; now moves them so that the first one happens at the start',
  ),
  pumpportalKey: secret(
    'PUMPPORTAL_KEY',
    'API key of PumpPortal: without it launches and migrations come, but no trades',
  ),
  pumpportalUrl: setting(
    'pumpportal-url',
    'PUMPPORTAL_URL',
    'wss://pumpportal.fun/api/data',
    address('ws', 'wss'),
    'Address of PumpPortal’s WebSocket',
  ),
  birdeyeKey: secret(
    'BIRDEYE_KEY',
    'API key of Birdeye, the security provider; without it the enriched fields come from patches alone',
  ),
  birdeyeUrl: setting(
    'birdeye-url',
    'BIRDEYE_URL',
    'https://public-api.birdeye.so',
    address('http', 'https'),
    'Address of Birdeye’s API',
  ),
  birdeyeRate: setting(
    'birdeye-rate',
    'BIRDEYE_RATE',
    '1',
    wholeNumber(1, PROVIDER_REQUESTS_PER_SECOND_MAX),
    'Requests a second that Birdeye’s plan allows; a token takes two, and what is beyond waits, the latest traded first',
  ),
  solPrice: setting(
    'sol-price',
    'SOL_PRICE',
    '',
    solPrice(),
    'Price of one SOL in USD until a feed tells a better one; PumpPortal tells none',
  ),
  logFormat: setting(
    'log-format',
    'LOG_FORMAT',
    'auto',
    z.enum(['auto', 'text', 'json']),
    'auto: text on a terminal, JSON otherwise',
  ),
  quiet: setting('quiet', 'QUIET', 'false', flag, 'true: warnings and errors only'),
} as const

export interface Setting<Schema extends z.ZodType = z.ZodType> {
  /** Without the dashes; null for secrets. */
  flag: string | null
  env: string
  otherwise: string
  schema: Schema
  description: string
}

export type Config = Readonly<{ [Name in keyof typeof SETTINGS]: z.infer<(typeof SETTINGS)[Name]['schema']> }>

/** A setting is wrong: the message is for people, the process exits with code 2. */
export class ConfigError extends Error {}

function setting<Schema extends z.ZodType>(
  flagName: string,
  env: string,
  otherwise: string,
  schema: Schema,
  description: string,
): Setting<Schema> {
  return { flag: flagName, env: `MINTLAKE_${env}`, otherwise, schema, description }
}

function secret(env: string, description: string): Setting<z.ZodString> {
  return { flag: null, env: `MINTLAKE_${env}`, otherwise: '', schema: z.string(), description }
}

/** Whole dates leave the lake. The ledger stays, or it would not add up; a token's texts, since they are still in force. */
function retention(table: 'training' | 'rejections' | 'bars' | 'outcomes', daysMin: number) {
  const days = wholeNumber(0, RETAIN_DAYS_MAX).refine(
    (value) => value === 0 || value >= daysMin,
    `must be 0 or at least ${daysMin}`,
  )
  const description = `Full days before today that ${table} stay in the lake; 0: for ever`
  return setting(`retain-${table}-days`, `RETAIN_${table.toUpperCase()}_DAYS`, '0', days, description)
}

function wordList() {
  return z.string().transform((words) =>
    words
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== ''),
  )
}

/** An address of IPv6 may stand in brackets, as in a URL. */
function host() {
  return z
    .string()
    .min(1)
    .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))
}

function networkList() {
  return wordList().refine(
    (words) => words.every(isNetwork),
    'every word must be an address, or address/bits',
  )
}

function feedList() {
  return wordList()
    .pipe(z.array(z.enum(FEEDS)).min(1))
    .refine((feeds) => new Set(feeds).size === feeds.length, 'names a feed twice')
    .refine((feeds) => feeds.length === 1 || !feeds.includes('none'), 'none stands alone')
    .transform((feeds) => feeds.filter((feed) => feed !== 'none'))
}

function mapping() {
  return wordList().transform((pairs, context) => {
    const columns: Record<string, string> = {}
    for (const pair of pairs) {
      const at = pair.indexOf('=')
      if (at < 1) context.addIssue({ code: 'custom', message: `"${pair}" is not of the form field=column` })
      else columns[pair.slice(0, at)] = pair.slice(at + 1)
    }
    return columns
  })
}

function replaySpeed() {
  return z.union([z.literal('max'), number.pipe(z.number().positive().max(1e6))])
}

/** An address of somebody else's server, whole. */
function address(...schemes: readonly string[]) {
  return z.string().refine((text) => schemes.includes(URL.parse(text)?.protocol.slice(0, -1) ?? ''), {
    error: `must be an address that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
  })
}

function solPrice() {
  return z.union([z.literal('').transform(() => null), number.pipe(z.number().positive().max(1e6))])
}

/** Reads flags over environment over defaults; an empty variable is one that is not set. @throws ConfigError */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Config {
  const flags = readFlags(args)
  refuseMisspeltEnv(env)
  /** Where each setting was given. */
  const given = new Map<keyof Config, string>()
  const values = Object.entries(SETTINGS).map(
    ([key, { flag: flagName, env: envName, otherwise, schema }]) => {
      const name = key as keyof Config
      const fromFlag = flagName === null ? undefined : flags[flagName]
      const sent = fromFlag ?? (env[envName] || undefined)
      const where = fromFlag === undefined ? envName : `--${flagName}`
      if (sent !== undefined) given.set(name, where)
      const result = safeParse(schema as z.ZodType, sent ?? otherwise)
      if (result.success) return [name, result.data]
      throw new ConfigError(
        `${where}: "${shown(name, sent)}" is not valid: ${result.error.issues[0].message}`,
      )
    },
  )
  const config = Object.freeze(Object.fromEntries(values)) as Config
  const idle = idleSetting(config, [...given.keys()])
  if (idle !== null) throw new ConfigError(`${given.get(idle.name)} has no effect without ${idle.without}`)
  if (config.feeds.includes('replay') && config.replayFile === '')
    throw new ConfigError('--feed replay needs --replay-file')
  return config
}

function readFlags(args: readonly string[]): Record<string, string | undefined> {
  const names = Object.values(SETTINGS).flatMap(({ flag: name }) => name ?? [])
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    const sent = args.find((arg) => arg.startsWith('--') && !names.includes(arg.slice(2).split('=')[0]))
    if (sent === undefined) throw new ConfigError((error as Error).message)
    throw new ConfigError(
      `${sent.split('=')[0]} is not a flag of this program; did you mean --${closest(sent.slice(2).split('=')[0], names)}?`,
    )
  }
}

/** Edits by which a misspelt variable may differ from the one that was meant. */
const MISSPELT_EDITS_MAX = 3

/** A misspelt variable of ours would silently do nothing; one that belongs to a client on the same machine may stand. */
function refuseMisspeltEnv(env: Readonly<Record<string, string | undefined>>): void {
  const known = Object.values(SETTINGS).map(({ env: name }) => name)
  for (const name of Object.keys(env)) {
    if (!name.startsWith('MINTLAKE_') || known.includes(name)) continue
    const nearest = closest(name, known)
    if (distance(name, nearest) > MISSPELT_EDITS_MAX) continue
    throw new ConfigError(`${name} is not a setting of this program; did you mean ${nearest}?`)
  }
}

/** The configuration for the log: secrets show only whether they are set. */
export function shownConfig(config: Config): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name,
      name.endsWith('Key') ? (value === '' ? 'not set' : 'set') : shown(name, value),
    ]),
  )
}

/** An address may hold a key in its query, or a password. */
function shown<Value>(name: string, value: Value): Value | string {
  return name.endsWith('Url') ? `${value}`.replace(/\/\/[^/]*@/, '//…@').replace(/\?.*$/s, '?…') : value
}

/** The text of --help. */
export function usage(): string {
  const rows = Object.values(SETTINGS).map(({ flag: name, env, otherwise, description }) => [
    name === null ? '' : `--${name}`,
    env,
    otherwise === '' ? '-' : otherwise,
    description,
  ])
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column].length)))
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n')
}
