// The settings of the bus between the nodes of a cluster.
import { z } from 'zod'
import { pairs, part } from '../lib/settings/pairs.ts'
import {
  flag,
  publicUrl,
  secret,
  setting,
  type ValuesOf,
  wholeNumber,
  wordList,
} from '../lib/settings/setting.ts'
import { DAY_MS, HOUR_MS } from '../lib/time.ts'
import { BUS_MAX_AGE_MS_DEFAULT, BUS_MAX_MB_DEFAULT, LAG_MAX_MS_DEFAULT } from './limits.ts'

const NATS_URLS_MAX = 16
const isNatsUrl = (text: string): boolean =>
  /^(nats|tls):\/\//.test(text) && URL.canParse(text) && new URL(text).host !== ''

/** Addresses of NATS servers; empty: none. */
const natsUrl = wordList
  .refine((urls) => urls.every(isNatsUrl), 'must be an address such as nats://127.0.0.1:4222')
  .refine(
    (urls) => urls.every((url) => !URL.canParse(url) || new URL(url).username === ''),
    'must not name a user: that is --bus-login',
  )
  .refine((urls) => urls.length <= NATS_URLS_MAX, `there may be ${NATS_URLS_MAX} addresses`)

/** A word that NATS takes in names of streams, and between the dots of a subject. */
const busName = z.string().regex(/^[A-Za-z0-9_-]{1,32}$/, 'must have 1 to 32 letters, digits, "-" or "_"')

/** Such a word; '' for none. */
const busUser = z.union([z.literal(''), busName], 'must have 1 to 32 letters, digits, "-" or "_"')

export const BUS_SETTINGS = {
  servers: setting(
    'bus',
    '',
    natsUrl,
    'NATS server with JetStream that connects writer and readers, such as nats://127.0.0.1:4222; several, comma-separated',
  ),
  name: setting('bus-name', 'mintlake', busName, 'Beginning of the names on the bus'),
  login: pairs(
    'bus-login',
    {
      user: part('', busUser),
      credentials: part('', z.string()),
      ca: part('', z.string()),
      cert: part('', z.string()),
      key: part('', z.string()),
    },
    'Who this process is for NATS: user: its name, whose replies come to _INBOX.<user>; or credentials: a file with them (.creds). Files for NATS over TLS: ca: the certificate authority of NATS; cert and key: certificate of this process and its private key',
    {
      flaw: ({ user, credentials, cert, key }) => {
        if (user !== '' && credentials !== '') return 'must name a user or credentials: a process is one user'
        return (cert === '') === (key === '') ? null : 'must name a cert together with its key'
      },
    },
  ),
  // It is sent in no header.
  password: secret('BUS_PASSWORD', 'Password of the user of --bus-login', z.string()),
  nodeUrl: setting(
    'node-url',
    '',
    publicUrl,
    'Address at which other nodes reach this one; without it that of --host and --port, where --host is every address the one that NATS sees',
  ),
  stream: pairs(
    'bus-stream',
    {
      maxAgeMs: part(BUS_MAX_AGE_MS_DEFAULT, wholeNumber(60_000, 7 * DAY_MS)),
      maxMb: part(BUS_MAX_MB_DEFAULT, wholeNumber(1, 1e6)),
      replicas: part(1, wholeNumber(1, 5)),
    },
    'What the writer keeps on the bus: max-age-ms: how long events stay, a reader that was away longer begins with a checkpoint; max-mb: their largest size, the oldest go first; replicas: NATS servers that keep each',
  ),
  reader: pairs(
    'reader',
    {
      lagMaxMs: part(LAG_MAX_MS_DEFAULT, wholeNumber(1_000, HOUR_MS)),
      sharePort: part('false', flag),
      writerUrl: part('', publicUrl),
    },
    'Of a reader: lag-max-ms: how far it may be behind before it refuses reads; share-port=true: several may listen on one --port (not 0); writer-url: where it reaches the writer, if not where that says on the bus',
  ),
} as const

export type BusSettings = ValuesOf<typeof BUS_SETTINGS>
