// The settings of feeds.
import { z } from 'zod'
import { safeParse } from '../lib/safe-parse.ts'
import { pairs, part } from '../lib/settings/pairs.ts'
import {
  address,
  flag,
  oneOf,
  positive,
  positiveNumber,
  setting,
  type ValuesOf,
  wholeNumber,
  wordList,
} from '../lib/settings/setting.ts'
import { parseMoment } from '../lib/time.ts'
import { WORD_CHARS_MAX } from '../schema/bounds.ts'
import { REPLAY_DEFAULTS } from './limits.ts'
import { mayBePublicHost } from './metadata/public-address.ts'
import {
  ENDPOINTS_MAX,
  HEAL_MS_DEFAULT,
  HEAL_MS_MAX,
  RPC_PER_SECOND_DEFAULT,
  RPC_PER_SECOND_MAX,
} from './solana/limits.ts'

export const FEEDS = ['simulator', 'none', 'replay', 'pumpportal', 'solana'] as const

export const feedList = wordList
  .pipe(z.array(oneOf(FEEDS)).min(1, `must name one of ${FEEDS.join(', ')}`))
  .refine((feeds) => new Set(feeds).size === feeds.length, 'names a feed twice')
  .refine((feeds) => feeds.length === 1 || !feeds.includes('none'), 'none stands alone')
  .transform((feeds) => feeds.filter((feed) => feed !== 'none'))

/** Where documents in IPFS are fetched unless another gateway is told. */
const IPFS_GATEWAY = 'https://ipfs.io'

/** The gateway of IPFS beside which documents of tokens are fetched; null: none are. */
export const metadataGateway = z.string().transform((text, context) => {
  const isOn = safeParse(flag, text)
  if (isOn.success) return isOn.data ? IPFS_GATEWAY : null
  const url = URL.parse(text)
  if (url !== null && isGateway(url)) return `${url.origin}${url.pathname}`.replace(/(\/ipfs)?\/?$/, '')
  context.addIssue({
    code: 'custom',
    message:
      'must be true, false or an address that begins with https://, of a host of the public Internet, without a user, query or fragment',
  })
  return z.NEVER
})

/** Whether documents can be fetched there, and anybody may see the address: pictures in IPFS are shown by it. */
function isGateway(url: URL): boolean {
  const { protocol, username, password, search, hash } = url
  return protocol === 'https:' && mayBePublicHost(url) && username + password + search + hash === ''
}

/** What of a trade a column may be. */
const MAPPED_FIELDS = ['ts', 'symbol', 'price', 'size', 'side', 'wallet', 'tx'] as const
export type MappedField = (typeof MAPPED_FIELDS)[number]

/** `field=column,…` as an object. */
const columnMapping = wordList.transform((pairs, context) => {
  const columns: Partial<Record<MappedField, string>> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    const field = MAPPED_FIELDS.find((each) => each === pair.slice(0, at))
    if (at < 1) context.addIssue({ code: 'custom', message: `"${pair}" is not of the form field=column` })
    else if (field === undefined)
      context.addIssue({
        code: 'custom',
        message: `"${pair.slice(0, at)}" is none of the fields ${MAPPED_FIELDS.join(', ')}`,
      })
    else columns[field] = pair.slice(at + 1)
  }
  return columns
})

const replaySpeed = z.union([z.literal('max'), positiveNumber], `${positive.error}, or max`)

/** `FROM..TO` as Unix ms; null where one is left out. */
const span = z.string().transform((text, context) => {
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

/** Addresses of endpoints, which may hold keys; empty: none. */
const endpointList = (...schemes: readonly string[]) =>
  wordList.pipe(z.array(address(...schemes)).max(ENDPOINTS_MAX, `there may be ${ENDPOINTS_MAX} addresses`))

/** A recorded market that is played: trades of a file, or the lake of another server. */
export const REPLAY = pairs(
  'replay',
  {
    file: part('', z.string()),
    lake: part('', z.string()),
    span: part('', span),
    speed: part(REPLAY_DEFAULTS.speed, replaySpeed),
    symbol: part('', z.string().max(WORD_CHARS_MAX)),
    time: part(REPLAY_DEFAULTS.time, oneOf(['recorded', 'now'])),
    simulated: part('false', flag),
  },
  'What the feed replay plays: file: Parquet, CSV or JSON of trades; or lake: the data folder of another server whose recorded market is played, span=FROM..TO: market time of it as ISO 8601 or Unix ms, without FROM from its first recorded run, without TO to its end. speed: as a multiple of the recorded one, or max. What the trades of a file are taken as: symbol: that of all, where it has no column for it; time=now: the first one happens at the start, recorded: all when they did; simulated=true: made up, and rows of the lake and /health say so',
  {
    flaw: ({ file, lake, span: played, symbol, time, simulated }) => {
      if (file !== '' && lake !== '') return 'must name a file or a lake: one market is played'
      const isWhole = played.fromMs === null && played.toMs === null
      if (lake === '') return isWhole ? null : 'must name the lake that span is of'
      const isTold = symbol !== '' || time !== REPLAY_DEFAULTS.time || simulated
      return isTold
        ? 'must name a file for symbol, time and simulated: a lake tells them of its market'
        : null
    },
  },
)

export const REPLAY_MAP = setting(
  'replay-map',
  '',
  columnMapping,
  'Columns with other names in the file of --replay: ts= (or ts=date+time),symbol=,price=,size=, and optionally side=,wallet=,tx=; ' +
    'a field without a name (side=) is not read',
)

/** The chain, by RPC endpoints or a tape of them. */
export const SOLANA_SETTINGS = {
  rpcUrls: setting(
    'solana-rpc',
    '',
    endpointList('http', 'https'),
    'RPC endpoints of Solana’s mainnet for the feed solana, comma-separated: the next one when one fails',
  ),
  socketUrls: setting(
    'solana-ws',
    '',
    endpointList('ws', 'wss'),
    'Their addresses for subscriptions; without it they follow from --solana-rpc',
  ),
  commitment: setting(
    'solana-commitment',
    'confirmed',
    oneOf(['confirmed', 'processed']),
    'confirmed: what practically never is undone; processed: some 0.5 s earlier, and a little of it may be dropped by the chain',
  ),
  requestsPerSecond: setting(
    'solana-rps',
    RPC_PER_SECOND_DEFAULT,
    wholeNumber(1, RPC_PER_SECOND_MAX),
    'Requests per second that the endpoints allow, all uses together',
  ),
  healMs: setting(
    'solana-heal-ms',
    HEAL_MS_DEFAULT,
    wholeNumber(0, HEAL_MS_MAX),
    'How long an outage or a restart of the feed solana may have been to be made up for from the chain, and how long that may take, ms; 0: never',
  ),
  pools: setting(
    'solana-pools',
    'migrated',
    oneOf(['migrated', 'all']),
    'Whose swaps count: migrated: of tokens that the market holds, in the pool where their curve went; all: of every pool, whoever made it',
  ),
  tapeFile: setting(
    'solana-tape',
    '',
    z.string(),
    'File that mintlake capture has written, played instead of an endpoint, at the speed of --replay',
  ),
} as const

export type SolanaSettings = ValuesOf<typeof SOLANA_SETTINGS>
