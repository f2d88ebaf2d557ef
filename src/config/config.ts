// Reads the configuration from command-line flags and the environment. No other code reads the environment.
import { parseArgs } from 'node:util'
import { closest, distance } from 'fastest-levenshtein'
import type { z } from 'zod'
import { errorMessage } from '../lib/error-text.ts'
import { keysOf } from '../lib/record.ts'
import { firstIssue, safeParse } from '../lib/safe-parse.ts'
import { didYouMean } from '../lib/text/nearest-word.ts'
import { repeatedFlag, wrongFlags } from '../lib/wrong-flags.ts'
import { CLIENT_ENV } from './client-env.ts'
import { isReaderSetting } from './reader-settings.ts'
import { REPLACED } from './replaced.ts'
import { FIRST_SETTINGS, SETTING_GROUPS } from './setting-groups.ts'
import { settingWithoutEffect } from './setting-needs.ts'
import {
  type Config,
  isWriter,
  pathsOf,
  SETTINGS,
  SETTINGS_BY_PATH,
  type SettingName,
  type SettingPath,
  valueAt,
} from './settings.ts'

/** A setting is wrong. The message is meant for people; the process exits with code 2. */
export class ConfigError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>

/** Flags take precedence over the environment, which takes precedence over defaults; an empty variable counts as not set.
 *  @throws ConfigError */
export function readConfig(args: readonly string[], env: Environment): Config {
  const flags = readFlags(args)
  refuseMisspeltEnv(env)
  const { config, givenBy } = readEach(flags, env, (wrong) => {
    throw wrong
  })
  return checked(config, givenBy)
}

/** Whatever of the settings is valid by itself, with the defaults of the others. Wrong for a server, but not for who looks at one that
 *  would not start. @returns with it which are wrong @throws ConfigError for a flag that is none */
export function readWhatIsValid(
  args: readonly string[],
  env: Environment,
): { config: Config; wrong: ReadonlySet<SettingPath> } {
  const wrong = new Set<SettingPath>()
  const { config } = readEach(readFlags(args), env, (_, path) => wrong.add(path))
  return { config, wrong }
}

function readEach(
  flags: Readonly<Record<string, string | undefined>>,
  env: Environment,
  onWrong: (error: ConfigError, path: SettingPath) => void,
) {
  /** Where each setting that was given comes from, as a sentence names it. */
  const givenBy = new Map<string, string>()
  const config: Record<string, unknown> = {}
  for (const path of keysOf(SETTINGS_BY_PATH)) {
    const { flag: flagName, env: envName, defaultText, schema } = SETTINGS_BY_PATH[path]
    const fromFlag = flagName === null ? undefined : flags[flagName]
    const sent = fromFlag ?? (env[envName] || undefined)
    const source = fromFlag === undefined ? envName : `--${flagName}`
    if (sent !== undefined) givenBy.set(path, source)
    const result = safeParse<z.ZodType>(schema, sent ?? defaultText)
    if (!result.success)
      onWrong(new ConfigError(`${source}: ${refusal(path, sent, firstIssue(result.error).message)}`), path)
    put(config, path, result.success ? result.data : schema.parse(defaultText))
  }
  return { config: config as Config, givenBy }
}

/** Puts a value at a path such as `bus.name`. */
function put(config: Record<string, unknown>, path: string, value: unknown): void {
  const [name = '', inner] = path.split('.')
  config[name] = inner === undefined ? value : { ...Object(config[name]), [inner]: value }
}

/** @throws ConfigError for settings that are valid alone but not together. */
function checked(config: Config, givenBy: ReadonlyMap<string, string>): Config {
  const idle = settingWithoutEffect(config, (path) => givenBy.has(path))
  if (idle !== null) throw new ConfigError(`${givenBy.get(idle.path)} has no effect without ${idle.missing}`)
  if (config.role !== 'all' && config.bus.servers.length === 0)
    throw new ConfigError(
      `--role ${config.role} needs --bus, the NATS server that connects writer and readers`,
    )
  if (config.bus.login.user !== '' && config.bus.password === '')
    throw new ConfigError(`--bus-login user=… needs ${SETTINGS.bus.password.env}`)
  if (isWriter(config) && config.record.events === 'false')
    throw new ConfigError(`--role ${config.role} records events: without them readers have no market`)
  if (isWriter(config) && config.replay.lake !== '')
    throw new ConfigError(
      `--replay lake=… plays a market for one process: --role ${config.role} has an own one`,
    )
  checkFeeds(config)
  return Object.freeze(config)
}

function checkFeeds(config: Config): void {
  const { feeds, replay, solana } = config
  if (feeds.includes('solana') && solana.rpcUrls.length === 0 && solana.tapeFile === '')
    throw new ConfigError('--feed solana needs --solana-rpc, an endpoint of the chain, or --solana-tape')
  if (solana.tapeFile !== '' && feeds.length > 1)
    throw new ConfigError('--solana-tape plays a whole market: no other --feed may be beside it')
  const sockets = solana.socketUrls.length
  if (sockets > 0 && sockets !== solana.rpcUrls.length)
    throw new ConfigError('--solana-ws names as many addresses as --solana-rpc')
  if (!feeds.includes('replay')) return
  if (replay.file === '' && replay.lake === '')
    throw new ConfigError('--feed replay needs --replay file=FILE or --replay lake=FOLDER')
  if (replay.lake !== '' && feeds.length > 1)
    throw new ConfigError('--replay lake=… plays a whole market: no other --feed may be beside it')
}

function readFlags(args: readonly string[]): Record<string, string | undefined> {
  const names = Object.values(SETTINGS_BY_PATH).flatMap(({ flag: name }) => name ?? [])
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  try {
    const parsed = parseArgs({
      args: [...args],
      options,
      strict: true,
      allowPositionals: false,
      tokens: true,
    })
    const repeated = repeatedFlag(parsed.tokens)
    if (repeated !== null) throw new ConfigError(repeated)
    return parsed.values
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const sent = args.filter((arg) => arg.startsWith('--')).flatMap((arg) => arg.slice(2).split('=', 1))
    const unknown = sent.find((name) => !names.includes(name))
    if (unknown !== undefined) refuseReplaced(`--${unknown}`, unknown)
    if (unknown === undefined) {
      const takesValue = (name: string): true | undefined => names.includes(name) || undefined
      throw new ConfigError(wrongFlags(args, takesValue, false) ?? errorMessage(error))
    }
    const meant = didYouMean(unknown, names, (name) => `--${name}`) || mayBePart(unknown, names, '-', '--')
    throw new ConfigError(`--${unknown} is not a flag of this program${meant}`)
  }
}

/** The end of a sentence on a name that is longer than that of a setting: many are parts of one, `days` of `retain`. '' for none. */
function mayBePart(name: string, known: readonly string[], separator: string, dashes = ''): string {
  const whole = known
    .filter((each) => name.startsWith(each + separator))
    .toSorted((a, b) => b.length - a.length)
  return whole.length === 0 ? '' : `; did you mean ${dashes}${whole[0]}?`
}

/** A setting that went would silently do nothing. @param given the flag or variable that was sent */
function refuseReplaced(given: string, flagName: string): void {
  const instead = REPLACED[flagName]
  if (instead !== undefined) throw new ConfigError(`${given} is no setting any more: ${instead}`)
}

const PREFIX = 'MINTLAKE_'
/** A variable that differs from a known one by at most this many edits is taken for a misspelling. */
const MISSPELT_EDITS_MAX = 3

/** A misspelt variable would silently do nothing. Those of clients, and others with our prefix, are ignored. @throws ConfigError */
export function refuseMisspeltEnv(env: Environment): void {
  const known = Object.values(SETTINGS_BY_PATH).map(({ env: name }) => name)
  const others: readonly string[] = Object.values(CLIENT_ENV)
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || !value || known.includes(name) || others.includes(name)) continue
    refuseReplaced(name, name.slice(PREFIX.length).toLowerCase().replaceAll('_', '-'))
    const nearest = closest(name, known)
    const isMisspelt = distance(name, nearest) <= MISSPELT_EDITS_MAX
    const meant = isMisspelt ? `; did you mean ${nearest}?` : mayBePart(name, known, '_')
    if (meant !== '') throw new ConfigError(`${name} is not a setting of this program${meant}`)
  }
}

/** The configuration for the log, of a reader what that uses: of secrets only whether they are set. */
export function shownConfig(config: Config): Record<string, unknown> {
  return Object.fromEntries(
    keysOf(SETTINGS_BY_PATH).flatMap((path) => {
      if (config.role === 'reader' && !isReaderSetting(path)) return []
      const value = valueAt(config, path)
      const isSecret = SETTINGS_BY_PATH[path].flag === null
      return [[path, isSecret ? (value === '' ? 'not set' : 'set') : withoutSecrets(path, value)]]
    }),
  )
}

/** The value without what its addresses may hold of secrets: a password, or a key in a query. */
function withoutSecrets(path: SettingPath, value: unknown): unknown {
  if (SETTINGS_BY_PATH[path].flag === null) return '…'
  if (path === 'solana.rpcUrls' || path === 'solana.socketUrls') return hostsOf(value)
  return JSON.parse(JSON.stringify(value ?? null), (_, each) =>
    typeof each === 'string' ? masked(each) : each,
  )
}

/** What is wrong with a value. Nothing tells where a query of it ends: all behind is masked, and what the reason quotes of it. */
function refusal(path: SettingPath, sent: string | undefined, reason: string): string {
  const withoutUser = `${withoutSecrets(path, sent)}`
    .replaceAll(/\/\/[^/]*@/g, '//…@')
    .replaceAll(USER_WITHOUT_SCHEME, '…@')
    .replace(/\?.*/s, '?…')
  const shown = path === 'bus.login' ? withoutUser.replace(OTHER_LOGIN_PART, '$1$2…') : withoutUser
  const quoted = (whole: string, text: string): string => (shown.includes(text) ? whole : '"…"')
  const told = shown === sent ? reason : reason.replaceAll(/"([^"]*)"/g, quoted)
  return `"${shown}" is not valid: ${told}`
}

/** As in `user:password@host`. */
const USER_WITHOUT_SCHEME = /(?<![^\s,"])(?:(?!:\/\/)[^\s,"])*@/g
/** A part that a login does not have is often its password. Nothing tells where that ends. */
const OTHER_LOGIN_PART = /(^|,)(?!user=|credentials=|ca=|cert=|key=)([^=,]*=)?.+/s

/** One address: its password and its query may have commas. */
const masked = (text: string): string =>
  text.includes('://') ? text.replaceAll(/\/\/[^/]*@/g, '//…@').replace(/\?.*/s, '?…') : text

/** The hosts of addresses whose paths and queries are keys. */
const hostsOf = (value: unknown): string =>
  `${value ?? ''}`
    .split(',')
    .map((text) => URL.parse(text)?.host ?? '…')
    .join(',')

/** The text of --help: what matters first, or everything by what it is for. */
export function usage(isAll: boolean): string {
  const groups = isAll
    ? [{ title: 'First of all', settings: FIRST_SETTINGS }, ...SETTING_GROUPS]
    : [{ title: 'What matters first', settings: FIRST_SETTINGS }]
  const tables = groups.map(({ title, settings }) => `${title}\n\n${settingRows(settings)}`)
  const titles = SETTING_GROUPS.map((group) => group.title.toLowerCase()).join(', ')
  const rest = Object.keys(SETTINGS_BY_PATH).length - FIRST_SETTINGS.length
  const more = isAll ? '' : `\n\n--help all lists the other ${rest}: ${titles}.`
  return `npm start -- [--name value …]; each can also be given as the environment variable beside it.\n\n${tables.join('\n\n')}${more}`
}

/** The name of each setting, its variable and its default, and below them what it means. */
function settingRows(names: readonly SettingName[]): string {
  const settings = pathsOf(names).map((path) => SETTINGS_BY_PATH[path])
  const flagOf = (flagName: string | null): string => (flagName === null ? '' : `--${flagName}`)
  const width = Math.max(...settings.map(({ flag: name }) => flagOf(name).length))
  return settings
    .map(({ flag: name, env, defaultText, description }) => {
      const standard = defaultText === '' ? '' : ` [${defaultText}]`
      return `  ${flagOf(name).padEnd(width)}  ${env}${standard}\n  ${''.padEnd(width)}  ${description}`
    })
    .join('\n')
}
