// `doctor`: whether a server can run here, and what is wrong with the one that does.

import { CLIENT_ENV } from '../../config/client-env.ts'
import { readConfig, readWhatIsValid } from '../../config/config.ts'
import { REPLACED } from '../../config/replaced.ts'
import { type Config, SETTINGS, SETTINGS_BY_PATH, type SettingPath } from '../../config/settings.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { checkNamedFiles } from '../../server/startable.ts'
import { findLockHolder } from '../../store/data-folder/folder-lock.ts'
import { type Command, EXIT, type Option, type Values } from '../command.ts'
import { busChecks } from '../doctor/bus.ts'
import { endpointChecks } from '../doctor/chain.ts'
import { type Check, type CheckResult, fail, type Level, ok, warn } from '../doctor/check.ts'
import { type AnsweringServer, checkDiskSpace, checkFolder, checkWritable } from '../doctor/data-folder.ts'
import {
  BINARIES,
  checkBinary,
  checkClock,
  checkDescriptors,
  checkMemory,
  checkNode,
} from '../doctor/platform.ts'
import { checkPort, checkServer } from '../doctor/server.ts'
import { ADMIN_KEY_CHARACTERS_MIN, SERVER_TIMEOUT_MS } from '../limits.ts'
import { askHealth, URL_OPTION, urlOf } from '../server-client.ts'
import { type Terminal, write } from '../terminal.ts'

/** The flags of `serve`: without a value, the environment or the default counts, as there. */
const settingOptions = (): Record<string, Option> =>
  Object.fromEntries(
    Object.values(SETTINGS_BY_PATH).flatMap(({ flag, description }) =>
      flag === null ? [] : [[flag, { value: 'VALUE', description }]],
    ),
  )

const givenFlags = (values: Values): string[] =>
  Object.keys(settingOptions()).flatMap((flag) => (values[flag] ? [`--${flag}`, values[flag]] : []))

interface ReadSettings {
  /** With the defaults of those that are wrong, so that the other checks can be made. */
  config: Config
  /** Those that say which kind of market comes are valid. */
  isMarketKnown: boolean
  result: CheckResult
}

/** Where one of these is wrong, its default would tell of another market than the one that is meant. */
const MARKET_SETTINGS: readonly SettingPath[] = ['feeds', 'replay', 'store.isMixed']

function readSettings(values: Values, { env }: Terminal): ReadSettings {
  const given = givenFlags(values)
  const { config, wrong } = readWhatIsValid(given, env)
  const isMarketKnown = MARKET_SETTINGS.every((path) => !wrong.has(path))
  try {
    const whole = readConfig(given, env)
    checkNamedFiles(whole)
    return { config, isMarketKnown, result: checkConfig(whole) }
  } catch (error) {
    const remedy = 'a server would not start with it; mintlake serve --help lists the settings'
    return { config, isMarketKnown, result: fail(errorMessage(error), remedy) }
  }
}

function checkConfig({ adminKey, feedKey, feeds, host, role }: Config): CheckResult {
  if (adminKey !== '' && adminKey === feedKey)
    return warn('feeds have the operator’s key', 'give MINTLAKE_FEED_KEY a value of its own')
  if (adminKey !== '' && adminKey.length < ADMIN_KEY_CHARACTERS_MIN)
    return warn(
      `MINTLAKE_ADMIN_KEY has fewer than ${ADMIN_KEY_CHARACTERS_MIN} characters`,
      'openssl rand -hex 24 makes one that nobody guesses',
    )
  const listens = `every setting is valid and has an effect; listens on ${host}`
  // It takes neither feeds nor keys: those are the writer's.
  if (role === 'reader') return ok(listens)
  if (adminKey === '')
    return warn(
      'MINTLAKE_ADMIN_KEY is not set: the operator’s commands, backups of the running server among them, are off',
      'set it in the environment of the server',
    )
  const market = feeds.includes('simulator') ? '; the market is simulated (--feed)' : ''
  return ok(`${listens}${market}`)
}

const folderChecks = ({ config, isMarketKnown }: ReadSettings, server: AnsweringServer | null): Check[] => [
  { name: 'data folder', run: () => checkFolder(config, server, isMarketKnown) },
  { name: 'disk', run: () => checkWritable(config.dataDir) },
  { name: 'room', run: () => checkDiskSpace(config.dataDir, config.store.diskReserveMb) },
]

async function checksFor(values: Values, terminal: Terminal): Promise<Check[]> {
  const read = readSettings(values, terminal)
  const { config, result } = read
  const { host, port } = config
  // A reader has none.
  const dataDir = config.role === 'reader' ? null : config.dataDir
  // It is about the server of these settings, wherever clients of this shell go.
  const own = { [CLIENT_ENV.url]: undefined, [SETTINGS.host.env]: host, [SETTINGS.port.env]: `${port}` }
  const env = { ...terminal.env, ...own }
  const url = urlOf(values, { ...terminal, env })
  // One that is starting answers late.
  const health = await askHealth(url, SERVER_TIMEOUT_MS)
  const server =
    typeof health === 'string' ? null : { url, folderId: health.store.folderId, isHere: !values.url }
  const holder = dataDir === null ? null : findLockHolder(dataDir)
  return [
    { name: 'node', run: () => checkNode() },
    ...Object.entries(BINARIES).map(([name, program]) => ({ name, run: () => checkBinary(name, program) })),
    { name: 'memory', run: () => checkMemory() },
    { name: 'descriptors', run: () => checkDescriptors() },
    { name: 'settings', run: () => result },
    { name: 'port', run: () => checkPort(host, port, health, holder) },
    ...(dataDir === null ? [] : folderChecks(read, server)),
    { name: 'clock', run: () => checkClock(terminal.clock.now(), dataDir) },
    ...busChecks(config),
    ...endpointChecks(config, terminal.clock),
    { name: 'server', run: () => checkServer(url, health, Boolean(values.url)) },
  ]
}

type Finding = CheckResult & { name: string }

/** A check that fails by itself is a finding, and keeps no other from being made. */
async function carryOut({ name, run }: Check): Promise<Finding> {
  try {
    return { name, ...(await run()) }
  } catch (error) {
    return { name, ...fail(errorMessage(error), 'this check itself failed') }
  }
}

const NAME_WIDTH = 18
const lineOf = ({ name, level, message, remedy }: Finding): string =>
  `${level.padEnd(5)} ${name.padEnd(NAME_WIDTH)} ${message}${remedy === null ? '' : `\n${' '.repeat(NAME_WIDTH + 7)}→ ${remedy}`}\n`

async function run(values: Values, terminal: Terminal): Promise<number> {
  const findings: Finding[] = []
  for (const check of await checksFor(values, terminal)) {
    const finding = await carryOut(check)
    findings.push(finding)
    if (values.json !== 'true') await write(terminal.stdout, lineOf(finding))
  }
  const count = (level: Level): number => findings.filter((each) => each.level === level).length
  const isHealthy = count('fail') === 0
  const summary = `${count('fail')} wrong, ${count('warn')} to look at, ${count('ok')} well\n`
  const json = `${JSON.stringify({ ok: isHealthy, checks: findings }, null, 2)}\n`
  await write(terminal.stdout, values.json === 'true' ? json : summary)
  return isHealthy ? EXIT.done : EXIT.failed
}

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Check whether a server can run here, and what is wrong with the one that does',
  options: {
    json: { description: 'As JSON' },
    url: { ...URL_OPTION, description: 'Where the server runs [that of --host and --port]' },
    ...settingOptions(),
  },
  replaced: REPLACED,
  notes: [
    'Give it the flags and the environment of the server. Exit code 0: nothing is wrong, though something may be worth a look;',
    '1: a server would not start, would lose data, or says itself that something is wrong. Nothing is changed: a small file',
    'is written to the data folder and removed, to measure the disk.',
  ],
  run,
}
