// Tests that a setting that is wrong, or would have no effect, is refused with a sentence that says why.
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig, shownConfig, usage } from '../../src/config/config.ts'
import { isReaderSetting, READER_SETTINGS } from '../../src/config/reader-settings.ts'
import { REPLACED } from '../../src/config/replaced.ts'
import { SETTING_GROUPS } from '../../src/config/setting-groups.ts'
import { SETTINGS_BY_PATH, solPriceMaxAgeMs } from '../../src/config/settings.ts'

const errorOf = (args: string[], env: Record<string, string> = {}): string | null => {
  try {
    readConfig(args, env)
    return null
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message
  }
}
/** Values for settings that have none. */
const SAMPLES: Record<string, string> = {
  MINTLAKE_ADMIN_KEY: 'a',
  MINTLAKE_BIRDEYE_KEY: 'b',
  MINTLAKE_PUMPPORTAL_KEY: 'p',
  MINTLAKE_REPLAY_MAP: 'ts=a',
  MINTLAKE_SOL_PRICE: '150',
  MINTLAKE_SOLANA_RPC: 'https://a',
  MINTLAKE_SOLANA_WS: 'wss://a',
  MINTLAKE_SOLANA_TAPE: 'tape.gz',
}
const words = (line: string) => line.split(' ').filter((word) => word !== '')

describe('a setting that has no effect', () => {
  test.each([
    ['--replay speed=10', '--replay has no effect without --feed replay, or speed alone with --solana-tape'],
    ['--replay file=a', '--replay has no effect without --feed replay, or speed alone with --solana-tape'],
    [
      '--feed solana --solana-tape a --replay speed=10,time=now',
      '--replay has no effect without --feed replay, or speed alone with --solana-tape',
    ],
    ['--replay-map ts=time --feed none', '--replay-map has no effect without --feed replay'],
    [
      '--feed replay --replay lake=a --replay-map ts=time',
      '--replay-map has no effect without --replay file=FILE',
    ],
    ['--feed none --simulator seed=1', '--simulator has no effect without --feed simulator'],
    [
      '--providers pumpportal-url=wss://a/b',
      '--providers has no effect without --feed pumpportal, which pumpportal-url is for',
    ],
    [
      '--feed pumpportal --providers birdeye-rate=5',
      '--providers has no effect without MINTLAKE_BIRDEYE_KEY, which birdeye-url and birdeye-rate are for',
    ],
    [
      '--feed pumpportal --providers birdeye-url=https://a',
      '--providers has no effect without MINTLAKE_BIRDEYE_KEY, which birdeye-url and birdeye-rate are for',
    ],
    [
      '--fetch-metadata true --feed none',
      '--fetch-metadata has no effect without --feed pumpportal, --feed solana with endpoints, or a key for feeds that push (MINTLAKE_FEED_KEY)',
    ],
    [
      '--sol-price 150',
      '--sol-price has no effect without a feed that sends no price of SOL itself: pumpportal, replay, or one that pushes (MINTLAKE_FEED_KEY)',
    ],
    [
      '--lake-tidy every-ms=0 --retain bars=9',
      '--retain has no effect without every-ms of --lake-tidy above 0: that is when files are removed',
    ],
    [
      '--record checkpoint-ms=5000',
      '--record has no effect without recorded events of a real feed, which checkpoint-ms is for: a simulated market is made again, or another one, at each start',
    ],
    ['--bus-stream max-mb=5 --role all', '--bus-stream has no effect without --bus'],
    ['--bus nats://a', '--bus has no effect without --role writer or --role reader'],
    ['--reader share-port=true', '--reader has no effect without --role reader'],
    [
      '--role standby --bus nats://a --reader writer-url=http://a',
      '--reader has no effect without --role reader',
    ],
    ['--node-url http://a', '--node-url has no effect without --bus'],
    ['--bus-login ca=a', '--bus-login has no effect without --bus'],
  ])('%s is refused', (line, message) => {
    expect(errorOf(words(line))).toBe(message)
  })

  const reader = words('--role reader --bus nats://a')

  test('is any of a reader that it does not use: a value for each is refused, from flag and environment', () => {
    const unused = Object.entries(SETTINGS_BY_PATH).filter(([name]) => !isReaderSetting(name))
    expect(unused.length).toBeGreaterThan(20)
    for (const [, { flag, env, defaultText }] of unused) {
      const value = SAMPLES[env] ?? defaultText
      const because = 'has no effect without --role writer'
      expect(errorOf(reader, { [env]: value }), env).toContain(`${env} ${because}`)
      if (flag !== null)
        expect(errorOf([...reader, `--${flag}`, value]), flag).toContain(`--${flag} ${because}`)
    }
  })

  test('is none of those that a reader uses', () => {
    const line = [
      '--role reader --bus tls://a --bus-name b --bus-login user=c,ca=c,cert=c,key=k',
      '--port 1 --host ::1 --trusted-proxies 10.0.0.1 --public-url https://a --image-hosts a',
      '--drain-notice-ms 1 --read-limit-anonymous 1 --read-limit-keyed 1 --page-age-ms 1',
      '--registration closed --register-limit 1 --submit-limits rate=1',
      '--node-url http://10.0.0.2:8080 --reader lag-max-ms=2000,share-port=true,writer-url=https://writer.internal',
      '--log-level debug',
    ].join(' ')
    const given = words(line).filter((word) => word.startsWith('--'))
    expect(errorOf(words(line), { MINTLAKE_FEED_KEY: 'f', MINTLAKE_BUS_PASSWORD: 'p' })).toBe(null)
    expect(errorOf([...reader, '--bus-login', 'credentials=c'])).toBe(null)
    expect(given).toHaveLength(READER_SETTINGS.length - 2)
  })

  test('is refused from the environment too, with the name of its variable', () => {
    expect(errorOf([], { MINTLAKE_REPLAY: 'speed=2' })).toBe(
      'MINTLAKE_REPLAY has no effect without --feed replay, or speed alone with --solana-tape',
    )
    expect(errorOf([], { MINTLAKE_PUMPPORTAL_KEY: 'k' })).toBe(
      'MINTLAKE_PUMPPORTAL_KEY has no effect without --feed pumpportal',
    )
    expect(errorOf(words('--feed none'), { MINTLAKE_BIRDEYE_KEY: 'k' })).toBe(
      'MINTLAKE_BIRDEYE_KEY has no effect without --feed pumpportal, --feed solana with endpoints, or a key for feeds that push (MINTLAKE_FEED_KEY)',
    )
  })

  test.each([
    ['--feed replay --replay file=a.csv,speed=max,time=now --sol-price 150', {}],
    ['--simulator trades-per-second=5,seed=2', {}],
    ['--feed simulator,replay --replay file=a.csv --simulator tokens=9', {}],
    [
      '--feed pumpportal --sol-price 150 --providers pumpportal-url=ws://a,birdeye-rate=100 --fetch-metadata true',
      { MINTLAKE_BIRDEYE_KEY: 'k', MINTLAKE_PUMPPORTAL_KEY: 'p' },
    ],
    ['--feed none --sol-price 150', { MINTLAKE_FEED_KEY: 'f', MINTLAKE_BIRDEYE_KEY: 'k' }],
    ['--lake-tidy every-ms=0 --retain trades=0', {}],
    ['--record true', {}],
    ['--feed none --record checkpoint-ms=0', {}],
    ['--submit-limits strikes=0', {}],
    ['--submit-limits strikes=0,suspensions=0', {}],
  ])('is not reported for settings that have one: %s', (line, env) => {
    expect(errorOf(words(line), env)).toBe(null)
  })
})

describe('the value of a setting', () => {
  test('of hosts are names alone, as addresses have them', () => {
    const hosts = (text: string) => readConfig(['--image-hosts', text], {}).imageHosts
    expect(readConfig([], {}).imageHosts).toEqual([])
    expect(hosts('Images.Example, b.example:8443,c.example:443')).toEqual([
      'images.example',
      'b.example:8443',
      'c.example',
    ])
    for (const wrong of [
      'https://a.example',
      'a.example/x',
      '*.example',
      '*',
      "'self'",
      'a b',
      'a;script-src *',
      'a"',
      'user@a',
      'a:99999',
      '-a',
      'a..b',
      Array.from({ length: 33 }, (_, at) => `h${at}`).join(),
    ])
      expect(errorOf(['--image-hosts', wrong]), wrong).toContain('--image-hosts')
  })

  test('of a span is market time, from or to which all is played where an end is left out', () => {
    const spanOf = (text: string) =>
      readConfig(['--feed=replay', `--replay=lake=a,span=${text}`], {}).replay.span
    const [from, to] = [Date.UTC(2026, 10, 21, 14), Date.UTC(2026, 10, 21)]
    expect(readConfig([], {}).replay.span).toEqual({ fromMs: null, toMs: null })
    expect(spanOf('2026-11-21T14:00..')).toEqual({ fromMs: from, toMs: null })
    expect(spanOf('..2026-11-21')).toEqual({ fromMs: null, toMs: to })
    expect(spanOf('2026-11-21 14:00..')).toEqual({ fromMs: from, toMs: null })
    expect(spanOf(`${to}..2026-11-21T15:00:00.5+01:00`)).toEqual({ fromMs: to, toMs: from + 500 })
  })

  test('of the price of SOL may be a number alone, and is as old as its feed allows', () => {
    const none = { usd: null, maxAgeMs: null }
    expect(readConfig([], {}).solPrice).toEqual(none)
    expect(readConfig(words('--feed pumpportal --sol-price 150'), {}).solPrice).toEqual({ ...none, usd: 150 })
    const told = readConfig(words('--sol-price max-age-ms=0'), {})
    expect(told.solPrice).toEqual({ ...none, maxAgeMs: 0 })
    const solana = readConfig(words('--feed solana --solana-rpc https://a'), {})
    expect([readConfig([], {}), told, solana].map(solPriceMaxAgeMs)).toEqual([86_400_000, 0, 600_000])
  })

  test('of what is recorded may be a word alone', () => {
    const of = (text: string) => readConfig(['--feed', 'none', '--record', text], {}).record
    expect(of('false')).toEqual({ events: 'false', checkpointMs: 300_000 })
    expect(of('true,checkpoint-ms=0')).toEqual({ events: 'true', checkpointMs: 0 })
  })

  test('of documents of tokens is the gateway of IPFS beside which they are fetched', () => {
    const of = (text: string) =>
      readConfig(['--fetch-metadata', text], { MINTLAKE_FEED_KEY: 'f' }).metadataGateway
    expect([of('false'), of('true'), of('https://gateway.example/x')]).toEqual([
      null,
      'https://ipfs.io',
      'https://gateway.example/x',
    ])
    // As its host writes it, with the path that is put behind it.
    const ways = ['https://ipfs.io/', 'https://ipfs.io/ipfs', 'https://ipfs.io/ipfs/', 'https://IPFS.io/?']
    for (const way of ways) expect(of(way)).toBe('https://ipfs.io')
    expect(of('https://[2606:4700::1]:8443/a/ipfs/')).toBe('https://[2606:4700::1]:8443/a')
    const refused = ['user@a.example', ':pass@a.example', 'a.example/?token=secret', 'a.example/#x']
    for (const text of [...refused, 'localhost', '10.0.0.5:8080', '[::1]', '127.1', 'gateway:8080'])
      expect(() => of(`https://${text}`), text).toThrow('of a host of the public Internet')
  })

  test('counts as not set when it is empty in the environment, and never as a limit of 0', () => {
    const empty = Object.fromEntries(Object.values(SETTINGS_BY_PATH).map(({ env }) => [env, '']))
    expect(readConfig([], empty)).toEqual(readConfig([], {}))
  })

  test('is given once: of two on the command line one would silently do nothing', () => {
    expect(errorOf(['--port', '1', '--feed', 'none', '--port=2'])).toBe('--port is given twice')
    expect(readConfig(['--port', '1'], { MINTLAKE_PORT: '2' }).port).toBe(1)
  })

  test.each(['--read-limit-anonymous=', '--port=', '--port= ', '--tokens-max=', '--new-hours='])(
    'is not a number when it is empty on the command line: %s',
    (flag) => {
      expect(errorOf([flag])).toMatch(/is not valid: must be a number$/)
    },
  )

  test.each([
    ['--feed simulator,simulator', 'names a feed twice'],
    ['--feed none,simulator', 'none stands alone'],
    ['--feed replay --replay file=a --replay-map time=ts', '"time" is none of the fields ts, symbol, price'],
    ['--feed replay --replay file=a --replay-map ts', '"ts" is not of the form field=column'],
    ['--providers pumpportal-url=https://a', 'must be an address that begins with ws:// or wss://'],
    ['--providers pumpportal-url=nowhere', 'must be an address that begins with ws:// or wss://'],
    ['--providers birdeye-url=ftp://a', 'must be an address that begins with http:// or https://'],
    ['--solana-rpc http://a,ws://b', 'must be an address that begins with http:// or https://'],
    [`--solana-ws ${Array(17).fill('ws://a')}`, 'there may be 16 addresses'],
    ['--replay lake=a,span=1', 'must be of the form FROM..TO'],
    ['--replay lake=a,span=1..2..3', 'must be of the form FROM..TO'],
    ['--replay lake=a,span=yesterday..', 'must be ISO 8601 times, such as 2026-01-31T12:00:00Z, or Unix ms'],
    ['--replay lake=a,span=2026..', 'must be ISO 8601 times'],
    ['--replay lake=a,span=2026-02-31..', 'must be ISO 8601 times'],
    ['--replay lake=a,span=..june5', 'must be ISO 8601 times'],
    ['--replay lake=a,span=..1795000000', 'must be ISO 8601 times'],
    ['--replay lake=a,span=2026-01-02..2026-01-01', 'must not begin after its end'],
    ['--replay file=a,lake=b', 'must name a file or a lake'],
    ['--replay file=a,span=2026-01-01..', 'must name the lake that span is of'],
    ['--replay lake=a,symbol=SPY', 'must name a file for symbol, time and simulated'],
    ['--replay lake=a,simulated=true', 'must name a file for symbol, time and simulated'],
    ['--feed replay', 'needs --replay file=FILE or --replay lake=FOLDER'],
    ['--feed replay,pumpportal --replay lake=a', 'plays a whole market'],
    ['--sol-price 0', 'must be a number above 0'],
    ['--sol-price 1,usd=2', 'names usd twice'],
    ['--sol-price max-age-ms=-1', 'must be a whole number from 0 to 2592000000'],
    ['--fetch-metadata http://a', 'must be true, false or an address that begins with https://'],
    ['--role writer --bus nats://user:pass@a', 'must not name a user'],
    ['--role writer --bus http://a', 'must be an address such as nats://127.0.0.1:4222'],
    ['--role writer', 'needs --bus'],
    ['--role writer --bus nats://a --bus-login cert=a', 'must name a cert together with its key'],
    ['--role writer --bus nats://a --bus-login key=a', 'must name a cert together with its key'],
    ['--role writer --bus nats://a --bus-login user=a', '--bus-login user=… needs MINTLAKE_BUS_PASSWORD'],
    ['--role writer --bus nats://a --bus-login user=a.b', 'must have 1 to 32 letters'],
    ['--role writer --bus nats://a --bus-login user=a,credentials=f', 'a process is one user'],
    ['--role writer --bus nats://a --record false', 'readers have no market'],
    ['--role writer --bus nats://a --bus-name a.b', 'must have 1 to 32 letters'],
    ['--providers birdeye-rate=101', 'must be a whole number from 1 to 100'],
    ['--providers birdeye-rate=0', 'must be a whole number from 1 to 100'],
    ['--submit-limits strikes=0,suspensions=2', 'must have strikes above 0 for suspensions'],
  ])('is refused with the reason: %s', (line, reason) => {
    expect(errorOf(words(line))).toContain(reason)
  })

  test('is shown without the keys that it may hold', () => {
    const args = words(
      '--feed pumpportal --providers pumpportal-url=wss://user:pass@a/b?api-key=secret,birdeye-rate=7',
    )
    const shownArgs = shownConfig(readConfig(args, { MINTLAKE_BIRDEYE_KEY: 'k' }))
    expect(JSON.stringify(shownArgs)).not.toMatch(/secret|user:|:pass/)
    expect(shownArgs).toMatchObject({
      providers: { pumpportalUrl: 'wss://…@a/b?…', birdeyeRate: 7 },
    })
    const commas = ['--feed=pumpportal', '--providers=pumpportal-url=wss://user:pass,secret@a/b?key,secret']
    expect(shownConfig(readConfig(commas, {}))).toMatchObject({
      providers: { pumpportalUrl: 'wss://…@a/b?…' },
    })
    const bus = words('--role writer --bus nats://a --bus-login user=u')
    const shown = shownConfig(
      readConfig(bus, { MINTLAKE_BUS_PASSWORD: 'secret', MINTLAKE_ADMIN_KEY: 'secret' }),
    )
    expect(shown).toMatchObject({
      'bus.password': 'set',
      adminKey: 'set',
      feedKey: 'not set',
      'bus.login': { user: 'u', key: '' },
    })
    expect(JSON.stringify(shown)).not.toContain('secret')
    expect(errorOf(words('--providers pumpportal-url=https://user:pass@a/b?api-key=secret'))).not.toMatch(
      /secret|pass/,
    )
    for (const [flag, text] of [
      ['--providers', 'birdeye-url=ftp://x.de/?k=1,secret'],
      ['--bus', 'u:secret@host:4222'],
      ['--bus', 'u:secret@host:4222,nats://a'],
      ['--bus-login', 'user=a,password=secret'],
      ['--bus-login', 'user=a,password=x,secret'],
      ['--bus-login', 'user=a,secret'],
    ])
      expect(errorOf([flag, text]), text).toMatch(/^(?!.*secret).* is not valid: /)
    // The reason quotes a part of the value.
    for (const text of [
      'wss://user:pass@a/b?api-key=secret',
      'pumpportal-url=wss://a?x=1,api-key=secret',
      'wss:/a?api-key=secret',
    ])
      expect(errorOf(['--providers', text])).toMatch(/^(?!.*(secret|pass@)).* of the form NAME=VALUE, with/)
  })
})

test('of a reader only what it uses is shown: it has no data folder and no feed', () => {
  const shown = shownConfig(readConfig(words('--role reader --bus nats://a'), {}))
  expect(shown).toMatchObject({ role: 'reader', 'bus.reader': { sharePort: false }, feedKey: 'not set' })
  for (const name of ['dataDir', 'feeds', 'store.retain', 'bus.stream', 'adminKey'])
    expect(shown).not.toHaveProperty([name])
})

describe('a setting of pairs', () => {
  const limitsOf = (text: string) => readConfig(['--submit-limits', text], {}).submitLimits
  const STANDARD = { rate: 10, cooldownMs: 60_000, strikes: 3, suspensions: 3 }

  test('has the default of whatever it does not name', () => {
    expect(readConfig([], {}).submitLimits).toEqual(STANDARD)
    expect(limitsOf('strikes=0')).toEqual({ ...STANDARD, strikes: 0 })
    expect(limitsOf(' cooldown-ms=5, rate=7 ')).toEqual({ ...STANDARD, rate: 7, cooldownMs: 5 })
  })

  test('has values with commas, as names of files do', () => {
    const { file, speed } = readConfig(['--feed=replay', '--replay=file=/a, b,c.csv,speed=2'], {}).replay
    expect({ file, speed }).toEqual({ file: '/a, b,c.csv', speed: 2 })
  })

  test.each([
    ['rate', '"rate" is not of the form NAME=VALUE, with a name of rate, cooldown-ms, strikes, suspensions'],
    ['=3', '"=3" is not of the form NAME=VALUE, with'],
    ['cooldownMs=3', '"cooldownMs=3" is not of the form NAME=VALUE, with'],
    ['toString=3', '"toString=3" is not of the form NAME=VALUE, with'],
    ['rate=3,rate=4', 'names rate twice'],
    ['rate=', '"rate" must be a number'],
    ['rate=1.5', '"rate" must be a whole number from 0 to 1000000'],
    ['strikes=3=4', '"strikes" must be a whole number from 0 to 1000'],
  ])('refuses %s with the reason', (text, reason) => {
    expect(errorOf(['--submit-limits', text])).toContain(`--submit-limits: "${text}" is not valid: ${reason}`)
  })
})

describe('a setting that went', () => {
  test.each(Object.entries(REPLACED))('%s is answered with what took its place', (flag, instead) => {
    const env = `MINTLAKE_${flag.toUpperCase().replaceAll('-', '_')}`
    expect(errorOf([`--${flag}`, '1'])).toBe(`--${flag} is no setting any more: ${instead}`)
    expect(errorOf([], { [env]: '1' })).toBe(`${env} is no setting any more: ${instead}`)
    expect(errorOf([], { [env]: '' })).toBe(null)
    // What it names is there.
    const [, named] = /^(--[a-z-]+)/.exec(instead) ?? []
    const flags = Object.values(SETTINGS_BY_PATH).map((setting) => `--${setting.flag}`)
    if (named !== undefined) expect(flags).toContain(named)
    const [, pairs] = /^--[a-z-]+ (\S+=\S+) /.exec(instead) ?? []
    if (pairs !== undefined) expect(`${errorOf([named!, pairs])}`).not.toContain('with a name of')
    expect(flags).not.toContain(`--${flag}`)
  })

  test('is none of another program', () => {
    expect(errorOf([], { QUIET: '1', STRIKES: '1' })).toBe(null)
  })
})

describe('a value that a setting does not take', () => {
  const BAD = ['', ' ', 'x', '-1', '1.5', '1e99', 'NaN', '99999999999999999', 'http://', '%', ',', 'a=b,c']
  const settings = Object.entries(SETTINGS_BY_PATH).filter(([, { flag }]) => flag !== null)

  test.each(settings)('%s is refused in our words', (_, { flag }) => {
    for (const value of BAD) {
      const message = errorOf([`--${flag}=${value}`]) ?? ''
      expect(message).not.toMatch(/invalid input|invalid option|too (big|small)|expected|received/i)
      if (message.includes('is not valid'))
        expect(message).toMatch(/ is not valid: (must|every|names|none|there|"|may)/)
    }
  })

  test.each([
    ['--port=70000', '--port: "70000" is not valid: must be a whole number from 0 to 65535'],
    ['--port=x', '--port: "x" is not valid: must be a whole number from 0 to 65535'],
    ['--feed=nasdaq', '--feed: "nasdaq" is not valid: must be simulator, none, replay, pumpportal or solana'],
    ['--mixed=maybe', '--mixed: "maybe" is not valid: must be true or false'],
    ['--mixed=', '--mixed: "" is not valid: must be true or false'],
    ['--registration=shut', '--registration: "shut" is not valid: must be open or closed'],
    ['--host=', '--host: "" is not valid: must be a host name or an address'],
  ])('%s', (args, message) => {
    expect(errorOf([args])).toBe(message)
  })
})

test('a key is what a header can send: without the line feed of a file, and refused with other characters', () => {
  expect(readConfig([], { MINTLAKE_ADMIN_KEY: ' key of a file\n' }).adminKey).toBe('key of a file')
  for (const key of ['schlüssel', 'two\nlines'])
    expect(errorOf([], { MINTLAKE_FEED_KEY: key })).toBe(
      'MINTLAKE_FEED_KEY: "…" is not valid: must be printable ASCII characters: it is sent in a header',
    )
})

describe('--help', () => {
  const every = Object.values(SETTINGS_BY_PATH).map(({ env }) => env)
  const listed = (text: string) => [...text.matchAll(/(MINTLAKE_\w+)(?: \[|$)/gm)].map(([, env]) => env)

  test('has the ten settings that matter first, and says what --help all has besides', () => {
    const text = usage(false)
    expect(listed(text)).toHaveLength(10)
    expect(text).toContain(`--help all lists the other ${every.length - 10}`)
    expect(text).toContain('--port')
    for (const line of text.split('\n').slice(0, -1)) expect(line.length).toBeLessThan(180)
  })

  test('all has each setting once, below what it is for', () => {
    const text = usage(true)
    expect(listed(text).toSorted()).toEqual(every.toSorted())
    for (const { title } of SETTING_GROUPS) expect(text).toContain(`\n${title}\n`)
  })
})

test('variables of clients are no misspelt settings, and others are told with the name that was meant', () => {
  expect(errorOf([], { MINTLAKE_URL: 'http://127.0.0.1:9', MINTLAKE_KEY: 'ps_1' })).toBeNull()
  expect(errorOf([], { MINTLAKE_PROT: '1' })).toBe(
    'MINTLAKE_PROT is not a setting of this program; did you mean MINTLAKE_PORT?',
  )
  expect(errorOf(['--prot', '1'])).toBe('--prot is not a flag of this program; did you mean --port?')
  // Names that are longer than a setting's: what they ask for is a part of it now, or never was a setting.
  expect(errorOf([], { MINTLAKE_RETAIN_DAYS: '3' })).toBe(
    'MINTLAKE_RETAIN_DAYS is not a setting of this program; did you mean MINTLAKE_RETAIN?',
  )
  expect(errorOf(['--retain-days', '3'])).toBe(
    '--retain-days is not a flag of this program; did you mean --retain?',
  )
  expect(errorOf(['--nothing-like-it', '1'])).toBe('--nothing-like-it is not a flag of this program')
  for (const [args, message] of [
    [['--tokens-max', '-5'], '--tokens-max: a value that begins with a dash is written --tokens-max=-5'],
    [['--tokens-max=-5'], '--tokens-max: "-5" is not valid: must be a whole number from 1 to 2000000'],
    [['--tokens-max'], '--tokens-max needs a value'],
    [['--tokens-max', '--port', '1'], '--tokens-max needs a value'],
    [['-p', '1'], '-p is no flag: flags begin with two dashes'],
    [['--port', '1', '2'], '"2" belongs to no flag: flags begin with two dashes'],
  ] as const)
    expect(errorOf([...args])).toBe(message)
})
